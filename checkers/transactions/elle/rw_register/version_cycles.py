"""Versions of a register that precede each other: those that cannot be put in order, shown as one cycle for each key.

    T1 reads x = 1 and writes x = 2 · T2 reads x = 2 and writes x = 1

By wfr-keys 1 precedes 2 and 2 precedes 1. The initial version can be put in order; neither of these two can.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Bool, Int64
from checkers.transactions.elle.rw_register.precedences import OrderedBy, Precedences, Versions
from checkers.transactions.elle.rw_register.realtime import KeyTimes, Spread
from harness.compiled import compiled


class Links(NamedTuple):
    """Version v precedes after[out[v]:out[v + 1]]."""

    out: Int64
    after: Int64


class Progress(NamedTuple):
    """How far each version has come on its way into the order."""

    done: Bool
    """Whether it is in the order."""
    free: Bool
    """Whether realtime does not hold it back any more."""
    causes: Int64
    """How many versions that link to it are not in the order yet, including the initial one."""
    ready: Int64
    """A stack of versions of one key that nothing holds back."""


def no_key(versions: Versions) -> Bool:
    return np.zeros(len(versions.first) - 1, dtype=np.bool_)


def version_cycles(
    versions: Versions, links: Precedences, spread: Spread
) -> tuple[Bool, tuple[tuple[int, Precedences], ...]]:
    """(whether versions of each key precede each other, a cycle for each key in which they do)."""
    out = np.searchsorted(links.before, np.arange(len(versions) + 1))
    in_order = _in_order(KeyTimes.of(versions, spread), Links(out, links.after))
    stuck = np.flatnonzero(~in_order)
    cyclic = no_key(versions)
    cyclic[versions.key[stuck]] = True
    if not len(stuck):
        return cyclic, ()
    cause = np.full(len(versions), -1, dtype=np.int64)
    between = np.flatnonzero(~in_order[links.before] & ~in_order[links.after])
    cause[links.after[between[::-1]]] = between[::-1]
    cycles = []
    for k in np.flatnonzero(cyclic).tolist():
        mine = stuck[(stuck >= versions.first[k]) & (stuck < versions.first[k + 1])]
        cycles.append((k, _cycle(mine, links, cause, spread)))
    return cyclic, tuple(cycles)


def _cycle(stuck: Int64, links: Precedences, cause: Int64, spread: Spread) -> Precedences:
    """A cycle among versions none of which comes first: each is the cause of the next."""
    by_end = stuck[np.argsort(spread.end[stuck], kind="stable")]
    steps: dict[int, Precedences] = {}
    at = int(stuck[0])
    while at not in steps:
        if cause[at] >= 0:
            steps[at] = links.part(cause[at : at + 1])
        else:
            earlier = by_end[:2][by_end[:2] != at][:1]
            if len(earlier) and spread.end[earlier[0]] < spread.start[at]:
                rows = spread.end_row[earlier], spread.start_row[at : at + 1]
                steps[at] = Precedences.by(OrderedBy.REALTIME, earlier, np.array([at]), *rows)
            else:
                nothing = np.array([-1])
                steps[at] = Precedences.by(OrderedBy.INITIAL, stuck[:1], np.array([at]), nothing, nothing)
        at = int(steps[at].before[0])
    last, cycle = at, []
    while True:
        cycle.append(steps[at])
        at = int(steps[at].before[0])
        if at == last:
            return Precedences.joined(cycle[::-1])


@compiled
def _in_order(times: KeyTimes, links: Links) -> Bool:
    """Which versions can be put in order, the initial one of each key first.

    Realtime needs no links: of the versions that are not in order yet, the one that ended first holds back all that
    began after that.
    """
    versions = len(times.end)
    done = np.zeros(versions, dtype=np.bool_)
    free = np.zeros(versions, dtype=np.bool_)
    causes = np.ones(versions, dtype=np.int64)
    for i in range(len(links.after)):
        causes[links.after[i]] += 1
    progress = Progress(done, free, causes, np.empty(versions, dtype=np.int64))
    for k in range(len(times.first) - 1):
        causes[times.first[k]] -= 1
        _order_key(times, links, progress, k)
    return done


@compiled
def _order_key(times: KeyTimes, links: Links, progress: Progress, k: int) -> None:
    """Put all versions of the key into the order that can be."""
    stop = times.first[k + 1]
    earliest, second, begun = times.first[k], times.first[k] + 1, times.first[k]
    while True:
        # By realtime, a version is free if it began before the first end among those that are left. The version with
        # that first end is free if it began before the second one.
        earliest = _first_left(times, progress, earliest, stop)
        if earliest == stop:
            return
        second = _first_left(times, progress, max(second, earliest + 1), stop)
        own = times.by_end[earliest]
        count = 0
        if second == stop or times.start[own] <= times.end[times.by_end[second]]:
            count = _free(progress, own, count)
        while begun < stop and times.start[times.by_start[begun]] <= times.end[own]:
            count = _free(progress, times.by_start[begun], count)
            begun += 1
        if count == 0:
            return
        _put_in_order(times, links, progress, k, count)


@compiled
def _first_left(times: KeyTimes, progress: Progress, at: int, stop: int) -> int:
    """The first place in `by_end`, from `at` on, whose version is not in the order yet."""
    while at < stop and progress.done[times.by_end[at]]:
        at += 1
    return at


@compiled
def _free(progress: Progress, version: int, count: int) -> int:
    """Notes that realtime does not hold this version back; returns how many are ready now."""
    if not progress.free[version]:
        progress.free[version] = True
        if progress.causes[version] == 0:
            progress.ready[count] = version
            count += 1
    return count


@compiled
def _caused(progress: Progress, version: int, count: int) -> int:
    """Notes that one more version that precedes this one is in the order; returns how many are ready now."""
    progress.causes[version] -= 1
    if progress.causes[version] == 0 and progress.free[version]:
        progress.ready[count] = version
        count += 1
    return count


@compiled
def _put_in_order(times: KeyTimes, links: Links, progress: Progress, k: int, count: int) -> None:
    """Put all versions into the order that are ready, and all that become ready by that."""
    initial, stop = times.first[k], times.first[k + 1]
    while count:
        count -= 1
        v = progress.ready[count]
        progress.done[v] = True
        if v == initial:
            for u in range(initial + 1, stop):
                count = _caused(progress, u, count)
        for i in range(links.out[v], links.out[v + 1]):
            count = _caused(progress, links.after[i], count)
