"""What a batch of a log workload's history says: sends, messages read, and consumers' steps, as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import INVOKE, OK, TYPES, Bool, Int32, Int64, codes, elements, integers, member

COLUMNS = ("index", "type", "f", "key", "value.message", "value.offset", "value.messages", "node")
"""What of a history tells of messages and places."""

LOG_MESSAGES = pa.struct(
    [
        pa.field("message", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("messages", pa.list_(pa.struct([pa.field("offset", pa.int64()), pa.field("message", pa.int64())]))),
        pa.field("group", pa.string()),
        pa.field("resumed", pa.int64()),
    ]
)
"""The value of the log workload's operations. The last two are for polls, and may be missing: the consumer's group, and
in the first poll of a consumer and queue the offset at which the group's committed offset let it begin."""

OPERATIONS = ("send", "poll", "final-poll", "caught-up")
SEND, POLL, FINAL_POLL, CAUGHT_UP = range(4)


@dataclass(frozen=True)
class Sends:
    """Send rows of any type."""

    row: Int64
    """Position in the batch."""
    type: Int32
    message: Int64
    offset: Int64
    """NONE unless ok."""


@dataclass(frozen=True)
class Reads:
    """Messages of ok polls, one an element, in the order read; `row` is the poll's position in the batch."""

    row: Int64
    message: Int64
    offset: Int64

    def of(self, rows: Bool) -> Reads:
        """Those of these rows of the batch."""
        kept = rows[self.row]
        if kept.all():
            return self
        return Reads(self.row[kept], self.message[kept], self.offset[kept])


def operation_codes(batch: pa.Table) -> tuple[Int32, Int32]:
    """(code of OPERATIONS or -1, code of TYPES) for each row."""
    return codes(batch["f"], OPERATIONS), codes(batch["type"], TYPES)


def sends(batch: pa.Table, f: Int32, types: Int32) -> Sends:
    row = np.flatnonzero(f == SEND)
    message, offset = (integers(member(batch["value"], name))[row] for name in ("message", "offset"))
    return Sends(row, types[row], message, offset)


def reads(batch: pa.Table, polls: Bool) -> Reads:
    """The messages of the polls among these rows that are ok."""
    lists = member(batch["value"], "messages")
    if pa.types.is_null(lists.type):
        empty = np.empty(0, dtype=np.int64)
        return Reads(empty, empty, empty)
    row, read = elements(lists)
    return Reads(row, integers(member(read, "message")), integers(member(read, "offset"))).of(polls)


def is_ok_poll(f: Int32, types: Int32) -> Bool:
    return np.asarray(((f == POLL) | (f == FINAL_POLL)) & (types == OK))


def is_consumer_poll_invocation(f: Int32, types: Int32) -> Bool:
    return np.asarray((f == POLL) & (types == INVOKE))
