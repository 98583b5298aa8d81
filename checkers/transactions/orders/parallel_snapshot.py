"""Parallel snapshot isolation, plain or with sessions: whether the versions of each key can be put into an order in
which no cycle of dependencies has at most one anti-dependency. Of items alone, a consistent view is the same.

Transactions see along paths of what they read, what their session did before and what was overwritten; one that sees
a writer of a key reads it or a later version. That alone forces most of the order of versions. What is left is for the
solver, which keeps versions in an order of transactions in which no reader sees what was overwritten too early.

The order of a decision is one of transactions: their reads, sessions and versions all go along with it. It is no order
in which they took effect everywhere, and its reads are not of the last write before.

Sources: Cerone, Gotsman, Yang, "Transaction Chopping for Parallel Snapshot Isolation" (DISC 2015) for the cycles; Adya
(1999) for PL-2+.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from checkers import search_budget
from checkers.api.verdict import Verdict
from checkers.kernels.columns import Int32
from checkers.transactions.evidence.proof import Because, Decision
from checkers.transactions.history.committed import INITIAL, Committed
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.transactions.orders.bounded_propagation import forced_by_short_paths
from checkers.transactions.orders.bounds import (
    DEMANDED,
    Bounds,
    given_up_at_once,
    given_up_before,
    vector_clocks_too_large,
)
from checkers.transactions.orders.complete_search import CompleteSearch, begun_search
from checkers.transactions.orders.events import Accesses, Events, ExternalOrder, Isolation, chained, events
from checkers.transactions.orders.long_forks import without_forks
from checkers.transactions.orders.proof_builder import contradiction, rests_on
from checkers.transactions.orders.propagation import OrderKind
from checkers.transactions.orders.saturation import saturated
from checkers.transactions.orders.solver import ways_to_readers
from checkers.transactions.orders.subhistory import excerpt, of_the_whole
from checkers.transactions.orders.windowed_search import FEW_STEPS, rearranged

MODELS = {
    ConsistencyModel.CONSISTENT_VIEW: ExternalOrder.NOTHING,
    ConsistencyModel.PARALLEL_SNAPSHOT_ISOLATION: ExternalOrder.NOTHING,
    ConsistencyModel.STRONG_SESSION_PARALLEL_SNAPSHOT_ISOLATION: ExternalOrder.SESSION,
}

FORKS = 4
"""How often reads are left out, each time other ones, to make a history one of snapshots."""
STEPS = 1 << 28
"""How many events are looked at to see whether readers see too much in an order that was guessed."""


def parallel_snapshot_decided(committed: Committed, model: ConsistencyModel, bounds: Bounds = DEMANDED) -> Decision:
    """With sessions first, which leaves less open: an order will do without them as well, and so will a proof in which
    none of their steps is."""
    decision = _decided(committed, ExternalOrder.SESSION, bounds)
    if MODELS[model] is ExternalOrder.SESSION or decision.verdict is Verdict.VALID:
        return decision
    if decision.proof and Because.SESSION not in rests_on(decision.proof):
        return decision
    if search_budget.is_over():
        return given_up_before(decision)
    return _decided(committed, ExternalOrder.NOTHING, bounds)


def _decided(committed: Committed, kept: ExternalOrder, bounds: Bounds) -> Decision:
    known = events(committed, Isolation.SERIALIZABLE, kept)
    found = forced_by_short_paths(known, OrderKind.PER_SITE)
    if found.cyclic:
        return contradiction(found)
    updates = _lost_update(known.accesses)
    if len(updates) and len(updates) < len(committed):
        with search_budget.searching_until(None):
            decision = _decided(excerpt(committed, updates), kept, DEMANDED)
        assert decision.proof is not None, "of two updates of one version one is lost"
        return replace(decision, proof=of_the_whole(decision.proof, updates, known.width))
    if search_budget.is_over() and vector_clocks_too_large(committed):
        return given_up_at_once(committed)
    guessed = _order_of_snapshots(known, bounds)
    if guessed is not None:
        return guessed
    found = saturated(chained(known, bounds.cells), OrderKind.PER_SITE)
    return CompleteSearch(found=found, orders=OrderKind.PER_SITE, bounds=bounds).decision()


def _order_of_snapshots(events: Events, bounds: Bounds) -> Decision | None:
    """VALID if the history is one of snapshot isolation, which is stronger, and such an order was found: that of its
    commits will do, for reads, sessions and versions go along with it. So it will where some reads were left out, if
    these have seen nothing of what they missed."""
    committed, width = events.committed, Isolation.SNAPSHOT.value
    steps = bounds.steps if vector_clocks_too_large(committed) else FEW_STEPS
    for pick in range(FORKS):
        left = without_forks(committed, events.kept, pick)
        guessed = rearranged(left[0], steps) if left else None
        if left is None or guessed is None or guessed.order is None:
            return None
        order = guessed.order[guessed.order % width == width - 1] // width
        if not left[1] or not _sees_too_much(events, order):
            return replace(guessed, order=order)
    return None


def _lost_update(accesses: Accesses) -> Int32:
    """INITIAL, the writer of a version, and two transactions that read it and write its key: whichever comes second
    sees the other and does not read what it wrote. None if there are no such ones."""
    places = accesses.version_writer.astype(np.int64) * accesses.keys + accesses.write_key
    updates = np.flatnonzero(np.isin(accesses.reader.astype(np.int64) * accesses.keys + accesses.read_key, places))
    order = updates[np.argsort(accesses.read_version[updates], kind="stable")]
    twice = np.flatnonzero(accesses.read_version[order[1:]] == accesses.read_version[order[:-1]])
    if not len(twice):
        return np.zeros(0, dtype=np.int32)
    one, other = order[twice[0]], order[twice[0] + 1]
    rows = np.array([INITIAL, accesses.read_writer[one], accesses.reader[one], accesses.reader[other]], dtype=np.int32)
    return np.unique(rows)


def _sees_too_much(events: Events, order: Int32) -> bool:
    """Whether some reader does, with the versions in the order in which they come here; True where it is not known."""
    turn = np.full(events.size, len(order), dtype=np.int64)
    turn[order] = np.arange(len(order))
    begun = begun_search(events, events.base, OrderKind.PER_SITE, turn)
    ends, _, is_all = ways_to_readers(begun, STEPS)
    return bool(len(ends) or not is_all)
