"""What caused what: operations as nodes of a graph of causes, in which reads are judged.

Nodes are sorted by object, session and place in the session. Sessions and registers have numbers of their own in each
object, dense and ascending with the objects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from checkers.kernels.columns import Int64
from harness.compiled import compiled

CELLS = 1 << 26
"""An object with more than so many operations times sessions is not judged; each takes 4 bytes."""

FINE, NOT_JUDGED = -1, -2
INITIAL = -1
"""The writer of what nobody wrote."""


@dataclass(frozen=True, kw_only=True)
class Causes:
    """The causes of node n next to it are `causes[first[n]:first[n + 1]]`."""

    first: Int64
    causes: Int64

    @classmethod
    def of(cls, cause: Int64, effect: Int64, nodes: int) -> Causes:
        order = np.lexsort((cause, effect))
        first = np.concatenate(([0], np.cumsum(np.bincount(effect, minlength=nodes))))
        return cls(first=first.astype(np.int64), causes=cause[order])


@compiled
def causal_order(first: Int64, causes: Int64) -> Int64:
    """Nodes, each behind all its causes; those in cycles, and their effects, are left out."""
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
            effects[filled[causes[i]]] = node
            filled[causes[i]] += 1
        if waiting[node] == 0:
            order[done] = node
            done += 1
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
def cycle_before(node: int, ordered: Int64, first: Int64, causes: Int64) -> Int64:
    """A cycle, each node behind a cause of it, found by going back from a node that has no place in the order."""
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
    order: Int64,
    object_first: Int64,
    session_first: Int64,
    read_first: Int64,
    session: Int64,
    place: Int64,
    start: Int64,
    first: Int64,
    causes: Int64,
    read_node: Int64,
    read_register: Int64,
    read_writer: Int64,
    run_first: Int64,
    write_first: Int64,
    write_node: Int64,
    cells: int,
) -> Int64:
    """For each read the first write that it should have seen instead of what it saw: FINE if none, or NOT_JUDGED.

    `order` is causal and sorted by object; reads are so too, and writes by register and node: in runs, each of one
    session. The `first` of objects, registers (their runs) and runs are where theirs begin, with one more for the end.
    """
    result = np.full(len(read_node), FINE, dtype=np.int64)
    at = 0
    for thing in range(len(object_first) - 1):
        low, high = object_first[thing], object_first[thing + 1]
        sessions_low, sessions = session_first[thing], session_first[thing + 1] - session_first[thing]
        reads = range(read_first[thing], read_first[thing + 1])
        if (high - low) * sessions > cells:
            for i in reads:
                result[i] = NOT_JUDGED
            while at < len(order) and order[at] < high:
                at += 1
            continue
        # How many operations of each session are causes of each node.
        known = np.zeros((high - low, sessions), dtype=np.int32)
        ordered = np.zeros(high - low, dtype=np.bool_)
        while at < len(order) and order[at] < high:
            node = order[at]
            at += 1
            ordered[node - low] = True
            for i in range(first[node], first[node + 1]):
                cause = causes[i]
                for other in range(sessions):
                    known[node - low, other] = max(known[node - low, other], known[cause - low, other])
                own = session[cause] - sessions_low
                known[node - low, own] = max(known[node - low, own], place[cause] + 1)
        for i in reads:
            node, register, writer = read_node[i], read_register[i], read_writer[i]
            if not ordered[node - low]:
                result[i] = NOT_JUDGED
                continue
            for run in range(run_first[register], run_first[register + 1]):
                seen = known[node - low, session[write_node[write_first[run]]] - sessions_low]
                # The last write of the session that is a cause of the read stands for all before it.
                begin, end = write_first[run], write_first[run + 1]
                while begin < end:
                    middle = (begin + end) // 2
                    if place[write_node[middle]] < seen:
                        begin = middle + 1
                    else:
                        end = middle
                last = write_node[begin - 1] if begin > write_first[run] else -1
                if last < 0 or last == writer:
                    continue
                overwrites = writer == INITIAL or known[last - low, session[writer] - sessions_low] > place[writer]
                if overwrites and (result[i] < 0 or start[last] < start[result[i]]):
                    result[i] = last
    return result
