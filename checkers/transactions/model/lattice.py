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

Transactions here name single items, never predicates. So repeatable read (PL-2.99) demands of them the same as
serializability, and G2-item is the only G2. The lattice still keeps the two apart, because a system that promises one
does not promise the other. Plain models ignore sessions: an order may put a session's later transaction first. Models
called strong-session keep each session's order; those called strong or strict keep realtime order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache


class ConsistencyModel(Enum):
    """The models, with the names that users give them."""

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


ALIASES: Mapping[str, ConsistencyModel] = {
    "PL-1": ConsistencyModel.READ_UNCOMMITTED,
    "PL-CS": ConsistencyModel.CURSOR_STABILITY,
    "PL-2+": ConsistencyModel.CONSISTENT_VIEW,
    "PL-2.99": ConsistencyModel.REPEATABLE_READ,
    "PL-3": ConsistencyModel.SERIALIZABLE,
    "PL-SI": ConsistencyModel.SNAPSHOT_ISOLATION,
    "PL-SS": ConsistencyModel.STRICT_SERIALIZABLE,
    "conflict-serializable": ConsistencyModel.SERIALIZABLE,
    "monotonic-atomic-view": ConsistencyModel.READ_COMMITTED,
    "strong-serializable": ConsistencyModel.STRICT_SERIALIZABLE,
}
"""Other names of the same models."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a model adds to the weaker ones that it implies."""

    weaker: tuple[ConsistencyModel, ...] = ()
    """The models right below."""
    forbids: tuple[str, ...] = ()
    """The anomalies that it forbids and none of the weaker models does."""
    about: str
    source: str


PROMISES: Mapping[ConsistencyModel, Promise] = {
    ConsistencyModel.READ_UNCOMMITTED: Promise(
        forbids=("G0", "cyclic-versions", "duplicate-elements", "garbage-read"),
        about="each item's versions have one order, and what is read was written",
        source="Adya",
    ),
    ConsistencyModel.PL_2: Promise(
        weaker=(ConsistencyModel.READ_UNCOMMITTED,),
        forbids=("G1a", "G1b", "G1c", "dirty-update", "future-read", "incompatible-order"),
        about="only final writes of committed transactions are read, and information flows one way",
        source="Adya",
    ),
    ConsistencyModel.READ_COMMITTED: Promise(
        weaker=(ConsistencyModel.PL_2,),
        about="once a transaction has read from another, its later reads do not miss what that one wrote",
        source="Biswas, Enea; Bailis et al. (VLDB 2014) call it monotonic atomic view",
    ),
    ConsistencyModel.CURSOR_STABILITY: Promise(
        weaker=(ConsistencyModel.PL_2,),
        forbids=("lost-update",),
        about="no two transactions update what both have read in the same version",
        source="Berenson et al.; Adya",
    ),
    ConsistencyModel.READ_ATOMIC: Promise(
        weaker=(ConsistencyModel.READ_COMMITTED,),
        forbids=("internal",),
        about="of each transaction all effects are seen, or none",
        source="Bailis et al. (SIGMOD 2014); Cerone, Bernardi, Gotsman",
    ),
    ConsistencyModel.READ_YOUR_WRITES: Promise(
        weaker=(ConsistencyModel.PL_2,), about="a session's reads do not miss its earlier writes", source="Terry et al."
    ),
    ConsistencyModel.MONOTONIC_READS: Promise(
        weaker=(ConsistencyModel.PL_2,),
        about="a session's reads do not miss what its earlier reads have shown",
        source="Terry et al.",
    ),
    ConsistencyModel.MONOTONIC_WRITES: Promise(
        weaker=(ConsistencyModel.STRONG_SESSION_READ_UNCOMMITTED, ConsistencyModel.PL_2),
        forbids=("G1c-process",),
        about="a session's writes take effect in order, everywhere",
        source="Terry et al.",
    ),
    ConsistencyModel.WRITES_FOLLOW_READS: Promise(
        weaker=(ConsistencyModel.PL_2,),
        about="who sees a write sees what its session had read before",
        source="Terry et al.",
    ),
    ConsistencyModel.PRAM: Promise(
        weaker=(ConsistencyModel.READ_YOUR_WRITES, ConsistencyModel.MONOTONIC_READS, ConsistencyModel.MONOTONIC_WRITES),
        about="each session's order is seen by everybody",
        source="Brzezinski, Sobaniec, Wawrzyniak",
    ),
    ConsistencyModel.STRONG_SESSION_READ_UNCOMMITTED: Promise(
        weaker=(ConsistencyModel.READ_UNCOMMITTED,),
        forbids=("G0-process",),
        about="the order of versions keeps to that of sessions",
        source="Kingsbury, Alvaro",
    ),
    ConsistencyModel.STRONG_SESSION_READ_COMMITTED: Promise(
        weaker=(ConsistencyModel.READ_COMMITTED, ConsistencyModel.STRONG_SESSION_READ_UNCOMMITTED),
        forbids=("G1c-process",),
        about="read committed in an order that keeps to that of sessions",
        source="Biswas, Enea; Kingsbury, Alvaro",
    ),
    ConsistencyModel.STRONG_SESSION_READ_ATOMIC: Promise(
        weaker=(
            ConsistencyModel.READ_ATOMIC,
            ConsistencyModel.STRONG_SESSION_READ_COMMITTED,
            ConsistencyModel.READ_YOUR_WRITES,
        ),
        about="of each transaction seen, and of each earlier one of the session, all effects are seen",
        source="Biswas, Enea",
    ),
    ConsistencyModel.CAUSAL: Promise(
        weaker=(
            ConsistencyModel.PRAM,
            ConsistencyModel.WRITES_FOLLOW_READS,
            ConsistencyModel.STRONG_SESSION_READ_ATOMIC,
        ),
        about="who sees an effect sees all its causes: what its session did and saw before, and so on",
        source="Biswas, Enea; Brzezinski, Sobaniec, Wawrzyniak",
    ),
    ConsistencyModel.CONSISTENT_VIEW: Promise(
        weaker=(ConsistencyModel.CURSOR_STABILITY, ConsistencyModel.READ_COMMITTED),
        forbids=("G-single-item",),
        about="reads show a consistent state, though others may see another one (PL-2+)",
        source="Adya",
    ),
    ConsistencyModel.PARALLEL_SNAPSHOT_ISOLATION: Promise(
        weaker=(ConsistencyModel.CONSISTENT_VIEW, ConsistencyModel.READ_ATOMIC),
        about="snapshots that are causal, and no two concurrent writers of an item",
        source="Cerone, Bernardi, Gotsman; Cerone, Gotsman",
    ),
    ConsistencyModel.STRONG_SESSION_PARALLEL_SNAPSHOT_ISOLATION: Promise(
        weaker=(ConsistencyModel.PARALLEL_SNAPSHOT_ISOLATION, ConsistencyModel.CAUSAL),
        forbids=("G-single-item-process",),
        about="parallel snapshot isolation whose snapshots hold what the session did before",
        source="Cerone, Gotsman",
    ),
    ConsistencyModel.SNAPSHOT_ISOLATION: Promise(
        weaker=(ConsistencyModel.PARALLEL_SNAPSHOT_ISOLATION,),
        forbids=("G-nonadjacent-item",),
        about="reads from one snapshot of one order, and no two concurrent writers of an item",
        source="Berenson et al.; Cerone, Gotsman",
    ),
    ConsistencyModel.STRONG_SESSION_SNAPSHOT_ISOLATION: Promise(
        weaker=(ConsistencyModel.SNAPSHOT_ISOLATION, ConsistencyModel.STRONG_SESSION_PARALLEL_SNAPSHOT_ISOLATION),
        forbids=("G-nonadjacent-item-process",),
        about="snapshot isolation whose snapshots hold what the session did before",
        source="Daudjee, Salem (VLDB 2006)",
    ),
    ConsistencyModel.STRONG_SNAPSHOT_ISOLATION: Promise(
        weaker=(ConsistencyModel.STRONG_SESSION_SNAPSHOT_ISOLATION,),
        forbids=("G0-realtime", "G1c-realtime", "G-single-item-realtime", "G-nonadjacent-item-realtime"),
        about="snapshot isolation whose snapshots hold all that had ended before",
        source="Daudjee, Salem (VLDB 2006)",
    ),
    ConsistencyModel.REPEATABLE_READ: Promise(
        weaker=(ConsistencyModel.CURSOR_STABILITY, ConsistencyModel.READ_COMMITTED),
        forbids=("G-single-item", "G-nonadjacent-item", "G2-item"),
        about="serializable as far as items go, though not predicates (PL-2.99)",
        source="Adya",
    ),
    ConsistencyModel.SERIALIZABLE: Promise(
        weaker=(ConsistencyModel.REPEATABLE_READ, ConsistencyModel.SNAPSHOT_ISOLATION),
        about="one after the other, in some order",
        source="Bernstein, Hadzilacos, Goodman; Adya",
    ),
    ConsistencyModel.STRONG_SESSION_SERIALIZABLE: Promise(
        weaker=(ConsistencyModel.SERIALIZABLE, ConsistencyModel.STRONG_SESSION_SNAPSHOT_ISOLATION),
        forbids=("G2-item-process",),
        about="one after the other, in an order that keeps to that of sessions",
        source="Daudjee, Salem (ICDE 2004)",
    ),
    ConsistencyModel.STRICT_SERIALIZABLE: Promise(
        weaker=(ConsistencyModel.STRONG_SESSION_SERIALIZABLE, ConsistencyModel.STRONG_SNAPSHOT_ISOLATION),
        forbids=("G2-item-realtime",),
        about="one after the other, in an order that keeps to realtime",
        source="Adya; Bernstein, Hadzilacos, Goodman",
    ),
}


def model_named(name: str) -> ConsistencyModel:
    """The model of a name, in any spelling: `serializable`, `:serializable`, `Snapshot_Isolation`, `pl-3`. Raises
    ValueError."""
    names = {_spelt(known): known for known in (*(model.value for model in ConsistencyModel), *ALIASES)}
    known = names.get(_spelt(name))
    if known is not None:
        return ALIASES[known] if known in ALIASES else ConsistencyModel(known)
    raise ValueError(f"no consistency model is called {name!r}; there are: {', '.join(names.values())}")


def _spelt(name: str) -> str:
    return name.strip().removeprefix(":").lower().replace("_", "-").replace(" ", "-")


@cache
def implied(model: ConsistencyModel) -> tuple[ConsistencyModel, ...]:
    """The model and all weaker ones, in the order of `ConsistencyModel`."""
    return tuple(other for other in ConsistencyModel if other in _BELOW[model])


@cache
def forbidden(model: ConsistencyModel) -> frozenset[str]:
    """All anomalies that the model forbids."""
    return frozenset(name for weaker in _BELOW[model] for name in PROMISES[weaker].forbids)


def stronger_too(models: Iterable[ConsistencyModel]) -> tuple[ConsistencyModel, ...]:
    """These models and all that imply one of them, in the order of `ConsistencyModel`: they are ruled out if these
    are."""
    broken = set(models)
    return tuple(model for model in ConsistencyModel if not broken.isdisjoint(_BELOW[model]))


def ruled_out(anomalies: Iterable[str]) -> tuple[ConsistencyModel, ...]:
    """All models that forbid one of the anomalies, in the order of `ConsistencyModel`."""
    found = set(anomalies)
    return tuple(model for model in ConsistencyModel if not found.isdisjoint(forbidden(model)))


def strongest(models: Iterable[ConsistencyModel]) -> tuple[ConsistencyModel, ...]:
    """The models that none of the others implies, in the order of `ConsistencyModel`."""
    return _strongest(frozenset(models))


@cache
def _strongest(models: frozenset[ConsistencyModel]) -> tuple[ConsistencyModel, ...]:
    return tuple(
        model for model in ConsistencyModel if model in models and not any(model in _BELOW[o] for o in models - {model})
    )


def weakest(models: Iterable[ConsistencyModel]) -> tuple[ConsistencyModel, ...]:
    """The models that imply none of the others, in the order of `ConsistencyModel`."""
    left = set(models)
    return tuple(model for model in ConsistencyModel if model in left and _BELOW[model] & left == {model})


def _below() -> dict[ConsistencyModel, frozenset[ConsistencyModel]]:
    below: dict[ConsistencyModel, frozenset[ConsistencyModel]] = {}
    open_models = list(PROMISES)
    while open_models:
        ready = [model for model in open_models if all(weaker in below for weaker in PROMISES[model].weaker)]
        for model in ready:
            below[model] = frozenset({model}).union(*(below[weaker] for weaker in PROMISES[model].weaker))
        open_models = [model for model in open_models if model not in below]
    return below


_BELOW: Mapping[ConsistencyModel, frozenset[ConsistencyModel]] = _below()
