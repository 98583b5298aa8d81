"""The order of versions by realtime: if a transaction that touched one version had ended before a transaction began
that touched another version, the first version precedes the second.

    T1 writes x = 1, and ends · T2 writes x = 2, and ends · T3 reads x = 1

Version 1 is touched from T1's start to T3's, version 2 by T2 alone: T1 ended before T2 began, so 1 precedes 2; T2 ended
before T3 began, so 2 precedes 1, which is a cycle of versions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Bool, Int64
from checkers.transactions.elle.rw_register.precedences import OrderedBy, Precedences, Versions
from checkers.transactions.elle.rw_register.resolution import Registers
from checkers.transactions.elle.rw_register.transaction_version_order import Touches
from checkers.transactions.history.committed import NEVER
from harness.compiled import compiled


class Spread(NamedTuple):
    """When each version was touched, in history indices."""

    end: Int64
    """The first end of an ok transaction that touched it, or NEVER."""
    end_row: Int64
    start: Int64
    """The last start of a transaction that touched it, or -1."""
    start_row: Int64


class KeyTimes(NamedTuple):
    """Versions of key k are first[k]:first[k + 1]. In that range `by_end` and `by_start` have them in these orders."""

    first: Int64
    end: Int64
    start: Int64
    by_end: Int64
    by_start: Int64

    @classmethod
    def of(cls, versions: Versions, spread: Spread) -> KeyTimes:
        by_end = np.lexsort((spread.end, versions.key))
        by_start = np.lexsort((spread.start, versions.key))
        return cls(versions.first, spread.end, spread.start, by_end, by_start)


def no_spread(versions: int) -> Spread:
    nothing = np.full(versions, -1, dtype=np.int64)
    return Spread(end=np.full(versions, NEVER), end_row=nothing, start=nothing, start_row=nothing)


def spread_of(registers: Registers, versions: Versions, touches: Touches, is_ok: Bool) -> Spread:
    end = np.where(is_ok, registers.end[touches.row], NEVER)
    start = registers.start[touches.row]
    of_end, of_start = _extremes(end, start, touches.read, touches.write, versions.of_row, len(versions))

    def rows(of: Int64) -> Int64:
        """The rows of these transactions that touch the versions."""
        read, write = touches.read[of], touches.write[of]
        reads = (read >= 0) & (versions.of_row[read] == np.arange(len(versions)))
        return np.where(of < 0, -1, np.where(reads, read, write))

    return Spread(
        end=np.where(of_end < 0, NEVER, end[of_end]) if len(end) else np.full(len(versions), NEVER),
        end_row=rows(of_end) if len(end) else of_end,
        start=np.where(of_start < 0, -1, start[of_start]) if len(end) else of_start,
        start_row=rows(of_start) if len(end) else of_start,
    )


@compiled
def _extremes(end: Int64, start: Int64, read: Int64, write: Int64, of_row: Int64, versions: int) -> tuple[Int64, Int64]:
    """By version: (the first end, the last start) of the transactions that touched it."""
    ended = np.full(versions, -1, dtype=np.int64)
    began = np.full(versions, -1, dtype=np.int64)
    for i in range(len(end)):
        for row in (read[i], write[i]):
            if row < 0:
                continue
            v = of_row[row]
            if end[i] != NEVER and (ended[v] < 0 or end[i] < end[ended[v]]):
                ended[v] = i
            if began[v] < 0 or start[i] > start[began[v]]:
                began[v] = i
    return ended, began


def nearest_in_realtime(versions: Versions, spread: Spread, cyclic: Bool) -> Precedences:
    """For each version those that realtime puts before it with none between."""
    before, after = _without_between(KeyTimes.of(versions, spread), cyclic)
    return Precedences.by(OrderedBy.REALTIME, before, after, spread.end_row[before], spread.start_row[after])


@compiled
def _without_between(times: KeyTimes, cyclic: Bool) -> tuple[Int64, Int64]:
    """(version, version after it) of each pair that realtime orders with none between, of keys that are not cyclic."""
    first, end, start = times.first, times.end, times.start
    count = 0
    for fill in range(2):
        before = np.empty(count if fill else 0, dtype=np.int64)
        after = np.empty(count if fill else 0, dtype=np.int64)
        count = 0
        for k in range(len(first) - 1):
            if cyclic[k]:
                continue
            # The versions that ended before b began: how many, and the three of them that began last.
            ended = first[k]
            latest = np.full(3, -1, dtype=np.int64)
            for at in range(first[k], first[k + 1]):
                b = times.by_start[at]
                while ended < first[k + 1] and end[times.by_end[ended]] < start[b]:
                    _keep_latest(latest, times.by_end[ended], start)
                    ended += 1
                near, next_near = _two_latest(latest, b)
                if near < 0:
                    continue
                # c is between a and b if it began after a had ended, and had ended before b began.
                if end[near] < start[near] and (next_near < 0 or end[near] >= start[next_near]):
                    if fill:
                        before[count] = near
                        after[count] = b
                    count += 1
                i = ended - 1
                while i >= first[k] and end[times.by_end[i]] >= start[near]:
                    if times.by_end[i] != b:
                        if fill:
                            before[count] = times.by_end[i]
                            after[count] = b
                        count += 1
                    i -= 1
    return before, after


@compiled
def _keep_latest(latest: Int64, new: int, start: Int64) -> None:
    """Put a version among those that began last, which are sorted, the last one first; -1 is none."""
    for n in range(len(latest)):
        if latest[n] < 0 or start[new] > start[latest[n]]:
            latest[n], new = new, latest[n]
            if new < 0:
                return


@compiled
def _two_latest(latest: Int64, b: int) -> tuple[int, int]:
    """The two versions other than b that began last; -1 if there are fewer."""
    near, next_near = -1, -1
    for n in range(len(latest)):
        if latest[n] >= 0 and latest[n] != b:
            if near < 0:
                near = latest[n]
            elif next_near < 0:
                next_near = latest[n]
    return near, next_near
