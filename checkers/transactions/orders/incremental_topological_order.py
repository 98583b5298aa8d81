"""A topological order of events that is maintained while edges are added and taken away again.

When an added edge runs against the order, only the events between its ends that are reachable from one or the other are
reordered. Taking an edge away changes nothing. An edge that would close a cycle is refused, and the labels on the
shortest way back say why.

Source: Pearce, Kelly, A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs, JEA 11 (2006).
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from checkers.kernels.adjacency import followers
from checkers.kernels.columns import NO_INDEX, Int32, Int64
from harness.compiled import compiled, inlined

FREE, USED, STAMP, STEPS, EARLIEST = range(5)
"""Places in `counters`: the first edge that was taken away, or NO_INDEX; how many edges were ever in use; the mark of
the last search; how many events were looked at; and the first place that has changed since a caller reset this."""


class Adjacency(NamedTuple):
    """Edges seen in one direction: lasting ones, and those that are added and taken away."""

    first: Int64
    """int64[events + 1]: the events at the other ends of e's lasting edges are others[first[e]:first[e + 1]]."""
    others: Int32
    head: Int32
    """int32[events]: the newest edge of each event that was added, or NO_INDEX."""
    older: Int32
    """int32[room]: the next older edge of the same event, or NO_INDEX."""
    newer: Int32
    """int32[room]: the next newer edge of the same event, or NO_INDEX."""
    end: Int32
    """int32[room]: the event at the other end of each edge."""


class TopologicalOrder(NamedTuple):
    place: Int32
    """int32[events]: the place of each event."""
    event_at: Int32
    """int32[events]: the event at each place."""
    onward: Adjacency
    back: Adjacency
    label: Int32
    """int32[room]: the label of each edge that was added."""
    counters: Int64
    seen: Int64
    """int64[events]: the mark of the search that last visited the event."""
    labels_to: Int32
    """int32[events]: how many edges with labels are on the way to the event."""
    came_from: Int32
    """int32[events]: the event before it on that way."""
    came_by: Int32
    """int32[events]: the edge with a label that leads there from the event before, or NO_INDEX."""
    reached: Int32
    """int32[2, 2 * events + 2]: room for two stacks of events to visit."""


def topological_order(source: Int32, target: Int32, turn: Int64, room: int) -> TopologicalOrder | None:
    """The order by `turn`, as far as lasting edges allow it; None if they make a cycle. `room`: how many edges may be
    added."""
    size = len(turn)
    first, targets = followers(source, target, size)
    event_at = _sorted(first, targets, turn, np.argsort(turn))
    if len(event_at) < size:
        return None
    place = np.empty(size, dtype=np.int32)
    place[event_at] = np.arange(size, dtype=np.int32)
    return TopologicalOrder(
        place=place,
        event_at=event_at,
        onward=_adjacency(first, targets, room),
        back=_adjacency(*followers(target, source, size), room),
        label=np.empty(room, dtype=np.int32),
        counters=np.array([NO_INDEX, 0, 0, 0, 0]),
        seen=np.zeros(size, dtype=np.int64),
        labels_to=np.zeros(size, dtype=np.int32),
        came_from=np.empty(size, dtype=np.int32),
        came_by=np.empty(size, dtype=np.int32),
        reached=np.empty((2, 2 * size + 2), dtype=np.int32),
    )


def _adjacency(first: Int64, others: Int32, room: int) -> Adjacency:
    older, newer, end = (np.empty(room, dtype=np.int32) for _ in range(3))
    return Adjacency(first, others, np.full(len(first) - 1, NO_INDEX, dtype=np.int32), older, newer, end)


@compiled
def _sorted(first: Int64, targets: Int32, turn: Int64, event_of: Int64) -> Int32:
    size = len(turn)
    waiting = np.zeros(size, dtype=np.int32)
    for event in targets:
        waiting[event] += 1
    ready = [turn[event] for event in range(size) if waiting[event] == 0]
    heapq.heapify(ready)
    order = np.empty(size, dtype=np.int32)
    done = 0
    while len(ready) > 0:
        event = event_of[heapq.heappop(ready)]
        order[done] = event
        done += 1
        for i in range(first[event], first[event + 1]):
            waiting[targets[i]] -= 1
            if waiting[targets[i]] == 0:
                heapq.heappush(ready, turn[targets[i]])
    return order[:done].copy()


@inlined
def has_room(order: TopologicalOrder, edges: int) -> bool:
    """Whether so many more edges may be added."""
    return bool(order.counters[USED] + edges <= len(order.label))


@compiled
def added(order: TopologicalOrder, source: int, target: int, label: int) -> int:
    """Adds an edge, which the order keeps to from now on, and returns its number; NO_INDEX if it would close a
    cycle."""
    if not _is_made_to_hold(order, source, target):
        return NO_INDEX
    edge = order.counters[FREE]
    if edge == NO_INDEX:
        edge = order.counters[USED]
        order.counters[USED] += 1
    else:
        order.counters[FREE] = order.onward.older[edge]
    order.label[edge] = label
    _link(order.onward, edge, source, target)
    _link(order.back, edge, target, source)
    return int(edge)


@compiled
def remove_edge(order: TopologicalOrder, edge: int) -> None:
    source, target = order.back.end[edge], order.onward.end[edge]
    _unlink(order.onward, edge, source)
    _unlink(order.back, edge, target)
    order.onward.older[edge] = order.counters[FREE]
    order.counters[FREE] = edge


@inlined
def _link(way: Adjacency, edge: int, event: int, other: int) -> None:
    newest = way.head[event]
    way.end[edge], way.older[edge], way.newer[edge], way.head[event] = other, newest, NO_INDEX, edge
    if newest != NO_INDEX:
        way.newer[newest] = edge


@inlined
def _unlink(way: Adjacency, edge: int, event: int) -> None:
    older, newer = way.older[edge], way.newer[edge]
    if newer == NO_INDEX:
        way.head[event] = older
    else:
        way.older[newer] = older
    if older != NO_INDEX:
        way.newer[older] = newer


@compiled
def _is_made_to_hold(order: TopologicalOrder, source: int, target: int) -> bool:
    """Puts the source before the target if that is possible, and returns whether it was."""
    low, high = order.place[target], order.place[source]
    if high < low:
        return True
    order.counters[STAMP] += 1
    order.counters[EARLIEST] = min(order.counters[EARLIEST], low)
    behind = _affected_region(order, order.onward, target, low, high, source, order.came_by)
    if behind == NO_INDEX:
        return False
    before = _affected_region(order, order.back, source, low, high, NO_INDEX, order.came_from)
    places = np.concatenate((order.place[order.came_from[:before]], order.place[order.came_by[:behind]]))
    places[:before].sort()
    places[before:].sort()
    events = order.event_at[places]
    places.sort()
    for i in range(len(places)):
        order.place[events[i]] = places[i]
        order.event_at[places[i]] = events[i]
    return True


@compiled
def _affected_region(
    order: TopologicalOrder, way: Adjacency, start: int, low: int, high: int, wanted: int, into: Int32
) -> int:
    """How many events between two places can be reached from `start`, itself included; NO_INDEX if `wanted` is
    reached."""
    place, seen, stamp, stack = order.place, order.seen, order.counters[STAMP], order.reached[0]
    stack[0], pending, count = start, 1, 0
    seen[start] = stamp
    if start == wanted:
        return NO_INDEX
    while pending > 0:
        pending -= 1
        event = stack[pending]
        into[count] = event
        count += 1
        order.counters[STEPS] += 1
        for i in range(way.first[event], way.first[event + 1]):
            other = way.others[i]
            if other == wanted:
                return NO_INDEX
            if low <= place[other] <= high and seen[other] != stamp:
                seen[other] = stamp
                stack[pending] = other
                pending += 1
        edge = way.head[event]
        while edge != NO_INDEX:
            other = way.end[edge]
            if other == wanted:
                return NO_INDEX
            if low <= place[other] <= high and seen[other] != stamp:
                seen[other] = stamp
                stack[pending] = other
                pending += 1
            edge = way.older[edge]
    return count


@compiled
def labels_between(order: TopologicalOrder, start: int, end: int, but: int, labels: Int32) -> int:
    """Writes the labels on a way from one event to another to `labels` and returns how many they are: on a way with as
    few as possible, not counting the label `but`. There must be a way."""
    order.counters[STAMP] += 1
    stamp, last = order.counters[STAMP], order.place[end]
    order.seen[start] = stamp
    order.labels_to[start], order.came_by[start] = 0, NO_INDEX
    order.reached[0, 0] = start
    price, count, dearer = 0, 1, 0
    while count > 0:
        while count > 0:
            count -= 1
            event = order.reached[price & 1, count]
            if order.labels_to[event] < price:
                continue
            if event == end:
                return _labels_on_the_way(order, start, end, but, labels)
            order.counters[STEPS] += 1
            for i in range(order.onward.first[event], order.onward.first[event + 1]):
                other = order.onward.others[i]
                if order.place[other] <= last and _is_nearer(order, other, stamp, price):
                    _come(order, other, stamp, price, event, NO_INDEX)
                    order.reached[price & 1, count] = other
                    count += 1
            edge = order.onward.head[event]
            while edge != NO_INDEX:
                other = order.onward.end[edge]
                paid = price + (order.label[edge] != but)
                if order.place[other] <= last and _is_nearer(order, other, stamp, paid):
                    _come(order, other, stamp, paid, event, edge)
                    if paid == price:
                        order.reached[price & 1, count] = other
                        count += 1
                    else:
                        order.reached[paid & 1, dearer] = other
                        dearer += 1
                edge = order.onward.older[edge]
        price, count, dearer = price + 1, dearer, 0
    raise AssertionError("an edge was refused though there is no way back")


@inlined
def _is_nearer(order: TopologicalOrder, event: int, stamp: int, price: int) -> bool:
    return bool(order.seen[event] != stamp or price < order.labels_to[event])


@inlined
def _come(order: TopologicalOrder, event: int, stamp: int, price: int, source: int, edge: int) -> None:
    order.seen[event], order.labels_to[event] = stamp, price
    order.came_from[event], order.came_by[event] = source, edge


@compiled
def _labels_on_the_way(order: TopologicalOrder, start: int, end: int, but: int, labels: Int32) -> int:
    count, event = 0, end
    while event != start:
        edge = order.came_by[event]
        if edge != NO_INDEX and order.label[edge] != but:
            count = with_also(labels, count, order.label[edge])
        event = order.came_from[event]
    return count


@inlined
def with_also(numbers: Int32, count: int, number: int) -> int:
    """Adds the number to the first `count` of `numbers`, unless it is there, and returns how many they are then."""
    for i in range(count):
        if numbers[i] == number:
            return count
    numbers[count] = number
    return count + 1
