"""The content of a batch of a log workload's history as flat arrays: sends, messages read, and consumers' steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from checkers.api.evidence import Evidence, any_ok, reading
from checkers.completions import members, parts
from checkers.kernels.columns import INVOKE, OK, TYPES, Bool, Int32, Int64, codes, elements, integers, member, whole

COLUMNS = ("index", "type", "f", "key", "value.message", "value.offset", "value.messages", "value.txn", "node")
"""The columns of a history that show messages and places."""

MESSAGES = pa.list_(pa.struct([pa.field("offset", pa.int64()), pa.field("message", pa.int64())]))

PART = pa.struct(
    [
        pa.field("f", pa.string()),
        pa.field("key", pa.string()),
        pa.field("message", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("messages", MESSAGES),
        pa.field("from_offset", pa.int64()),
        pa.field("end", pa.bool_()),
        pa.field("repositioned", pa.bool_()),
    ]
)
"""A part of a transaction: a `send` of a message to the queue `key`, which is at `offset` by the completion; or a
`poll` of that queue, from `from_offset` on if that is set, which gave these messages. `end` says that the poll is known
to have reached the end of the queue: if there had been more, the answer would have shown it. `repositioned` says that
its consumer need not have gone on where it was, because it was, or may have been, assigned other queues in between. A
`final-poll` is a poll of a consumer that was set to the beginning of the queue and has read on from there."""

LOG_MESSAGES = pa.struct(
    [
        pa.field("message", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("messages", MESSAGES),
        pa.field("group", pa.string()),
        pa.field("resumed", pa.int64()),
        pa.field("txn", pa.list_(PART)),
        pa.field("tag", pa.int64()),
    ]
)
"""The value of the log workload's operations. The last four may be missing. `group` and `resumed` are for polls: the
consumer's group, and in the first poll of a consumer and queue the offset at which the group's committed offset let it
begin. `txn` is for transactions of several sends and polls, and all that they have, and for batches, which are sends
alone. `tag` is what a message is sent with, or what a filtered poll asks for, which is resumed at where it began."""

EVIDENCE = (
    *any_ok("poll", "final-poll"),
    reading("txn", "poll"),
    reading("txn", "final-poll"),
    Evidence(f="send", at_least=2),
)
"""The evidence: a poll could show a message that was never sent, and two acks could name the same place."""

REPEATS = (
    members("send", of=("message",)),
    parts("txn", "send-batch", written=("send",), among=("send",), value="message"),
    members("filtered-poll", "final-filtered-poll", of=("tag",)),
    members("final-look-up", of=("message",)),
)
"""What completions repeat. Polls have in their answers what they were given, from any queue, and its places."""

OPERATIONS = ("send", "poll", "final-poll", "caught-up")
SEND, POLL, FINAL_POLL, CAUGHT_UP = range(4)


@dataclass(frozen=True)
class Sends:
    """Send rows of any type."""

    row: Int64
    """The position in the batch."""
    type: Int32
    message: Int64
    offset: Int64
    """The offset that the ack names; NONE unless ok."""


@dataclass(frozen=True)
class Reads:
    """Messages of ok polls, one for each element, in the order read. `row` is the poll's position in the batch."""

    row: Int64
    message: Int64
    offset: Int64

    def of(self, rows: Bool) -> Reads:
        """The messages of these rows of the batch."""
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


PLAIN_MEMBERS = ("message", "offset", "messages")
"""The members that parts of transactions have in common with single operations."""


def count_alone(batch: pa.Table) -> int:
    """How many rows are not transactions. The parts of transactions come behind them."""
    return int(np.count_nonzero(member(batch["value"], "txn").is_null()))


def with_parts(batch: pa.Table, wanted: tuple[str, ...] = PLAIN_MEMBERS) -> pa.Table:
    """The batch with a row for each part of a transaction, behind all others, in place of the transaction's own row. Of
    values only these members are kept."""
    lists = member(batch["value"], "txn")
    if not pa.types.is_list(lists.type) or lists.null_count == len(lists):
        return batch
    of, parts = elements(lists)
    rest = np.flatnonzero(lists.is_null().to_numpy(zero_copy_only=False))
    table = batch.take(pa.array(np.concatenate((rest, of))))
    rest_taken = pa.array(rest)
    replaced: dict[str, pa.Array] = {
        name: _joined(whole(batch[name]).cast(pa.string()).take(rest_taken), member(parts, name).cast(pa.string()))
        for name in ("f", "key")
    }
    names = [name for name in wanted if not pa.types.is_null(member(parts, name).type)]
    values = [_joined(member(batch["value"], name).take(rest_taken), member(parts, name)) for name in names]
    replaced["value"] = pa.StructArray.from_arrays(values, names)
    for name, column in replaced.items():
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def _joined(plain: pa.Array, parts: pa.Array) -> pa.Array:
    return pa.concat_arrays([plain.cast(parts.type), parts])
