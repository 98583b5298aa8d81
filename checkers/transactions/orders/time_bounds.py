"""When each event took effect at the earliest and at the latest, assuming that the store went by real time.

A transaction took effect between its invocation and its completion. That narrows the windows of others: a reader came
later than the writer, and a version was read before it was overwritten. The history need not be of such a store, so
this only serves to guess an order, which is replayed before it counts.

A store may answer from the past, as one that lags does: then reads have no earliest moment of their own.

For each key the rule is that of `saturation`, with two numbers for each event in place of clocks, for all pairs of
writers at once. A sweep takes O(n log n).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import NO_INDEX, Int32, Int64
from checkers.transactions.history.committed import NEVER
from checkers.transactions.orders.events import Accesses, Events
from harness.compiled import compiled, inlined

SWEEPS = 16
"""The most sweeps. Windows that later sweeps would narrow stay wide."""

BEFORE_ALL = -1


class Windows(NamedTuple):
    """The window of each event of a transaction, in history indices."""

    low: Int64
    high: Int64


class Spans(NamedTuple):
    """Bounds of each version of a key, int64[versions]; the initial version comes last."""

    begun: Int64
    """When its writer began at the latest."""
    done: Int64
    """When its writer committed at the latest."""
    written: Int64
    """When its writer committed at the earliest."""
    read: Int64
    """The earliest moment by which all of its readers can have begun."""


def windows(events: Events, *, behind: int) -> tuple[Windows, Int32] | None:
    """The windows, and edges (sources, targets) that they force among writers of a key; None if windows contradict each
    other. `behind`: how far before its invocation a read may look, as far as `events` allows that."""
    committed, known, width = events.committed, events.accesses, events.width
    low = np.repeat(committed.start, width)
    high = np.repeat(np.where(events.settled == NEVER, NEVER - 1, events.settled), width)
    reading = np.diff(known.write_first) == 0 if width == 1 else np.ones(len(committed), dtype=np.bool_)
    begun = low.reshape(-1, width)[:, 0]
    begun[reading] = np.maximum(begun[reading] - behind, BEFORE_ALL)
    between = (events.base.source < len(low)) & (events.base.target < len(low))
    found = Windows(low, high)
    if not _narrowed(found, events.base.source[between], events.base.target[between], known, width, SWEEPS):
        return None
    return found, _forced(found, known, width)


@compiled
def _narrowed(windows: Windows, source: Int32, target: Int32, accesses: Accesses, width: int, sweeps: int) -> bool:
    """Narrows the windows, and returns whether they do not contradict each other.

    w writes x = 1 in [0, 9],  r reads x = 1 in [5, 7],  u writes x = 2 in [1, 4]

    r is later than w, so w is in [0, 7].  u cannot come between them: it would have to come after 5 or before w,
    so it comes before w, which is in [1, 7] therefore; and u, before 7, in [1, 4].
    """
    low, high = windows
    for _ in range(sweeps):
        changed = False
        for i in range(len(source)):
            changed |= _raise(low, target[i], low[source[i]])
            changed |= _lower(high, source[i], high[target[i]])
        for key in range(len(accesses.writers_first) - 1):
            changed |= _narrowed_by_key(windows, accesses, key, width)
        for event in range(width, len(low)):
            if low[event] > high[event]:
                return False
        if not changed:
            break
    return True


@compiled
def _narrowed_by_key(windows: Windows, accesses: Accesses, key: int, width: int) -> bool:
    """Narrows windows by the versions of one key, and returns whether one changed. Of any two versions, one is written,
    and read for the last time, before the other one is written.

    w cannot come before u if its commit cannot come before u begins, or one of its readers cannot begin before u
    commits; so u comes before w.
    """
    if accesses.writers_first[key + 1] == accesses.writers_first[key]:
        return False
    spans = _spans(windows, accesses, key, width)
    changed: bool = _ordered(windows, accesses, key, width, spans, spans.begun, spans.written)
    changed |= _ordered(windows, accesses, key, width, spans, spans.done, spans.read)
    return changed


@compiled
def _spans(windows: Windows, accesses: Accesses, key: int, width: int) -> Spans:
    low, high = windows
    count = accesses.writers_first[key + 1] - accesses.writers_first[key]
    spans = Spans(
        np.full(count + 1, BEFORE_ALL, dtype=np.int64),
        np.full(count + 1, BEFORE_ALL, dtype=np.int64),
        np.full(count + 1, BEFORE_ALL, dtype=np.int64),
        np.full(count + 1, BEFORE_ALL, dtype=np.int64),
    )
    for i in range(count + 1):
        version = _version(accesses, key, i)
        if i < count:
            writer = accesses.version_writer[version]
            spans.begun[i] = high[writer * width]
            spans.done[i] = high[writer * width + width - 1]
            spans.written[i] = low[writer * width + width - 1]
        for r in range(accesses.readers_first[version], accesses.readers_first[version + 1]):
            spans.read[i] = max(spans.read[i], low[accesses.readers[r] * width])
    return spans


@inlined
def _version(accesses: Accesses, key: int, i: int) -> int:
    """The i-th version of the key; the initial one comes behind all that were written."""
    first, last = accesses.writers_first[key], accesses.writers_first[key + 1]
    return int(accesses.key_versions[first + i]) if first + i < last else len(accesses.version_writer) + key


@compiled
def _ordered(
    windows: Windows, accesses: Accesses, key: int, width: int, spans: Spans, bar: Int64, reach: Int64
) -> bool:
    """Version u comes before version w wherever bar[u] <= reach[w]. Returns whether that narrows a window."""
    low, high = windows
    count = len(bar) - 1
    changed = False
    by_bar = np.argsort(bar)
    bars = bar[by_bar]
    written = _best_of_others(spans.written, by_bar)
    read = _best_of_others(spans.read, by_bar)
    for w in range(count):
        at = np.searchsorted(bars, reach[w], "right") - 1
        if at >= 0:
            begin = accesses.version_writer[_version(accesses, key, w)] * width
            changed |= _raise(low, begin, _other(written, at, w))
            changed |= _raise(low, begin + width - 1, _other(read, at, w))
    by_reach = np.argsort(reach[:count])[::-1].copy()
    reaches = reach[by_reach][::-1].copy()
    begun = _best_of_others(-spans.begun, by_reach)
    done = _best_of_others(-spans.done, by_reach)
    for u in range(count + 1):
        at = count - np.searchsorted(reaches, bar[u], "left") - 1
        if at < 0:
            continue
        version = _version(accesses, key, u)
        if u < count:
            changed |= _lower(high, accesses.version_writer[version] * width + width - 1, -_other(begun, at, u))
        latest = -_other(done, at, u)
        for r in range(accesses.readers_first[version], accesses.readers_first[version + 1]):
            changed |= _lower(high, accesses.readers[r] * width, latest)
    return changed


@compiled
def _best_of_others(values: Int64, order: Int64) -> tuple[Int64, Int64, Int64]:
    """For each place of the order (the greatest value up to there, whose it is, the greatest of all others)."""
    best = np.empty(len(order), dtype=np.int64)
    whose = np.empty(len(order), dtype=np.int64)
    second = np.empty(len(order), dtype=np.int64)
    first_value, first_whose, second_value = -NEVER, NO_INDEX, -NEVER
    for at in range(len(order)):
        value = values[order[at]]
        if value > first_value:
            first_value, first_whose, second_value = value, order[at], first_value
        elif value > second_value:
            second_value = value
        best[at], whose[at], second[at] = first_value, first_whose, second_value
    return best, whose, second


@inlined
def _other(found: tuple[Int64, Int64, Int64], at: int, but: int) -> int:
    best, whose, second = found
    return int(second[at] if whose[at] == but else best[at])


@inlined
def _raise(low: Int64, event: int, value: int) -> bool:
    if low[event] >= value:
        return False
    low[event] = value
    return True


@inlined
def _lower(high: Int64, event: int, value: int) -> bool:
    if high[event] <= value:
        return False
    high[event] = value
    return True


@compiled
def _forced(windows: Windows, accesses: Accesses, width: int) -> Int32:
    """int32[2, edges]: edges from commits to begins of later writers that the windows alone do not keep in order."""
    low, high = windows
    sources, targets = [np.int32(0)], [np.int32(0)]
    sources.pop()
    targets.pop()
    for key in range(len(accesses.writers_first) - 1):
        count = accesses.writers_first[key + 1] - accesses.writers_first[key]
        if count < 2:
            continue
        spans = _spans(windows, accesses, key, width)
        by_done = np.argsort(spans.done[:count])
        done = spans.done[by_done]
        for w in range(count):
            begin = accesses.version_writer[_version(accesses, key, w)] * width
            at = np.searchsorted(done, low[begin], "right")
            while at < count and done[at] <= high[begin]:
                u = by_done[at]
                at += 1
                if u != w and (spans.begun[u] <= spans.written[w] or spans.done[u] <= spans.read[w]):
                    sources.append(np.int32(accesses.version_writer[_version(accesses, key, u)] * width + width - 1))
                    targets.append(np.int32(begin))
    edges = np.empty((2, len(sources)), dtype=np.int32)
    for i in range(len(sources)):
        edges[0, i], edges[1, i] = sources[i], targets[i]
    return edges
