"""Whether some order of the committed transactions explains every read: serializability and snapshot isolation, plain,
with sessions, or with real time.

VALID comes with an order of all events, which is replayed before it is returned; INVALID with a proof, unless there
were too many cases to write down. Deciding is NP-complete; what real stores leave behind is decided in stages: what
short paths force may contradict itself (`bounded_propagation`), or an order is found that the store may have followed
(`windowed_search`); else what is known forces more (`saturation`), and the solver finds an order or a refutation
(`complete_search`). UNKNOWN names what is wrong in the last order.

Not judged: whatever `Committed` leaves out. A transaction whose outcome is unknown and from which no other one read is
taken not to have happened.

Sources: Papadimitriou, The Serializability of Concurrent Database Updates, JACM 26 (1979); Biswas, Enea, OOPSLA 2019;
Tan et al., Cobra, OSDI 2020; Huang et al., PolySI, VLDB 2023; Zhang et al., Viper, EuroSys 2023. Deciding stronger
models first is ours.
"""

from __future__ import annotations

from enum import Enum

from checkers import search_budget
from checkers.api.verdict import Verdict
from checkers.transactions.evidence.proof import Because, Decision
from checkers.transactions.history.committed import Committed
from checkers.transactions.orders.bounded_propagation import forced_by_short_paths
from checkers.transactions.orders.bounds import (
    DEMANDED,
    Bounds,
    given_up_at_once,
    given_up_before,
    vector_clocks_too_large,
)
from checkers.transactions.orders.complete_search import CompleteSearch
from checkers.transactions.orders.events import (
    STRONGEST_FIRST,
    Events,
    ExternalOrder,
    Isolation,
    chained,
    events,
)
from checkers.transactions.orders.proof_builder import contradiction, rests_on
from checkers.transactions.orders.propagation import OrderKind
from checkers.transactions.orders.saturation import saturated
from checkers.transactions.orders.windowed_search import FEW_STEPS, rearranged

MODELS: dict[str, tuple[Isolation, ExternalOrder]] = {
    "serializable": (Isolation.SERIALIZABLE, ExternalOrder.NOTHING),
    "strong-session-serializable": (Isolation.SERIALIZABLE, ExternalOrder.SESSION),
    "strict-serializable": (Isolation.SERIALIZABLE, ExternalOrder.REALTIME),
    "snapshot-isolation": (Isolation.SNAPSHOT, ExternalOrder.NOTHING),
    "strong-session-snapshot-isolation": (Isolation.SNAPSHOT, ExternalOrder.SESSION),
    "strong-snapshot-isolation": (Isolation.SNAPSHOT, ExternalOrder.REALTIME),
}

ADDED = {
    ExternalOrder.NOTHING: {Because.SESSION, Because.REALTIME},
    ExternalOrder.SESSION: {Because.REALTIME},
    ExternalOrder.REALTIME: set[Because](),
}
"""Reasons that stronger models have and this one has not."""

FEW_SESSIONS = 100
"""With fewer sessions than this, few transactions are concurrent, however busy the sessions are."""


def decided(committed: Committed, model: str | Enum, bounds: Bounds = DEMANDED) -> Decision:
    """Stronger models are asked first, for they leave less open: whatever order they find will do, and so will a proof
    that needs nothing of what they add.

    Once searches are over no step begins that may take long; of few transactions and sessions none does.
    """
    isolation, wanted = MODELS[model.value if isinstance(model, Enum) else model]
    is_dear = vector_clocks_too_large(committed)
    steps = bounds.steps if is_dear else FEW_STEPS
    left: list[Events] = []
    for kept in STRONGEST_FIRST[: STRONGEST_FIRST.index(wanted) + 1]:
        if is_dear and search_budget.is_over():
            return given_up_at_once(committed)
        known = events(committed, isolation, kept)
        # With few sessions at once, an order that keeps real time is found sooner than short paths are looked at.
        is_soon = kept is ExternalOrder.REALTIME and int(committed.session.max()) < FEW_SESSIONS
        guessed = _guessed(known, FEW_STEPS) if is_soon else None
        if guessed is not None:
            return guessed
        found = forced_by_short_paths(known, OrderKind.TOTAL)
        if found.cyclic:
            decision = contradiction(found)
            if _refutes(decision, wanted):
                return decision
            continue
        left.append(known)
        guessed = None if is_soon and not is_dear else _guessed(known, steps)
        if guessed is not None:
            return guessed
    if is_dear and search_budget.is_over():
        return given_up_at_once(committed)
    decision = Decision(verdict=Verdict.UNKNOWN)
    for known in left:
        search_budget.say(lambda: "what is forced in every order")
        found = saturated(chained(known, bounds.cells), OrderKind.TOTAL)
        decision = CompleteSearch(found=found, orders=OrderKind.TOTAL, bounds=bounds).decision()
        if known.kept is wanted or decision.verdict is Verdict.VALID or _refutes(decision, wanted):
            break
        if search_budget.is_over():
            return given_up_before(decision)
    return decision


def _guessed(events: Events, steps: int) -> Decision | None:
    """VALID with an order that a store may have gone by, or None."""
    search_budget.say(lambda: "an order that a store may have gone by")
    return rearranged(events, steps)


def _refutes(decision: Decision, wanted: ExternalOrder) -> bool:
    """Whether it needs nothing of what stronger models add."""
    return decision.proof is not None and not rests_on(decision.proof) & ADDED[wanted]
