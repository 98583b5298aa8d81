"""Causes: operations as nodes of a graph, in which reads are judged.

Nodes are sorted by object, session and place in the session. Sessions and registers have numbers of their own in each
object, dense and ascending with the objects.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import Int32, Int64
from checkers.kernels.gap_filling import next_place, require_filled
from harness.compiled import compiled, inlined

CELLS = 1 << 26
"""The most operations times sessions of an object that is judged; each takes 4 bytes."""

FINE, NOT_JUDGED = -1, -2
INITIAL = -1
"""The writer of a value that no operation wrote."""


class Causes(NamedTuple):
    """The direct causes of node n are `causes[first[n]:first[n + 1]]`."""

    first: Int64
    causes: Int64


class Operations(NamedTuple):
    """Operations of all objects, by node."""

    session: Int64
    place: Int64
    """The operation's place in its session."""
    start: Int64
    """The history index of its invocation."""


class Objects(NamedTuple):
    """Where the nodes, sessions and reads of each object begin, with one more for the end; shape (objects + 1,)."""

    node: Int64
    session: Int64
    read: Int64


class Reads(NamedTuple):
    """Reads, by object."""

    node: Int64
    register: Int64
    writer: Int64
    """The node that wrote the value read, or INITIAL."""


class Writes(NamedTuple):
    """Writes, by register and node: in runs, each of one session."""

    run: Int64
    """The first run of each register, with one more for the end."""
    first: Int64
    """The first write of each run, with one more for the end."""
    node: Int64
    """The node of each write."""


def causes_of(cause: Int64, effect: Int64, nodes: int) -> Causes:
    order = np.lexsort((cause, effect))
    first = np.concatenate(([0], np.cumsum(np.bincount(effect, minlength=nodes))))
    return Causes(first.astype(np.int64), cause[order])


@compiled
def causal_order(graph: Causes) -> Int64:
    """Nodes in an order in which each comes after all its causes; nodes in cycles, and their effects, are left out."""
    first, causes = graph.first, graph.causes
    nodes = len(first) - 1
    effects_first = np.zeros(nodes + 1, dtype=np.int64)
    for cause in causes:
        effects_first[cause + 1] += 1
    effects_first = np.cumsum(effects_first)
    effects = np.empty(len(causes), dtype=np.int64)
    filled = effects_first[:-1].copy()
    waiting = np.empty(nodes, dtype=np.int64)
    order = np.empty(nodes, dtype=np.int64)
    done = 0
    for node in range(nodes):
        waiting[node] = first[node + 1] - first[node]
        for i in range(first[node], first[node + 1]):
            effects[next_place(filled, effects_first, causes[i])] = node
        if waiting[node] == 0:
            order[done] = node
            done += 1
    require_filled(filled, effects_first)
    at = 0
    while at < done:
        node = order[at]
        at += 1
        for i in range(effects_first[node], effects_first[node + 1]):
            waiting[effects[i]] -= 1
            if waiting[effects[i]] == 0:
                order[done] = effects[i]
                done += 1
    return order[:done]


@compiled
def cycle_before(node: int, ordered: Int64, graph: Causes) -> Int64:
    """A cycle in which each node follows a cause of it, found by going back from a node without a place in the
    order."""
    first, causes = graph.first, graph.causes
    place = np.full(len(first) - 1, -1, dtype=np.int64)
    path = np.empty(len(first) - 1, dtype=np.int64)
    length = 0
    while place[node] < 0:
        place[node] = length
        path[length] = node
        length += 1
        for i in range(first[node], first[node + 1]):
            if ordered[causes[i]] == 0:
                node = causes[i]
                break
    return path[place[node] : length][::-1].copy()


@compiled
def culprits(
    order: Int64, graph: Causes, objects: Objects, operations: Operations, reads: Reads, writes: Writes, cells: int
) -> Int64:
    """For each read the first write that it should have seen instead of what it saw: FINE if none, or NOT_JUDGED.

        0 write 1, 1 write 2 (of the same process), 2 read 2, 3 read 1 (of another process): at 3 the culprit is 1

    `order` is causal and sorted by object. An object with more than `cells` operations times sessions is not judged.
    """
    result = np.full(len(reads.node), FINE, dtype=np.int64)
    at = 0
    for thing in range(len(objects.node) - 1):
        low, high = objects.node[thing], objects.node[thing + 1]
        first_session = objects.session[thing]
        sessions = objects.session[thing + 1] - first_session
        begin = at
        while at < len(order) and order[at] < high:
            at += 1
        if (high - low) * sessions > cells:
            result[objects.read[thing] : objects.read[thing + 1]] = NOT_JUDGED
            continue
        # How many operations of each session are causes of each node.
        known = np.zeros((high - low, sessions), dtype=np.int32)
        ordered = np.zeros(high - low, dtype=np.bool_)
        for node in order[begin:at]:
            ordered[node - low] = True
            _learn(graph, operations, known, node, low, first_session)
        for i in range(objects.read[thing], objects.read[thing + 1]):
            if ordered[reads.node[i] - low]:
                result[i] = _culprit(operations, reads, writes, known, i, low, first_session)
            else:
                result[i] = NOT_JUDGED
    return result


@inlined
def _learn(graph: Causes, operations: Operations, clocks: Int32, node: int, low: int, first_session: int) -> None:
    """Gives a node its causes and all causes of these. `low` is the first node of its object."""
    for i in range(graph.first[node], graph.first[node + 1]):
        cause = graph.causes[i]
        for other in range(clocks.shape[1]):
            clocks[node - low, other] = max(clocks[node - low, other], clocks[cause - low, other])
        own = operations.session[cause] - first_session
        clocks[node - low, own] = max(clocks[node - low, own], operations.place[cause] + 1)


@inlined
def _culprit(
    operations: Operations, reads: Reads, writes: Writes, clocks: Int32, read: int, low: int, first_session: int
) -> int:
    """The first write that overwrites what a read saw, and is a cause of the read; FINE if there is none."""
    session, place = operations.session, operations.place
    node, register, writer = reads.node[read], reads.register[read], reads.writer[read]
    culprit = FINE
    for run in range(writes.run[register], writes.run[register + 1]):
        seen = clocks[node - low, session[writes.node[writes.first[run]]] - first_session]
        # Only the last write of the session that is a cause of the read need be looked at.
        begin, end = writes.first[run], writes.first[run + 1]
        while begin < end:
            middle = (begin + end) // 2
            if place[writes.node[middle]] < seen:
                begin = middle + 1
            else:
                end = middle
        last = writes.node[begin - 1] if begin > writes.first[run] else -1
        if last < 0 or last == writer:
            continue
        overwrites = writer == INITIAL or clocks[last - low, session[writer] - first_session] > place[writer]
        if overwrites and (culprit < 0 or operations.start[last] < operations.start[culprit]):
            culprit = last
    return culprit
