"""Dependencies between transactions on queues, and the cycles among them.

The versions of a queue are its messages in the order of their offsets, as far as acknowledgements and polls show these.
So the order is known except for gaps, and these dependencies hold whatever the gaps contain:

  WW  from the sender of a message to the sender of the next known one
  WR  from the sender of the last message of a queue that a transaction was given to that transaction; earlier messages
      lead there by way of WW
  RW  from a poll that reached the end of the queue to the sender of the next known message behind: that was not there
      when the poll looked, or the answer would have shown it

If sends of different transactions may be interleaved in a queue, as Kafka's are, their order says nothing: there is no
WW then, and WR comes from the senders of all messages that a transaction was given.

A poll of a transaction reached the end if it says so (`end`), or if it asked from an offset on and was given nothing.
A short answer proves nothing, nor does an empty one whose beginning is unknown. A client that records an empty answer
which was only a time-out must leave `from_offset` out. Single polls never prove an end.

Messages that cannot be trusted are left out: those that several operations tried to send to the queue, those at more
than one offset, and those that share an offset. They are anomalies of their own. Failed operations take no part. An
indefinite operation takes part if a message that it sent was given to a consumer; what it was given shows nothing.

Single sends and polls are transactions of one operation. They are looked at only if a history has real transactions:
contradictions among single operations have names of their own.

Sources: Adya, Liskov, O'Neil, "Generalized Isolation Level Definitions" (ICDE 2000); Kingsbury, Alvaro, "Elle:
Inferring Isolation Anomalies from Experimental Observations" (VLDB 2020).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import FAIL, NONE, OK, Bool, Int8, Int64, run_starts
from checkers.log.transaction_events import EventKind
from checkers.transactions.elle.edges import EDGES, Dependency, positions
from checkers.transactions.elle.reasons import positions_of, reasons_table


class Writes(Enum):
    """What may come between the sends of one transaction to a queue."""

    ISOLATED = "isolated"
    """No sends of other transactions."""
    INTERLEAVED = "interleaved"
    """Sends of any other transactions."""


@dataclass(frozen=True, kw_only=True)
class _Dependencies:
    """The dependencies of one queue. `source` and `target` are rows of EVENTS; for WW and RW `next_message` is what the
    target sent."""

    kind: Int8
    source: Int64
    target: Int64
    message: Int64
    next_message: Int64

    @classmethod
    def of(cls, events: pa.Table, writes: Writes) -> _Dependencies:
        start, event, message, offset, kind = (
            events[name].to_numpy() for name in ("start", "event", "message", "offset", "type")
        )
        at, sender = _versions(start, event, message, offset, kind)
        value = message[sender]

        shown = np.flatnonzero((event == EventKind.POLLED) & (offset != NONE) & (message != NONE))
        version = np.searchsorted(at, offset[shown])
        inside = version < len(at)
        shown, version = shown[inside], version[inside]
        known = (at[version] == offset[shown]) & (value[version] == message[shown])
        shown, version = shown[known], version[known]
        if writes is Writes.ISOLATED:
            order = np.lexsort((-version, start[shown]))
            shown, version = shown[order], version[order]
            last = run_starts(start[shown])
            shown, version = shown[last], version[last]
        follower = sender[1:] if writes is Writes.ISOLATED else sender[:0]

        ends = np.flatnonzero(event == EventKind.END)
        ends = ends[np.lexsort((offset[ends], start[ends]))]
        ends = ends[run_starts(start[ends])]
        behind = np.searchsorted(at, offset[ends], side="right")
        ends, behind = ends[behind < len(at)], behind[behind < len(at)]
        before = np.where(behind > 0, value[np.maximum(behind - 1, 0)], NONE) if len(at) else behind

        parts = (
            (Dependency.WW, sender[: len(follower)], follower, value[: len(follower)], value[1 : len(follower) + 1]),
            (Dependency.WR, sender[version], shown, value[version], np.full(len(shown), NONE)),
            (Dependency.RW, ends, sender[behind], before, value[behind]),
        )
        edge = np.repeat([int(part[0]) for part in parts], [len(part[1]) for part in parts]).astype(np.int8)
        source, target, first, second = (np.concatenate([part[i] for part in parts]) for i in range(1, 5))
        order = np.lexsort((first, start[target], start[source], edge))
        order = order[start[source[order]] != start[target[order]]]
        once = order[run_starts(edge[order], start[source[order]], start[target[order]])]
        return cls(
            kind=edge[once],
            source=source[once],
            target=target[once],
            message=first[once],
            next_message=second[once],
        )


def _versions(start: Int64, event: Int8, message: Int64, offset: Int64, kind: Int8) -> tuple[Int64, Int64]:
    """(offset, row of an attempt to send) of each message whose place and sender are beyond doubt, by offset."""
    placed = (event == EventKind.POLLED) | ((event == EventKind.SENT) & (kind == OK))
    placed &= (offset != NONE) & (message != NONE)
    at, what = offset[placed], message[placed]
    order = np.lexsort((what, at))
    at, what = at[order], what[order]
    first = run_starts(at, what)
    at, what = at[first], what[first]
    alone = _alone(at) & _alone(what)
    at, what = at[alone], what[alone]

    sent = np.flatnonzero((event == EventKind.SENT) & (message != NONE))
    sent = sent[np.lexsort((start[sent], message[sent]))]
    sent = sent[run_starts(message[sent], start[sent])]
    sent = sent[_alone(message[sent])]
    sent = sent[kind[sent] != FAIL]
    if not len(sent):
        return at[:0], sent
    found = np.minimum(np.searchsorted(message[sent], what), len(sent) - 1)
    known = message[sent[found]] == what
    return at[known], sent[found[known]]


def _alone(values: Int64) -> Bool:
    """Which values have no equal one."""
    _, position, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray(count[position.reshape(-1)] == 1)


def queue_edges(events: pa.Table, *, writes: Writes) -> pa.Table:
    """Kernel over all EVENTS of a queue: EDGES."""
    found = _Dependencies.of(events, writes)
    start, end, kind = (events[name].to_numpy() for name in ("start", "end", "type"))
    position = positions(start, end, kind)
    columns = (found.kind, start[found.source], position[found.source], start[found.target], position[found.target])
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=EDGES)


def queue_reasons(events: pa.Table, *, wanted: pa.Table, writes: Writes) -> pa.Table:
    """Kernel over all EVENTS of a queue: EDGE_REASONS, at most one for each wanted edge."""
    found = _Dependencies.of(events, writes)
    start = events["start"].to_numpy()
    source, target = start[found.source], start[found.target]
    chosen = np.flatnonzero(positions_of(wanted, found.kind, source, target) >= 0)
    return reasons_table(
        kind=found.kind[chosen],
        source=source[chosen],
        target=target[chosen],
        key=events["queue"].combine_chunks().take(pa.array(found.source[chosen])),
        value=found.message[chosen],
        next_value=found.next_message[chosen],
        evidence=np.full(len(chosen), NONE, dtype=np.int64),
    )
