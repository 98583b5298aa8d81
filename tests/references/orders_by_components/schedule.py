"""An order of events that explains all reads, found by running them: of those that can run, the one that ended first.

A transaction may run once all that precedes it has run and, for each key it writes, so have all others that read the
version before. At snapshot isolation it may begin if no other one that writes one of its keys has begun and not
committed. Where none can run, one is made to run, and the order does not explain all reads.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from checkers.kernels.adjacency import followers
from checkers.kernels.columns import NO_INDEX, Bool, Int32, Int64
from checkers.transactions.orders.events import Accesses, Events
from harness.compiled import compiled, inlined


def scheduled(events: Events, source: Int32, target: Int32) -> tuple[Int32, int]:
    """All events, INITIAL first, and how many were made to run. The edges must have no cycle."""
    first, targets = followers(source, target, events.size)
    urgency = np.concatenate(
        (
            np.repeat(events.settled, events.width),
            # A moment comes as soon as it can: all that began after it waits for it.
            np.full(events.size - len(events.committed) * events.width, -1),
        )
    )
    event_of = np.argsort(urgency, kind="stable")
    turn = np.empty(events.size, dtype=np.int64)
    turn[event_of] = np.arange(events.size)
    return _run(first, targets, _Urgency(turn, event_of), events.width, events.accesses)


class _Urgency(NamedTuple):
    """Who runs first of those who can."""

    turn: Int64
    """int64[events]: the place of each event among all, the most urgent one first;"""
    event_of: Int64
    """and the event at each place."""


class _Course(NamedTuple):
    """What has run, and what waits for it."""

    outstanding: Int32
    """int32[versions]: reads that have not run."""
    current: Int64
    """int64[keys]: the version that was written last."""
    held: Int32
    """int32[keys]: writers that have begun and not committed."""
    head: Int32
    """int32[keys]: the first event that waits for the key, or NO_INDEX;"""
    behind: Int32
    """int32[events]: and the next one."""
    blocked: Bool
    """bool[events]: whether it waits for a key."""
    ran: Bool
    """bool[events]"""
    waiting: Int32
    """int32[events]: events that precede it and have not run."""


@compiled
def _course(first: Int64, targets: Int32, accesses: Accesses) -> _Course:
    size, keys = len(first) - 1, len(accesses.writers_first) - 1
    versions = len(accesses.write_key)
    outstanding = np.zeros(versions + keys, dtype=np.int32)
    for version in accesses.read_version:
        outstanding[version] += 1
    waiting = np.zeros(size, dtype=np.int32)
    for e in targets:
        waiting[e] += 1
    return _Course(
        outstanding,
        versions + np.arange(keys),
        np.zeros(keys, dtype=np.int32),
        np.full(keys, NO_INDEX, dtype=np.int32),
        np.full(size, NO_INDEX, dtype=np.int32),
        np.zeros(size, dtype=np.bool_),
        np.zeros(size, dtype=np.bool_),
        waiting,
    )


@compiled
def _run(first: Int64, targets: Int32, urgency: _Urgency, width: int, accesses: Accesses) -> tuple[Int32, int]:
    """The order in which events ran, int32[events], and how many were made to.

    T1 writes x = 1,  T2 writes x = 2,  T3 reads x = 1,  T4 reads x = 2;  they ended in the order T2 T1 T4 T3.

    T2 runs;  T1 cannot, as T4 has still to read x = 2;  T4 runs, which lets T1 run;  T3 runs:  T2 T4 T1 T3
    """
    size = len(first) - 1
    turn, event_of = urgency.turn, urgency.event_of
    course = _course(first, targets, accesses)
    head, behind, blocked, ran, waiting = course.head, course.behind, course.blocked, course.ran, course.waiting
    read_first, write_first = accesses.read_first, accesses.write_first
    in_transactions = (len(read_first) - 1) * width
    order = np.empty(size, dtype=np.int32)
    late = [np.int64(0)]
    late.pop()
    ready = [turn[e] for e in range(size) if waiting[e] == 0]
    heapq.heapify(ready)
    done, forced = 0, 0
    while done < size:
        made = len(ready) == 0
        event = event_of[heapq.heappop(late if made else ready)]
        if ran[event] or blocked[event] != made:
            continue
        forced += made
        t = event // width
        begins = event < in_transactions and event == t * width
        commits = event < in_transactions and event == t * width + width - 1
        key = NO_INDEX if made or not (begins or commits) else _hindering_key(accesses, course, t, begins, width)
        if key != NO_INDEX:
            behind[event], head[key], blocked[event] = head[key], event, True
            heapq.heappush(late, turn[event])
            continue
        ran[event] = True
        order[done] = event
        done += 1
        if begins:
            for i in range(read_first[t], read_first[t + 1]):
                if _read(accesses, course, i) <= 1:
                    _wake(head, behind, blocked, ready, turn, accesses.read_key[i])
            _hold(accesses, course, t, width)
        if commits:
            for i in range(write_first[t], write_first[t + 1]):
                _write(accesses, course, i, width)
                _wake(head, behind, blocked, ready, turn, accesses.write_key[i])
        for i in range(first[event], first[event + 1]):
            waiting[targets[i]] -= 1
            if waiting[targets[i]] == 0:
                heapq.heappush(ready, turn[targets[i]])
    return order, forced


@inlined
def _hindering_key(accesses: Accesses, course: _Course, t: int, begins: bool, width: int) -> int:
    """A key that t writes for which it cannot run yet: somebody else holds it, or has still to read the version before.
    NO_INDEX if there is none."""
    for i in range(accesses.write_first[t], accesses.write_first[t + 1]):
        key: int = accesses.write_key[i]
        if begins and width > 1:
            if course.held[key] > 0:
                return key
            continue
        version = course.current[key]
        if unread_by_others(course.outstanding, accesses.read_first, accesses.read_version, version, t, width) > 0:
            return key
    return NO_INDEX


@inlined
def unread_by_others(
    outstanding: Int32, read_first: Int64, read_version: Int32, version: int, t: int, width: int
) -> int:
    """How many reads of a version have not run, but for those of t itself where it reads and writes in one event."""
    left: int = outstanding[version]
    if left > 0 and width == 1:
        for i in range(read_first[t], read_first[t + 1]):
            left -= read_version[i] == version
    return left


@inlined
def _read(accesses: Accesses, course: _Course, read: int) -> int:
    """How many reads of the same version have not run now."""
    version = accesses.read_version[read]
    left: int = course.outstanding[version] - 1
    course.outstanding[version] = left
    return left


@inlined
def _hold(accesses: Accesses, course: _Course, t: int, width: int) -> None:
    if width > 1:
        for i in range(accesses.write_first[t], accesses.write_first[t + 1]):
            course.held[accesses.write_key[i]] += 1


@inlined
def _write(accesses: Accesses, course: _Course, write: int, width: int) -> None:
    key = accesses.write_key[write]
    course.current[key] = write
    course.held[key] -= width > 1


@compiled
def _wake(head: Int32, behind: Int32, blocked: Bool, ready: list[np.int64], turn: Int64, key: int) -> None:
    """All who wait for the key may try again."""
    event = head[key]
    head[key] = NO_INDEX
    while event >= 0:
        follower = behind[event]
        behind[event] = NO_INDEX
        if blocked[event]:
            blocked[event] = False
            heapq.heappush(ready, turn[event])
        event = follower
