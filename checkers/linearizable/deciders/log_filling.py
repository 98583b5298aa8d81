"""Append-only logs: whether the known positions are in order, and whether the others can be filled.

A position below a known one that nothing shows must be filled by an append whose position nothing shows: one that began
before everything behind the position ended, and ended after everything before it began. Appends that are left come
behind all known positions; an indefinite one of them need not have happened. Positions are filled in order, each by the
append that ends first of those that fit. So no append is left that cannot wait, and two of them are never in the wrong
order."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import NONE, Int64
from checkers.linearizable.deciders.log_places import APPEND, READ, Longest
from checkers.linearizable.deciders.spans import Contradiction, Spans
from checkers.linearizable.values import NEVER
from harness.compiled import compiled


@dataclass(frozen=True, kw_only=True)
class LogRow:
    """The operations that happened, and their places."""

    operations: Int64
    level: Int64
    """2 p + 1 for the append to position p, 2 p for a read of p elements."""


def out_of_order(spans: Spans, log_row: LogRow, longest: Longest) -> Contradiction | None:
    operations = log_row.operations
    begun = np.maximum.accumulate(np.append(-1, spans.start[operations]))[:-1]
    early = np.flatnonzero(spans.end[operations] < begun)
    if len(early) == 0:
        return None
    behind = int(operations[early[0]])
    before = int(operations[int(np.argmax(spans.start[operations[: early[0]]]))])
    return Contradiction(
        _with_proof(spans, longest, {before, behind}),
        f"{_described(spans, behind)} had ended when {_described(spans, before)} began, which comes before it",
    )


def _with_proof(spans: Spans, longest: Longest, operations: set[int]) -> frozenset[int]:
    """These operations, and the read that shows their places if they do not return these themselves."""
    say_so = [spans.f[one] == READ or spans.result[one] != NONE for one in operations]
    return frozenset(operations if all(say_so) else operations | {longest.read})


def _described(spans: Spans, one: int) -> str:
    if spans.f[one] == APPEND:
        return f"the append of {spans.render(spans.argument[one])} ({spans.when(one)})"
    size = 0 if spans.lists is None else len(spans.lists.of(one))
    return f"the read of {size} elements ({spans.when(one)})"


def filled(spans: Spans, free: Int64, log_row: LogRow, longest: Longest) -> LogRow | Contradiction:
    """The same row with the free appends at places where they fit."""
    first = len(longest.elements)
    last = (int(log_row.level.max(initial=2 * first)) - 1) // 2
    beyond = log_row.level[(log_row.level % 2 == 1) & (log_row.level > 2 * first)] // 2
    missing = last + 1 - first - len(beyond)
    if missing > len(free):
        return _too_few(spans, free, log_row, missing)
    is_hole = np.ones(last + 1 - first, dtype=np.bool_)
    is_hole[beyond - first] = False
    holes = first + np.flatnonzero(is_hole)
    behind = np.append(np.searchsorted(log_row.level, 2 * holes + 1), len(log_row.level))
    begun = np.maximum.accumulate(np.append(-1, spans.start[log_row.operations]))
    must_end = np.minimum.accumulate(np.append(spans.end[log_row.operations], NEVER)[::-1])[::-1]
    taken, wrong, hole = _fill(spans.start[free], spans.end[free], begun[behind], must_end[behind])
    if wrong >= 0:
        rivals = _rivals(spans.end[free], taken, wrong, hole)
        return _without_place(spans, int(free[wrong]), free[rivals], log_row, int(behind[hole]), longest)
    if hole >= 0:
        return _unfilled(spans, free, log_row, int(behind[hole]), int(holes[hole]), longest)
    happened = (taken < len(holes)) | spans.definite[free]
    rank = np.empty(len(free), dtype=np.int64)
    rank[np.argsort(spans.end[free], kind="stable")] = np.arange(len(free))
    place = np.where(taken < len(holes), np.append(holes, 0)[taken], last + 1 + rank)
    return LogRow(
        operations=np.concatenate((log_row.operations, free[happened])),
        level=np.concatenate((log_row.level, 2 * place[happened] + 1)),
    )


def _too_few(spans: Spans, free: Int64, log_row: LogRow, missing: int) -> Contradiction:
    top = int(log_row.operations[-1])
    return Contradiction(
        frozenset({top, *free.tolist()}),
        f"nothing shows what is at {missing} positions below that of {_described(spans, top)}, but only {len(free)} "
        "appends can be there",
    )


def _unfilled(
    spans: Spans, free: Int64, log_row: LogRow, behind: int, position: int, longest: Longest
) -> Contradiction:
    """The contradiction that something behind this position in the row ended too early."""
    later = log_row.operations[behind:]
    proof = int(later[np.argmin(spans.end[later])])
    begun = free[spans.start[free] < spans.end[proof]]
    return Contradiction(
        _with_proof(spans, longest, {proof}) | set(begun.tolist()),
        f"when {_described(spans, proof)} ended, nothing can have been at position {position} before it: no append "
        "that had begun is left for it",
    )


def _without_place(
    spans: Spans, wrong: int, rivals: Int64, log_row: LogRow, behind: int, longest: Longest
) -> Contradiction:
    """The contradiction that all places for an append, up to there in the row, are taken by rivals that needed them."""
    earlier = log_row.operations[:behind]
    proof = int(np.argmax(spans.start[earlier]))
    begun = int(spans.start[[wrong, *rivals.tolist()]].min())
    over = np.flatnonzero(spans.end[earlier[:proof]] < begun)
    between = earlier[int(over[-1]) if len(over) else 0 : proof + 1]
    appends = between[spans.f[between] == APPEND]
    return Contradiction(
        _with_proof(spans, longest, {int(earlier[proof]), *appends.tolist()}) | {wrong, *rivals.tolist()},
        f"{_described(spans, wrong)} had ended when {_described(spans, int(earlier[proof]))} began, and no position "
        "before that is left for it",
    )


@compiled
def _fill(start: Int64, end: Int64, begun: Int64, must_end: Int64) -> tuple[Int64, int, int]:
    """The hole for each append, by ascending start; the last hole has room for all that are left.

    Also returns an append without a hole, or -1, and the hole at which that was found, or -1.
    """
    holes = len(begun)
    taken = np.full(len(start), holes - 1, dtype=np.int64)
    waiting = [(np.int64(0), np.int64(0))]
    waiting.pop()
    at = 0
    for hole in range(holes - 1):
        while at < len(start) and start[at] < must_end[hole]:
            heapq.heappush(waiting, (end[at], np.int64(at)))
            at += 1
        if len(waiting) == 0:
            return taken, -1, hole
        ends, one = heapq.heappop(waiting)
        if ends < begun[hole]:
            return taken, int(one), hole
        taken[one] = hole
    while at < len(start):
        heapq.heappush(waiting, (end[at], np.int64(at)))
        at += 1
    if len(waiting) and waiting[0][0] < begun[holes - 1]:
        return taken, int(waiting[0][1]), holes - 1
    return taken, -1, -1


@compiled
def _rivals(end: Int64, taken: Int64, wrong: int, hole: int) -> Int64:
    """The appends that took the holes that this append could have taken before this one; none of them could wait."""
    by_hole = np.full(hole, -1, dtype=np.int64)
    for one in range(len(end)):
        if taken[one] < hole:
            by_hole[taken[one]] = one
    since = hole
    while since > 0 and by_hole[since - 1] >= 0 and end[by_hole[since - 1]] <= end[wrong]:
        since -= 1
    return by_hole[since:]
