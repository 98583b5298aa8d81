"""An order of events that explains all reads, found by running them: whoever can, the one first that ended first.

A transaction may run once all that precedes it has run and, for each key it writes, everybody has run who reads the
version before. At snapshot isolation it may begin if nobody else who writes one of its keys has begun and not
committed. Where nobody can run, somebody is made to, and the order explains not all reads.
"""

from __future__ import annotations

import heapq

import numpy as np

from checkers.kernels.adjacency import followers
from checkers.kernels.columns import Bool, Int32, Int64
from checkers.transactions.isolation.constraints.events import Accesses, Events
from harness.compiled import compiled

NOBODY = -1


def scheduled(events: Events, source: Int32, target: Int32) -> tuple[Int32, int]:
    """All events, INITIAL first, and how many were made to run. The edges must have no cycle."""
    accesses = events.accesses
    first, targets = followers(source, target, events.size)
    urgency = np.concatenate(
        (
            np.repeat(events.settled, events.width),
            # A moment comes as soon as it can, for everything after it waits.
            np.full(events.size - len(events.committed) * events.width, -1),
        )
    )
    event_of = np.argsort(urgency, kind="stable")
    turn = np.empty(events.size, dtype=np.int64)
    turn[event_of] = np.arange(events.size)
    order, forced = _run(
        first,
        targets,
        turn,
        event_of,
        events.width,
        len(events.committed),
        accesses.read_first,
        accesses.version,
        accesses.key,
        accesses.write_first,
        accesses.write_key,
        accesses.keys,
    )
    return order, forced


@compiled
def _run(
    first: Int64,
    targets: Int32,
    turn: Int64,
    event_of: Int64,
    width: int,
    transactions: int,
    read_first: Int64,
    read_version: Int32,
    read_key: Int32,
    write_first: Int64,
    write_key: Int32,
    keys: int,
) -> tuple[Int32, int]:
    size = len(first) - 1
    last = width - 1
    waiting = np.zeros(size, dtype=np.int32)
    for e in targets:
        waiting[e] += 1
    outstanding = np.zeros(len(write_key) + keys, dtype=np.int32)
    for version in read_version:
        outstanding[version] += 1
    current = len(write_key) + np.arange(keys)
    held = np.zeros(keys, dtype=np.int32)
    # Who waits for a key, linked.
    head = np.full(keys, NOBODY, dtype=np.int32)
    behind = np.full(size, NOBODY, dtype=np.int32)
    blocked = np.zeros(size, dtype=np.bool_)
    ran = np.zeros(size, dtype=np.bool_)
    order = np.empty(size, dtype=np.int32)
    ready = [np.int64(0)]
    ready.pop()
    late = [np.int64(0)]
    late.pop()
    for e in range(size):
        if waiting[e] == 0:
            ready.append(turn[e])
    heapq.heapify(ready)
    done, forced = 0, 0
    while done < size:
        made = len(ready) == 0
        if made:
            event = event_of[heapq.heappop(late)]
            if ran[event] or not blocked[event]:
                continue
            forced += 1
        else:
            event = event_of[heapq.heappop(ready)]
            if ran[event] or blocked[event]:
                continue
        t = event // width
        begins = event < transactions * width and event == t * width
        commits = event < transactions * width and event == t * width + last
        if (begins or commits) and not made:
            hinders = NOBODY
            for i in range(write_first[t], write_first[t + 1]):
                k = write_key[i]
                if begins and width > 1:
                    if held[k] > 0:
                        hinders = k
                        break
                elif commits:
                    left = outstanding[current[k]]
                    if left > 0 and width == 1:
                        for j in range(read_first[t], read_first[t + 1]):
                            left -= read_version[j] == current[k]
                    if left > 0:
                        hinders = k
                        break
            if hinders >= 0:
                behind[event] = head[hinders]
                head[hinders] = event
                blocked[event] = True
                heapq.heappush(late, turn[event])
                continue
        ran[event] = True
        order[done] = event
        done += 1
        if begins:
            for i in range(read_first[t], read_first[t + 1]):
                outstanding[read_version[i]] -= 1
                if outstanding[read_version[i]] <= 1:
                    _wake(head, behind, blocked, ready, turn, read_key[i])
            if width > 1:
                for i in range(write_first[t], write_first[t + 1]):
                    held[write_key[i]] += 1
        if commits:
            for i in range(write_first[t], write_first[t + 1]):
                k = write_key[i]
                current[k] = i
                held[k] -= width > 1
                _wake(head, behind, blocked, ready, turn, k)
        for i in range(first[event], first[event + 1]):
            waiting[targets[i]] -= 1
            if waiting[targets[i]] == 0:
                heapq.heappush(ready, turn[targets[i]])
    return order, forced


@compiled
def _wake(head: Int32, behind: Int32, blocked: Bool, ready: list[np.int64], turn: Int64, key: int) -> None:
    """All who wait for the key may try again."""
    event = head[key]
    head[key] = NOBODY
    while event >= 0:
        follower = behind[event]
        behind[event] = NOBODY
        if blocked[event]:
            blocked[event] = False
            heapq.heappush(ready, turn[event])
        event = follower


def explains(accesses: Accesses, width: int, order: Int32) -> bool:
    """Whether each read is of the last write before, and at snapshot isolation no writers of a key overlap."""
    return bool(
        _explains(
            order,
            width,
            accesses.read_first,
            accesses.version,
            accesses.key,
            accesses.write_first,
            accesses.write_key,
            accesses.keys,
        )
    )


@compiled
def _explains(
    order: Int32,
    width: int,
    read_first: Int64,
    read_version: Int32,
    read_key: Int32,
    write_first: Int64,
    write_key: Int32,
    keys: int,
) -> bool:
    current = len(write_key) + np.arange(keys)
    held = np.zeros(keys, dtype=np.int32)
    for event in order:
        t = event // width
        if event == t * width:
            for i in range(read_first[t], read_first[t + 1]):
                if current[read_key[i]] != read_version[i]:
                    return False
            for i in range(write_first[t], write_first[t + 1]):
                if held[write_key[i]] > 0:
                    return False
                held[write_key[i]] += 1
        if event == t * width + width - 1:
            for i in range(write_first[t], write_first[t + 1]):
                held[write_key[i]] -= 1
                current[write_key[i]] = i
    return True
