"""The other writers of its key that each read, and each write, may force an order upon."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Int32, Int64
from checkers.transactions.orders.events import CANDIDATES, Events, ExternalOrder
from harness.compiled import compiled


class Candidates(NamedTuple):
    """For each read and each write, writers[low:high] of `Accesses` are the writers of its key that it may force an
    order upon. All others come before or after it anyway, or are too far away. Sweeps narrow these ranges down."""

    read_low: Int64
    read_high: Int64
    write_low: Int64
    write_high: Int64


def candidates(events: Events) -> Candidates:
    committed, known = events.committed, events.accesses
    version_writer = known.version_writer
    if events.kept is ExternalOrder.REALTIME:
        latest = _running_latest(known.writers_first, events.settled[known.writers])
        reads = _overlapping(
            known.writers_first,
            committed.start[known.writers],
            latest,
            known.read_key,
            committed.start[known.read_writer],
            events.settled[known.reader],
        )
        writes = _overlapping(
            known.writers_first,
            committed.start[known.writers],
            latest,
            known.write_key,
            committed.start[version_writer],
            events.settled[version_writer],
        )
        return Candidates(*reads, *writes)
    counts = np.diff(known.writers_first)
    pairs = int(counts[known.read_key].sum()) + (events.width - 1) * int((counts**2).sum())
    reach = len(committed) if pairs <= CANDIDATES else max(CANDIDATES // (2 * len(known.read_key) + 1), 1)
    reads = _nearest(known.writers_first, known.writers, known.read_key, known.read_writer, known.reader, reach)
    writes = _nearest(known.writers_first, known.writers, known.write_key, version_writer, version_writer, reach)
    return Candidates(*reads, *writes)


@compiled
def _running_latest(writers_first: Int64, settled: Int64) -> Int64:
    """For each writer, when it and all writers of its key before it were settled."""
    latest = settled.copy()
    for k in range(len(writers_first) - 1):
        for i in range(writers_first[k] + 1, writers_first[k + 1]):
            latest[i] = max(latest[i], latest[i - 1])
    return latest


@compiled
def _overlapping(
    writers_first: Int64, start: Int64, latest: Int64, key: Int32, begun: Int64, settled: Int64
) -> tuple[Int64, Int64]:
    """The range of each key's writers, without those at either end that were all settled before it began or that began
    after it was settled."""
    low = np.empty(len(key), dtype=np.int64)
    high = np.empty(len(key), dtype=np.int64)
    for i in range(len(key)):
        begin, end = writers_first[key[i]], writers_first[key[i] + 1]
        low[i] = begin + np.searchsorted(latest[begin:end], begun[i])
        high[i] = max(low[i], begin + np.searchsorted(start[begin:end], settled[i]))
    return low, high


@compiled
def _nearest(
    writers_first: Int64, writers: Int32, key: Int32, since: Int32, until: Int32, reach: int
) -> tuple[Int64, Int64]:
    """The writers of each key from `reach` before the earlier of two transactions to `reach` behind the later one."""
    low = np.empty(len(key), dtype=np.int64)
    high = np.empty(len(key), dtype=np.int64)
    for i in range(len(key)):
        begin, end = writers_first[key[i]], writers_first[key[i] + 1]
        earlier, later = min(since[i], until[i]), max(since[i], until[i])
        low[i] = max(begin, begin + np.searchsorted(writers[begin:end], earlier) - reach)
        high[i] = min(end, begin + np.searchsorted(writers[begin:end], later) + reach)
    return low, high
