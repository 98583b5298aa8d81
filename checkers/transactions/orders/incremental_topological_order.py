"""An order of events that edges keep to, while edges are added to it and taken away again.

Of an edge against the order, what lies between its ends and hangs on either is put in order anew, and nothing else;
taking one away changes nothing. An edge that would close a cycle is refused, and the labels on the shortest way back
say why.

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
"""In `counters`: the first edge that was taken away, or NO_INDEX; edges in use so far; the mark of the last look
around; events that were looked at; and the first place that was touched since somebody set it to a later one."""


class Adjacency(NamedTuple):
    """Edges as seen in one direction: what lasts, and what comes and goes."""

    first: Int64
    """int64[events + 1]: lasting edges of e are others[first[e]:first[e + 1]], the events at their other ends;"""
    others: Int32
    head: Int32
    """int32[events]: the newest of those that come and go, or NO_INDEX;"""
    older: Int32
    """int32[room]: the one before it,"""
    newer: Int32
    """and the one behind it;"""
    end: Int32
    """int32[room]: the event at its other end."""


class TopologicalOrder(NamedTuple):
    place: Int32
    """int32[events]: of each event;"""
    event_at: Int32
    """and the event at each place."""
    onward: Adjacency
    back: Adjacency
    label: Int32
    """int32[room]: of each edge that comes and goes."""
    counters: Int64
    seen: Int64
    """int64[events]: the mark of the look around that last came by;"""
    labels_to: Int32
    """int32[events]: edges with labels on the way there;"""
    came_from: Int32
    """int32[events]: the event,"""
    came_by: Int32
    """int32[events]: and the edge with a label, or NO_INDEX."""
    reached: Int32
    """int32[2, 2 * events + 2]: what is to be looked at."""


def topological_order(source: Int32, target: Int32, turn: Int64, room: int) -> TopologicalOrder | None:
    """Those first whose turn is first, as lasting edges allow; None if they make a cycle. `room`: for other edges."""
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
    """Whether so many more may come."""
    return bool(order.counters[USED] + edges <= len(order.label))


@compiled
def added(order: TopologicalOrder, source: int, target: int, label: int) -> int:
    """The edge, which the order keeps to from now on; NO_INDEX where it would close a cycle."""
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
    """Whether the source could be put before the target; if so, it is."""
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
    """How many events between two places are on the way from one of them, itself included; NO_INDEX where one is the
    wanted one."""
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
    """How many labels are on the way from one event to another, and which: the fewest that there can be, but for one
    that does not count. There must be a way."""
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
    """How many there are once this one is among the first so many."""
    for i in range(count):
        if numbers[i] == number:
            return count
    numbers[count] = number
    return count + 1
