"""What a batch of a log workload's history says: sends, messages read, and consumers' steps, as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import INVOKE, OK, TYPES, Bool, Int32, Int64, codes, integers, member

COLUMNS = ("index", "process", "type", "f", "key", "value", "node")
"""The columns of a history that the log checker looks at."""

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
        return Reads(self.row[kept], self.message[kept], self.offset[kept])


def operation_codes(batch: pa.Table) -> tuple[Int32, Int32]:
    """(code of OPERATIONS or -1, code of TYPES) for each row."""
    return codes(batch["f"], OPERATIONS), codes(batch["type"], TYPES)


def sends(batch: pa.Table, f: Int32, types: Int32) -> Sends:
    row = np.flatnonzero(f == SEND)
    value = batch["value"].take(pa.array(row))
    return Sends(row, types[row], integers(member(value, "message")), integers(member(value, "offset")))


def reads(batch: pa.Table, polls: Bool) -> Reads:
    """The messages of the polls among these rows that are ok."""
    row = np.flatnonzero(polls)
    lists = member(batch["value"].take(pa.array(row)), "messages")
    if pa.types.is_null(lists.type):
        empty = np.empty(0, dtype=np.int64)
        return Reads(empty, empty, empty)
    parents = pc.list_parent_indices(lists).to_numpy().astype(np.int64)
    elements = pc.list_flatten(lists)
    return Reads(row[parents], integers(member(elements, "message")), integers(member(elements, "offset")))


def is_ok_poll(f: Int32, types: Int32) -> Bool:
    return np.asarray(((f == POLL) | (f == FINAL_POLL)) & (types == OK))


def is_consumer_poll_invocation(f: Int32, types: Int32) -> Bool:
    return np.asarray((f == POLL) & (types == INVOKE))
