"""Decides weak levels: is there an order of all transactions that explains what was read?

A level says which transactions a transaction sees (`checkers.transactions.evidence.proof` has the table). If r reads a
key from w and sees u, which writes the key too, then u precedes w. Reads, known orders of versions and, at some levels,
sessions are part of the order themselves. What these levels let a transaction see follows from the history alone, not
from the order that is looked for. So all edges that are forced can be written down at once, and an order explains the
history exactly if it keeps to them: one exists unless they have a cycle.

Takes `Committed`: what is wrong within a transaction or with a single read has been judged before. Nothing is said
about realtime, nor about predicates.

Sources: Biswas, Enea, "On the Complexity of Checking Transactional Consistency" (OOPSLA 2019) for the axioms; Moldrup,
Pavlogiannis, "AWDIT: An Optimal Weak Database Isolation Tester" (PLDI 2025) for how to decide read committed, read
atomic and causal; Adya (1999) for PL-2; Terry et al., "Session Guarantees for Weakly Consistent Replicated Data" (PDIS
1994).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from checkers import search_budget
from checkers.api.verdict import Verdict
from checkers.kernels.columns import Int32
from checkers.transactions.evidence.proof import Bound, Decision, Established, Proof
from checkers.transactions.history.committed import INITIAL, Committed
from checkers.transactions.orders.weak.accesses import Accesses
from checkers.transactions.orders.weak.atomicity import own_writes, read_atomic, read_committed
from checkers.transactions.orders.weak.guarantees import Respected, SessionKnowledge, guaranteed
from checkers.transactions.orders.weak.pipelines import pipelined
from checkers.transactions.orders.weak.precedence import NOTHING, Base, Forced, Successors, cycle, ordered
from checkers.transactions.orders.weak.visibility import visible
from checkers.transactions.orders.weak.witness import Sight, Witnesses

Forces = Callable[[Accesses, Int32], Forced]
"""A function that finds what a level forces, given an order by what comes first at that level anyway."""


@dataclass(frozen=True, kw_only=True)
class Level:
    weaker: tuple[str, ...] = ()
    """The levels right below."""
    base: Base
    forces: Forces
    sight: Sight | None = None
    """The paths by which a transaction sees another; None: by one read earlier in the same transaction."""


def _nothing(accesses: Accesses, order: Int32) -> Forced:
    return NOTHING


def _read_committed(accesses: Accesses, order: Int32) -> Forced:
    return read_committed(accesses)


def _read_atomic(accesses: Accesses, order: Int32) -> Forced:
    return read_atomic(accesses)


def _session_read_atomic(accesses: Accesses, order: Int32) -> Forced:
    return read_atomic(accesses) + own_writes(accesses)


def _guarantee(knowledge: SessionKnowledge, respected: Respected) -> Forces:
    return lambda accesses, order: guaranteed(accesses, knowledge, respected)


def _pram(accesses: Accesses, order: Int32) -> Forced:
    return pipelined(accesses)


READ_LAST = (-1, -1, True)

LEVELS: Mapping[str, Level] = {
    "causal": Level(
        weaker=("pram", "writes-follow-reads", "strong-session-read-atomic"),
        base=Base.READS_AND_SESSIONS,
        forces=visible,
        sight=Sight(states=((1, 1, False), (1, 1, True))),
    ),
    "pram": Level(
        weaker=("read-your-writes", "monotonic-reads", "monotonic-writes"),
        base=Base.READS_AND_SESSIONS,
        forces=_pram,
        sight=Sight(states=((3, 1, False), (2, 1, True), (-1, 4, True), (-1, 4, False), (-1, 4, True))),
    ),
    "strong-session-read-atomic": Level(
        weaker=("read-atomic", "strong-session-read-committed", "read-your-writes"),
        base=Base.READS_AND_SESSIONS,
        forces=_session_read_atomic,
        sight=Sight(states=((1, 2, False), READ_LAST, (-1, 2, True))),
    ),
    "writes-follow-reads": Level(
        weaker=("PL-2",),
        base=Base.READS,
        forces=_guarantee(SessionKnowledge.READ, Respected.BY_READERS),
        sight=Sight(states=((1, -1, False), (3, 2, False), (3, 2, False), READ_LAST)),
    ),
    "monotonic-reads": Level(
        weaker=("PL-2",),
        base=Base.READS,
        forces=_guarantee(SessionKnowledge.READ, Respected.BY_ITSELF),
        sight=Sight(states=((1, -1, False), (-1, 2, False), (-1, 2, True))),
    ),
    "monotonic-writes": Level(
        weaker=("strong-session-PL-2",),
        base=Base.READS_AND_SESSIONS,
        forces=_guarantee(SessionKnowledge.WRITTEN, Respected.BY_READERS),
        sight=Sight(states=((-1, 1, False), (2, 1, False), READ_LAST)),
    ),
    "read-your-writes": Level(
        weaker=("PL-2",),
        base=Base.READS,
        forces=_guarantee(SessionKnowledge.WRITTEN, Respected.BY_ITSELF),
        sight=Sight(states=((-1, 1, False), (-1, 1, True))),
    ),
    "read-atomic": Level(
        weaker=("read-committed",),
        base=Base.READS,
        forces=_read_atomic,
        sight=Sight(states=((1, -1, False), READ_LAST)),
    ),
    "strong-session-read-committed": Level(
        weaker=("read-committed", "strong-session-PL-2"), base=Base.READS_AND_SESSIONS, forces=_read_committed
    ),
    "read-committed": Level(weaker=("PL-2",), base=Base.READS, forces=_read_committed),
    "strong-session-PL-2": Level(weaker=("PL-2",), base=Base.READS_AND_SESSIONS, forces=_nothing),
    "PL-2": Level(base=Base.READS, forces=_nothing),
}
"""All weak levels; each comes behind all stronger ones."""


OUT_OF_TIME = Decision(verdict=Verdict.UNKNOWN, established=Established(bound=Bound.TIME))


def _implied(name: str) -> tuple[str, ...]:
    """All weaker levels, in the order of LEVELS."""
    found = {weaker for level in LEVELS[name].weaker for weaker in (level, *_implied(level))}
    return tuple(level for level in LEVELS if level in found)


IMPLIED: Mapping[str, tuple[str, ...]] = {name: _implied(name) for name in LEVELS}


def weak_levels(committed: Committed, levels: Collection[str] = tuple(LEVELS)) -> Mapping[str, Decision]:
    """The decision of each level; VALID comes without an order. A level is not looked at if a stronger one allows the
    history, and it shares the proof of a weaker one that forbids it. Once searches are long over no further level is
    looked at."""
    question = _Question(Accesses.of(committed))
    cycles: dict[str, Int32 | None] = {}
    """The cycle found at each level; None where there is none."""
    for name in LEVELS:
        if name not in levels:
            continue
        if any(name in IMPLIED[stronger] and cycles[stronger] is None for stronger in cycles):
            cycles[name] = None
        elif not search_budget.is_long_over():
            cycles[name] = question.cycle(LEVELS[name])
    proofs: dict[str, Proof] = {}
    decisions: dict[str, Decision] = {}
    for name in reversed(list(LEVELS)):
        if name not in cycles:
            continue
        found = cycles[name]
        if found is None:
            decisions[name] = Decision(verdict=Verdict.VALID)
            continue
        shared = [proofs[weaker] for weaker in IMPLIED[name] if weaker in proofs]
        proofs[name] = shared[-1] if shared else question.proof(LEVELS[name], found)
        decisions[name] = Decision(verdict=Verdict.INVALID, proof=proofs[name])
    return {name: decisions.get(name, OUT_OF_TIME) for name in levels}


def explaining_order(committed: Committed, level: str) -> Int32 | None:
    """An order that explains every read at this level, or None if there is none."""
    return _Question(Accesses.of(committed)).order(LEVELS[level])


@dataclass(frozen=True)
class _Question:
    """One history, and what several levels need of it."""

    accesses: Accesses
    _bases: dict[Base, tuple[Successors, Int32]] = field(default_factory=dict)

    @cached_property
    def _witnesses(self) -> Witnesses:
        return Witnesses.of(self.accesses)

    def _base(self, base: Base) -> tuple[Successors, Int32]:
        """What comes first anyway, and its order, which is too short if there is a cycle."""
        if base not in self._bases:
            successors = Successors.base(self.accesses, base)
            self._bases[base] = successors, ordered(successors, self._none, len(self.accesses))
        return self._bases[base]

    @cached_property
    def _none(self) -> Successors:
        return Successors.none(len(self.accesses))

    def _precedence(self, level: Level) -> tuple[Successors, Successors, Int32]:
        """What comes first anyway, what is forced, and the order of both. What is forced is not looked for if what
        comes first has a cycle already."""
        base, order = self._base(level.base)
        if len(order) < len(self.accesses) or level.forces is _nothing:
            return base, self._none, order
        forced = level.forces(self.accesses, order)
        first = np.flatnonzero(forced.target == INITIAL)[:1]
        if len(first):
            forced = Forced(
                source=np.append(forced.source[first], INITIAL).astype(np.int32),
                target=np.append(forced.target[first], forced.source[first]).astype(np.int32),
            )
        nodes = len(self.accesses) + forced.joints
        successors = Successors.of(forced.source, forced.target, nodes)
        return base, successors, ordered(base, successors, len(self.accesses))

    def cycle(self, level: Level) -> Int32 | None:
        base, forced, order = self._precedence(level)
        if len(order) == len(forced.first) - 1:
            return None
        return cycle(base, forced, len(self.accesses), order)

    def order(self, level: Level) -> Int32 | None:
        _, forced, order = self._precedence(level)
        return order[order < len(self.accesses)] if len(order) == len(forced.first) - 1 else None

    def proof(self, level: Level, found: Int32) -> Proof:
        return self._witnesses.proof(found, level.base, level.sight)
