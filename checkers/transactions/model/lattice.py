"""Consistency models of transactions: which one forbids what, and which implies which.

The sources, by the names that models cite:
- Adya, "Weak Consistency: A Generalized Theory and Optimistic Implementations for Distributed Transactions" (1999)
- Bailis et al., "Highly Available Transactions: Virtues and Limitations" (VLDB 2014)
- Bailis et al., "Scalable Atomic Visibility with RAMP Transactions" (SIGMOD 2014)
- Berenson et al., "A Critique of ANSI SQL Isolation Levels" (SIGMOD 1995)
- Bernstein, Hadzilacos, Goodman, "Concurrency Control and Recovery in Database Systems" (1987)
- Biswas, Enea, "On the Complexity of Checking Transactional Consistency" (OOPSLA 2019)
- Brzezinski, Sobaniec, Wawrzyniak, "From Session Causality to Causal Consistency" (PDP 2004)
- Cerone, Bernardi, Gotsman, "A Framework for Transactional Consistency Models with Atomic Visibility" (CONCUR 2015)
- Cerone, Gotsman, "Analysing Snapshot Isolation" (PODC 2016)
- Daudjee, Salem, "Lazy Database Replication with Ordering Guarantees" (ICDE 2004)
- Daudjee, Salem, "Lazy Database Replication with Snapshot Isolation" (VLDB 2006)
- Kingsbury, Alvaro, "Elle: Inferring Isolation Anomalies from Experimental Observations" (VLDB 2020)
- Terry et al., "Session Guarantees for Weakly Consistent Replicated Data" (PDIS 1994)

Transactions here name single items, never predicates. So repeatable read (PL-2.99) demands of them what
serializability does, and G2-item is all there is of G2; the lattice keeps them apart, for a system's promise of the one
is not one of the other. Plain models know no sessions: an order may put a session's later transaction first. Those
called strong-session keep each session's order, those called strong or strict keep the order of realtime.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum


class Model(Enum):
    """By the name that a user gives."""

    READ_UNCOMMITTED = "read-uncommitted"
    PL_2 = "PL-2"
    READ_COMMITTED = "read-committed"
    CURSOR_STABILITY = "cursor-stability"
    READ_ATOMIC = "read-atomic"
    READ_YOUR_WRITES = "read-your-writes"
    MONOTONIC_READS = "monotonic-reads"
    MONOTONIC_WRITES = "monotonic-writes"
    WRITES_FOLLOW_READS = "writes-follow-reads"
    PRAM = "pram"
    STRONG_SESSION_READ_UNCOMMITTED = "strong-session-read-uncommitted"
    STRONG_SESSION_READ_COMMITTED = "strong-session-read-committed"
    STRONG_SESSION_READ_ATOMIC = "strong-session-read-atomic"
    CAUSAL = "causal"
    CONSISTENT_VIEW = "consistent-view"
    PARALLEL_SNAPSHOT_ISOLATION = "parallel-snapshot-isolation"
    STRONG_SESSION_PARALLEL_SNAPSHOT_ISOLATION = "strong-session-parallel-snapshot-isolation"
    SNAPSHOT_ISOLATION = "snapshot-isolation"
    STRONG_SESSION_SNAPSHOT_ISOLATION = "strong-session-snapshot-isolation"
    STRONG_SNAPSHOT_ISOLATION = "strong-snapshot-isolation"
    REPEATABLE_READ = "repeatable-read"
    SERIALIZABLE = "serializable"
    STRONG_SESSION_SERIALIZABLE = "strong-session-serializable"
    STRICT_SERIALIZABLE = "strict-serializable"


ALIASES: Mapping[str, Model] = {
    "PL-1": Model.READ_UNCOMMITTED,
    "PL-CS": Model.CURSOR_STABILITY,
    "PL-2+": Model.CONSISTENT_VIEW,
    "PL-2.99": Model.REPEATABLE_READ,
    "PL-3": Model.SERIALIZABLE,
    "PL-SI": Model.SNAPSHOT_ISOLATION,
    "PL-SS": Model.STRICT_SERIALIZABLE,
    "conflict-serializable": Model.SERIALIZABLE,
    "monotonic-atomic-view": Model.READ_COMMITTED,
    "strong-serializable": Model.STRICT_SERIALIZABLE,
}
"""Other names of the same."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a model adds to the weaker ones that it implies."""

    weaker: tuple[Model, ...] = ()
    """Those right below."""
    forbids: tuple[str, ...] = ()
    """Anomalies that none of the weaker ones forbids."""
    about: str
    source: str


PROMISES: Mapping[Model, Promise] = {
    Model.READ_UNCOMMITTED: Promise(
        forbids=("G0", "cyclic-versions", "duplicate-elements", "garbage-read"),
        about="each item's versions have one order, and what is read was written",
        source="Adya",
    ),
    Model.PL_2: Promise(
        weaker=(Model.READ_UNCOMMITTED,),
        forbids=("G1a", "G1b", "G1c", "dirty-update", "future-read", "incompatible-order"),
        about="only final writes of committed transactions are read, and information flows one way",
        source="Adya",
    ),
    Model.READ_COMMITTED: Promise(
        weaker=(Model.PL_2,),
        about="once a transaction has read from another, its later reads do not miss what that one wrote",
        source="Biswas, Enea; Bailis et al. (VLDB 2014) call it monotonic atomic view",
    ),
    Model.CURSOR_STABILITY: Promise(
        weaker=(Model.PL_2,),
        forbids=("lost-update",),
        about="no two transactions update what both have read in the same version",
        source="Berenson et al.; Adya",
    ),
    Model.READ_ATOMIC: Promise(
        weaker=(Model.READ_COMMITTED,),
        forbids=("internal",),
        about="of each transaction all effects are seen, or none",
        source="Bailis et al. (SIGMOD 2014); Cerone, Bernardi, Gotsman",
    ),
    Model.READ_YOUR_WRITES: Promise(
        weaker=(Model.PL_2,), about="a session's reads do not miss its earlier writes", source="Terry et al."
    ),
    Model.MONOTONIC_READS: Promise(
        weaker=(Model.PL_2,),
        about="a session's reads do not miss what its earlier reads have shown",
        source="Terry et al.",
    ),
    Model.MONOTONIC_WRITES: Promise(
        weaker=(Model.STRONG_SESSION_READ_UNCOMMITTED, Model.PL_2),
        forbids=("G1c-process",),
        about="a session's writes take effect in order, everywhere",
        source="Terry et al.",
    ),
    Model.WRITES_FOLLOW_READS: Promise(
        weaker=(Model.PL_2,),
        about="who sees a write sees what its session had read before",
        source="Terry et al.",
    ),
    Model.PRAM: Promise(
        weaker=(Model.READ_YOUR_WRITES, Model.MONOTONIC_READS, Model.MONOTONIC_WRITES),
        about="each session's order is seen by everybody",
        source="Brzezinski, Sobaniec, Wawrzyniak",
    ),
    Model.STRONG_SESSION_READ_UNCOMMITTED: Promise(
        weaker=(Model.READ_UNCOMMITTED,),
        forbids=("G0-process",),
        about="the order of versions keeps to that of sessions",
        source="Kingsbury, Alvaro",
    ),
    Model.STRONG_SESSION_READ_COMMITTED: Promise(
        weaker=(Model.READ_COMMITTED, Model.STRONG_SESSION_READ_UNCOMMITTED),
        forbids=("G1c-process",),
        about="read committed in an order that keeps to that of sessions",
        source="Biswas, Enea; Kingsbury, Alvaro",
    ),
    Model.STRONG_SESSION_READ_ATOMIC: Promise(
        weaker=(Model.READ_ATOMIC, Model.STRONG_SESSION_READ_COMMITTED, Model.READ_YOUR_WRITES),
        about="of each transaction seen, and of each earlier one of the session, all effects are seen",
        source="Biswas, Enea",
    ),
    Model.CAUSAL: Promise(
        weaker=(Model.PRAM, Model.WRITES_FOLLOW_READS, Model.STRONG_SESSION_READ_ATOMIC),
        about="who sees an effect sees all its causes: what its session did and saw before, and so on",
        source="Biswas, Enea; Brzezinski, Sobaniec, Wawrzyniak",
    ),
    Model.CONSISTENT_VIEW: Promise(
        weaker=(Model.CURSOR_STABILITY, Model.READ_COMMITTED),
        forbids=("G-single-item",),
        about="reads show a consistent state, though others may see another one (PL-2+)",
        source="Adya",
    ),
    Model.PARALLEL_SNAPSHOT_ISOLATION: Promise(
        weaker=(Model.CONSISTENT_VIEW, Model.READ_ATOMIC),
        about="snapshots that are causal, and no two concurrent writers of an item",
        source="Cerone, Bernardi, Gotsman; Cerone, Gotsman",
    ),
    Model.STRONG_SESSION_PARALLEL_SNAPSHOT_ISOLATION: Promise(
        weaker=(Model.PARALLEL_SNAPSHOT_ISOLATION, Model.CAUSAL),
        forbids=("G-single-item-process",),
        about="parallel snapshot isolation whose snapshots hold what the session did before",
        source="Cerone, Gotsman",
    ),
    Model.SNAPSHOT_ISOLATION: Promise(
        weaker=(Model.PARALLEL_SNAPSHOT_ISOLATION,),
        forbids=("G-nonadjacent-item",),
        about="reads from one snapshot of one order, and no two concurrent writers of an item",
        source="Berenson et al.; Cerone, Gotsman",
    ),
    Model.STRONG_SESSION_SNAPSHOT_ISOLATION: Promise(
        weaker=(Model.SNAPSHOT_ISOLATION, Model.STRONG_SESSION_PARALLEL_SNAPSHOT_ISOLATION),
        forbids=("G-nonadjacent-item-process",),
        about="snapshot isolation whose snapshots hold what the session did before",
        source="Daudjee, Salem (VLDB 2006)",
    ),
    Model.STRONG_SNAPSHOT_ISOLATION: Promise(
        weaker=(Model.STRONG_SESSION_SNAPSHOT_ISOLATION,),
        forbids=("G0-realtime", "G1c-realtime", "G-single-item-realtime", "G-nonadjacent-item-realtime"),
        about="snapshot isolation whose snapshots hold all that had ended before",
        source="Daudjee, Salem (VLDB 2006)",
    ),
    Model.REPEATABLE_READ: Promise(
        weaker=(Model.CURSOR_STABILITY, Model.READ_COMMITTED),
        forbids=("G-single-item", "G-nonadjacent-item", "G2-item"),
        about="serializable as far as items go, though not predicates (PL-2.99)",
        source="Adya",
    ),
    Model.SERIALIZABLE: Promise(
        weaker=(Model.REPEATABLE_READ, Model.SNAPSHOT_ISOLATION),
        about="one after the other, in some order",
        source="Bernstein, Hadzilacos, Goodman; Adya",
    ),
    Model.STRONG_SESSION_SERIALIZABLE: Promise(
        weaker=(Model.SERIALIZABLE, Model.STRONG_SESSION_SNAPSHOT_ISOLATION),
        forbids=("G2-item-process",),
        about="one after the other, in an order that keeps to that of sessions",
        source="Daudjee, Salem (ICDE 2004)",
    ),
    Model.STRICT_SERIALIZABLE: Promise(
        weaker=(Model.STRONG_SESSION_SERIALIZABLE, Model.STRONG_SNAPSHOT_ISOLATION),
        forbids=("G2-item-realtime",),
        about="one after the other, in an order that keeps to realtime",
        source="Adya; Bernstein, Hadzilacos, Goodman",
    ),
}


def model_named(name: str) -> Model:
    """However it is spelt: `serializable`, `:serializable`, `Snapshot_Isolation`, `pl-3`. Raises ValueError."""
    names = {_spelt(known): known for known in (*(model.value for model in Model), *ALIASES)}
    known = names.get(_spelt(name))
    if known is not None:
        return ALIASES[known] if known in ALIASES else Model(known)
    raise ValueError(f"no consistency model is called {name!r}; there are: {', '.join(names.values())}")


def _spelt(name: str) -> str:
    return name.strip().removeprefix(":").lower().replace("_", "-").replace(" ", "-")


def implied(model: Model) -> tuple[Model, ...]:
    """The model and all weaker ones, in the order of `Model`."""
    return tuple(other for other in Model if other in _BELOW[model])


def forbidden(model: Model) -> frozenset[str]:
    """All anomalies that the model forbids."""
    return frozenset(name for weaker in _BELOW[model] for name in PROMISES[weaker].forbids)


def stronger_too(models: Iterable[Model]) -> tuple[Model, ...]:
    """These and all that imply one of them: what is ruled out where these are. In the order of `Model`."""
    broken = set(models)
    return tuple(model for model in Model if not broken.isdisjoint(_BELOW[model]))


def ruled_out(anomalies: Iterable[str]) -> tuple[Model, ...]:
    """All models that forbid one of the anomalies, in the order of `Model`."""
    found = set(anomalies)
    return tuple(model for model in Model if not found.isdisjoint(forbidden(model)))


def strongest(models: Iterable[Model]) -> tuple[Model, ...]:
    """Those that no other of them implies, in the order of `Model`."""
    left = set(models)
    return tuple(model for model in Model if model in left and not any(model in _BELOW[o] for o in left - {model}))


def weakest(models: Iterable[Model]) -> tuple[Model, ...]:
    """Those that imply no other of them, in the order of `Model`."""
    left = set(models)
    return tuple(model for model in Model if model in left and _BELOW[model] & left == {model})


def _below() -> dict[Model, frozenset[Model]]:
    below: dict[Model, frozenset[Model]] = {}
    open_models = list(PROMISES)
    while open_models:
        ready = [model for model in open_models if all(weaker in below for weaker in PROMISES[model].weaker)]
        for model in ready:
            below[model] = frozenset({model}).union(*(below[weaker] for weaker in PROMISES[model].weaker))
        open_models = [model for model in open_models if model not in below]
    return below


_BELOW: Mapping[Model, frozenset[Model]] = _below()
