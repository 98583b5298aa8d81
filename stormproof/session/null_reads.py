"""What an ok read of null says: that the register was empty, or nothing at all, as Knossos takes it.

Taken for nothing, such a read becomes one that failed: it had no effect, and constrains no order.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from checkers.history_batches import Source
from harness.record.history.parquet import parquet_file
from harness.record.history.schema import OPERATION_TYPES

READS = ("read",)
_NULLS = ("null", "")


class NullReads(Enum):
    EMPTY = "empty"
    UNKNOWN = "unknown"


def taken_for_nothing(history: Source, kept: Path) -> Source:
    """The same without what ok reads of null say: in memory if it is there, else at `kept`. Raises OSError."""
    if isinstance(history, pa.Table):
        return pa.Table.from_batches(map(_batch, history.to_batches()), history.schema)
    with pq.ParquetFile(history) as read, parquet_file(kept, read.schema_arrow) as writer:
        for batch in read.iter_batches():
            writer.write_batch(_batch(batch).cast(read.schema_arrow))
    return kept


def _batch(rows: pa.RecordBatch) -> pa.RecordBatch:
    types, fs = (rows[name].cast(pa.string()) for name in ("type", "f"))
    says_nothing = pc.and_(pc.and_(pc.equal(types, "ok"), pc.is_in(fs, pa.array(READS))), _is_null(rows["value"]))
    types = pc.if_else(says_nothing, OPERATION_TYPES[2], types)
    place = rows.schema.get_field_index("type")
    return rows.set_column(place, rows.schema.field(place), types.cast(rows.schema.field(place).type))


def _is_null(values: pa.StructArray) -> pa.BooleanArray:
    """Which values are null, for integers as well as for values as JSON."""
    names = [field.name for field in values.type]
    shown = pc.struct_field(values, "json" if "json" in names else "value")
    if pa.types.is_dictionary(shown.type):
        shown = shown.dictionary_decode()
    is_null = pc.is_null(shown)
    return pc.or_(is_null, pc.is_in(shown, pa.array(_NULLS))) if pa.types.is_string(shown.type) else is_null
