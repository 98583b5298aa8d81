"""The messages at each place (queue and offset), and which places are known.

    send m1 acked at 0 · poll: m1 at 0, m2 at 1 · poll from 1: m3 at 1 · poll: m1 at 0, m9 at 70,000

Place 1 has two messages (`conflicts`). The last poll went from 0 to 70,000 (`jumps`) and passed over the known place 1,
which is in block 0 of level 0; of level 1, where a point is a block of BLOCK_BITS bits of offsets, 0 and 1 are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import NONE, OK, Int64, run_starts
from checkers.kernels.hashing import bucket_of, mixed
from checkers.log.final_reads import FinalReads
from checkers.log.rows import FINAL_POLL, is_ok_poll, operation_codes, reads, sends, with_parts

BLOCK_BITS = 16
LEVELS = 4
"""64 bits of offset in steps of BLOCK_BITS."""

PLACES = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("kind", pa.int8()),
        pa.field("level", pa.int8()),
        pa.field("queue", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("message", pa.int64()),
        pa.field("node", pa.int32()),
        pa.field("index", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("previous", pa.int64()),
        pa.field("jump", pa.int8()),
    ]
)
"""What a row says depends on its kind.
FACT, FINAL_FACT: operation `index` shows that `message` is at `offset` (of replica `node`).
KNOWN_BLOCK: `offset`, shown by `index`, is the lowest known one of its block at `level`.
BACKWARD, PROBE: operation `index` went to offset `end` where `previous` had been at `offset`."""

FACT, FINAL_FACT, KNOWN_BLOCK, BACKWARD, PROBE = range(5)


@dataclass(frozen=True, kw_only=True)
class Places:
    """Rows of PLACES, column by column: arrays of equal length, or one number for all rows."""

    kind: int | Int64
    queue: Int64
    offset: Int64
    index: Int64
    level: int = 0
    block: Int64 | None = None
    """The block, which decides the bucket; None: that of the offset at the level."""
    message: int | Int64 = NONE
    node: int | Int64 = -1
    end: int | Int64 = NONE
    previous: int | Int64 = NONE
    jump: int | Int64 = -1

    def table(self, buckets: int) -> pa.Table:
        block = self.offset >> BLOCK_BITS * (self.level + 1) if self.block is None else self.block
        bucket = bucket_of(mixed(block, mixed(self.queue * LEVELS + self.level)), buckets)
        columns = (np.broadcast_to(np.asarray(getattr(self, name)), len(self.offset)) for name in PLACES.names[1:])
        types = (field.type.to_pandas_dtype() for field in list(PLACES)[1:])
        arrays = [pa.array(column.astype(dtype, copy=False)) for column, dtype in zip(columns, types, strict=True)]
        return pa.Table.from_arrays([pa.array(bucket), *arrays], schema=PLACES)


def place_facts(batch: pa.Table, *, final: FinalReads, buckets: int) -> pa.Table:
    """Kernel: what one batch shows of places, and which blocks it knows."""
    batch = with_parts(batch)
    f, types = operation_codes(batch)
    index = batch["index"].to_numpy()
    sent = sends(batch, f, types)
    acked = (sent.type == OK) & (sent.offset != NONE) & (sent.message != NONE)
    read = reads(batch, is_ok_poll(f, types))
    row = np.concatenate((sent.row[acked], read.row))
    queue = final.queue_numbers(batch["key"])[row].astype(np.int64)
    offset = np.concatenate((sent.offset[acked], read.offset))
    facts = Places(
        kind=np.where(f[row] == FINAL_POLL, FINAL_FACT, FACT),
        queue=queue,
        offset=offset,
        message=np.concatenate((sent.message[acked], read.message)),
        node=final.node_numbers(batch["node"])[row],
        index=index[row],
    ).table(buckets)
    return pa.concat_tables([facts, *_known_blocks(queue, offset, index[row], buckets)]).combine_chunks()


def _known_blocks(queue: Int64, offset: Int64, index: Int64, buckets: int) -> Iterator[pa.Table]:
    order = np.lexsort((index, offset, queue))
    queue, offset, index = queue[order], offset[order], index[order]
    for level in range(1, LEVELS):
        lowest = run_starts(queue, offset >> BLOCK_BITS * level)
        queue, offset, index = queue[lowest], offset[lowest], index[lowest]
        yield Places(kind=KNOWN_BLOCK, level=level, queue=queue, offset=offset, index=index).table(buckets)
