"""Finds which operation put or appended each value of the states that gets show.

A value that only one operation gave comes from that one. If several gave the same value, most of them are distinguished
by time: an operation began before any operation that shows its effect ended, and did not end before an operation began
that came before its effect. The choices that are left are tried one after the other.

    append "a;" (0 to 1)    get "a;" (2 to 3)    append "a;" (4 to 5)    the get shows the first one
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod

import numpy as np

from checkers.kernels.columns import NO_INDEX, NONE, Bool, Int8, Int64
from checkers.linearizable.deciders.spans import Paths, Spans
from checkers.linearizable.values import NEVER
from harness.compiled import compiled

GET, PUT, APPEND = range(3)
"""The functions, as numbers."""

EMPTY = 0
"""The state in which nothing was put."""

ROUNDS = 4
"""How many times known givers of some states are used to find those of others."""

WAYS = 64
"""The most ways that are tried in which states may have come about."""


@dataclass(frozen=True, kw_only=True)
class Places:
    """The states that were shown, and the operations that gave their last values."""

    paths: Paths
    """The states. One that came about twice is two states here."""
    seen: Int64
    """By operation: the state that it showed; NO_INDEX for all but gets, and for an impossible null."""
    giver: Int64
    """By state: the operation that gave its last value; NO_INDEX if none can have, or if it is open."""
    come_back: bool
    """Whether a state may have come about twice, and times do not show which time each get showed."""
    choices: tuple[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], ...]
    """Groups of states whose givers are open, and the ways to choose them."""
    known_by_time: bool
    """Whether some givers are known by time, not by their values alone."""

    @property
    def ways(self) -> int:
        return prod(len(ways) for _, ways in self.choices)

    def givers(self) -> Iterator[Int64]:
        """At most `WAYS` ways to choose all givers."""
        for chosen in islice(product(*(ways for _, ways in self.choices)), WAYS):
            giver = self.giver.copy()
            for (states, _), operations in zip(self.choices, chosen, strict=True):
                giver[list(states)] = operations
            yield giver


def places(spans: Spans, paths: Paths) -> Places:
    visits = _visits(spans, paths, _seen(spans, paths))
    paths, seen = visits.paths, visits.seen
    giver = np.full(len(paths.before), NO_INDEX, dtype=np.int64)
    shown, _, _ = _bounds(paths.before, seen, spans.start, spans.end, giver)
    states = np.flatnonzero(shown & (paths.token != NONE))
    states = states[states != paths.begins]
    given = np.flatnonzero(spans.f != GET)
    size = 1 + int(max(paths.token.max(), spans.argument[given].max(initial=0)))
    operations_of, states_of = (np.bincount(of, minlength=size) for of in (spans.argument[given], paths.token[states]))
    only = np.full(size, NO_INDEX, dtype=np.int64)
    only[spans.argument[given]] = given
    token = paths.token[states]
    alone = (operations_of[token] == 1) & (states_of[token] == 1)
    sure, operation = states[alone], only[token[alone]]
    fits = _fits(paths, sure, spans.f[operation])
    giver[sure[fits]] = operation[fits]
    groups = [
        (states[token == one], given[spans.argument[given] == one])
        for one in np.unique(token[(operations_of[token] > 1) | (states_of[token] > 1)]).tolist()
        if operations_of[one]
    ]
    return Places(
        paths=paths,
        seen=seen,
        giver=giver,
        come_back=visits.doubtful,
        choices=_choices(spans, visits, giver, groups),
        known_by_time=bool(groups) or bool(visits.begun_by),
    )


def _seen(spans: Spans, paths: Paths) -> Int64:
    seen = np.full(len(spans), NO_INDEX, dtype=np.int64)
    gets = np.flatnonzero((spans.f == GET) & spans.definite)
    results = spans.result[gets]
    null = EMPTY if paths.begins == EMPTY else NO_INDEX
    seen[gets] = np.where(results == NONE, null, np.append(paths.of, NO_INDEX)[np.where(results == NONE, -1, results)])
    return seen


@dataclass(frozen=True, kw_only=True)
class _Visits:
    """States, each of which came about once."""

    paths: Paths
    seen: Int64
    begun_by: Mapping[int, int]
    """State right behind the empty one -> the operation that put it there, if times show that."""
    doubtful: bool
    """Whether some states may still have come about twice."""


def _visits(spans: Spans, paths: Paths, seen: Int64) -> _Visits:
    """Splits states that came about several times: if a value was put several times, a get shows the put after which
    nothing else was put before the get began."""
    puts = np.flatnonzero((spans.f == PUT) & spans.definite)
    by_start = puts[np.argsort(spans.start[puts], kind="stable")]
    first_end = np.append(np.minimum.accumulate(spans.end[by_start][::-1])[::-1], NEVER)
    root = _roots(paths.before)
    begun_by: dict[int, int] = {}
    doubtful = False
    gets = np.flatnonzero(seen > EMPTY)
    root_shown = root[seen[gets]]
    for state in np.unique(root_shown).tolist():
        if state <= EMPTY:
            continue
        begins = np.flatnonzero((spans.f != GET) & (spans.argument == paths.token[state]))
        begins = begins[_fits(paths, np.full(len(begins), state), spans.f[begins])]
        start, end = spans.start[begins], spans.end[begins]
        in_time = (spans.f[begins] == PUT) | (start < first_end[0])
        if state == paths.begins:
            begins = np.append(begins, NO_INDEX)
            start, end, in_time = np.append(start, -1), np.append(end, -1), np.append(in_time, True)
        if len(begins) < 2:
            continue
        showing_it = gets[root_shown == state]
        replaced = first_end[np.searchsorted(spans.start[by_start], end, side="right")]
        possible = in_time & (start < spans.end[showing_it][:, None]) & (replaced >= spans.start[showing_it][:, None])
        if np.any(possible.sum(axis=1) > 1):
            doubtful = True
            continue
        shown_from = np.argmax(possible, axis=1)
        kept = len(begins) - 1 if state == paths.begins else int(shown_from[0])
        for one in np.unique(shown_from).tolist():
            at = state
            if one != kept:
                at = len(paths.before)
                paths, seen = _twice(paths, seen, np.flatnonzero(root == state), showing_it[shown_from == one])
            if begins[one] != NO_INDEX:
                begun_by[at] = int(begins[one])
    return _Visits(paths=paths, seen=seen, begun_by=begun_by, doubtful=doubtful)


def _twice(paths: Paths, seen: Int64, states: Int64, gets: Int64) -> tuple[Paths, Int64]:
    """The paths with a second copy of these states, the first of which begins the others, for these gets."""
    new = np.arange(len(paths.before))
    new[states] = len(paths.before) + np.arange(len(states))
    seen = seen.copy()
    seen[gets] = new[seen[gets]]
    before = np.append(paths.before, new[paths.before[states]])
    return replace(paths, before=before, token=np.append(paths.token, paths.token[states])), seen


@compiled
def _roots(before: Int64) -> Int64:
    """By state: the state right behind the empty one that it grew from."""
    root = np.full(len(before), NO_INDEX, dtype=np.int64)
    for state in range(1, len(before)):
        if before[state] == 0:
            root[state] = state
        elif before[state] > 0:
            root[state] = root[before[state]]
    return root


def _fits(paths: Paths, states: Int64, f: Int8) -> Bool:
    """Whether operations of these functions may have led to the states. An append leads from the empty state only if
    the object began empty."""
    first = paths.before[states] == EMPTY
    return np.asarray(np.where(first & (f == PUT), True, (f == APPEND) & (~first | (paths.begins == EMPTY))))


@compiled
def _bounds(before: Int64, seen: Int64, start: Int64, end: Int64, giver: Int64) -> tuple[Bool, Int64, Int64]:
    """By state: (whether it was shown, the first end of an operation that shows it, the last start of an operation that
    came before it). A state comes behind the one that it grew from."""
    shown = np.zeros(len(before), dtype=np.bool_)
    soonest = np.full(len(before), NEVER, dtype=np.int64)
    latest = np.full(len(before), NO_INDEX, dtype=np.int64)
    begun = np.full(len(before), NO_INDEX, dtype=np.int64)
    for operation in range(len(seen)):
        state = seen[operation]
        if state >= 0:
            shown[state] = True
            soonest[state] = min(soonest[state], end[operation])
            begun[state] = max(begun[state], start[operation])
    for state in range(len(before) - 1, 0, -1):
        above = before[state]
        if giver[state] >= 0:
            begun[state] = max(begun[state], start[giver[state]])
        if above >= 0:
            shown[above] |= shown[state]
            soonest[above] = min(soonest[above], soonest[state])
            if giver[state] >= 0:
                soonest[above] = min(soonest[above], end[giver[state]])
    for state in range(1, len(before)):
        above = before[state]
        if above > 0:
            latest[state] = max(latest[above], begun[above])
    return shown, soonest, latest


Group = tuple[Int64, Int64]
"""(states with the same last value, the operations that gave it)."""


def _choices(
    spans: Spans, visits: _Visits, giver: Int64, groups: Sequence[Group]
) -> tuple[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]], ...]:
    """The choices that are open. Where times decide, `giver` is changed."""
    paths, seen = visits.paths, visits.seen
    left = list(groups)
    for _ in range(ROUNDS):
        _, soonest, latest = _bounds(paths.before, seen, spans.start, spans.end, giver)
        found = []
        for states, operations in left:
            ordered = states[np.argsort(soonest[states], kind="stable")]
            candidates = [
                operations[
                    (spans.start[operations] < soonest[state])
                    & (spans.end[operations] > latest[state])
                    & _fits(paths, np.full(len(operations), state), spans.f[operations])
                    & (operations == visits.begun_by.get(state, operations))
                ]
                for state in ordered.tolist()
            ]
            by_end = [some[np.argsort(spans.end[some], kind="stable")].tolist() for some in candidates]
            found.append((ordered, tuple(islice(_apart(by_end), WAYS + 1))))
        for states, ways in found:
            if len(ways) == 1:
                giver[states] = ways[0]
        open_ones = [n for n, (_, ways) in enumerate(found) if len(ways) > 1]
        if len(open_ones) == len(left) or not open_ones:
            break
        left = [left[n] for n in open_ones]
    return tuple((tuple(states.tolist()), ways) for states, ways in found if len(ways) > 1) if left else ()


def _apart(candidates: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """All ways to choose one candidate from each, no two of them the same."""
    if not candidates:
        yield ()
        return
    for one in candidates[0]:
        for rest in _apart([[other for other in some if other != one] for some in candidates[1:]]):
            yield (one, *rest)


def showing(spans: Spans, found: Places, operations: frozenset[int]) -> frozenset[int]:
    """These operations, and for each effect that none of them shows the first get to end that shows it."""
    gets = np.flatnonzero(found.seen >= 0)
    gets = gets[np.argsort(spans.end[gets], kind="stable")]
    paths = found.paths
    first = _first_shown(paths.before, found.seen, gets)
    shown = set()
    for get in operations:
        state = int(found.seen[get])
        while state > EMPTY:
            shown.add(int(paths.token[state]))
            state = int(paths.before[state])
    of_token: dict[int, list[int]] = {}
    for state in np.flatnonzero(first >= 0).tolist():
        of_token.setdefault(int(paths.token[state]), []).append(int(first[state]))
    given = [int(spans.argument[one]) for one in operations if spans.f[one] != GET]
    return operations | {get for token in given if token not in shown for get in of_token.get(token, ())}


@compiled
def _first_shown(before: Int64, seen: Int64, gets: Int64) -> Int64:
    """By state: the first of these gets that shows it."""
    first = np.full(len(before), NO_INDEX, dtype=np.int64)
    for get in gets:
        state = seen[get]
        while state > 0 and first[state] < 0:
            first[state] = get
            state = before[state]
    return first
