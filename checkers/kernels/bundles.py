"""Several tables in one, so that one pass over a history makes all of them: each travels as bytes, under its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import whole
from checkers.kernels.packing import joined, packed

BUNDLES = pa.schema([pa.field("name", pa.string()), pa.field("table", pa.large_binary())])


def bundled(tables: Mapping[str, pa.Table]) -> pa.Table:
    """BUNDLES, a row for each of these that has rows."""
    names = [name for name, table in tables.items() if table.num_rows]
    sink = pa.BufferOutputStream()
    ends = [0]
    for name in names:
        _write(tables[name], sink)
        ends.append(sink.tell())
    offsets = pa.py_buffer(np.array(ends, dtype=np.int64))
    table = pa.Array.from_buffers(pa.large_binary(), len(names), [None, offsets, sink.getvalue()])
    return pa.Table.from_arrays([pa.array(names, pa.string()), table], schema=BUNDLES)


def unbundled(bundles: pa.Table, *, name: str, schema: pa.Schema) -> pa.Table:
    """Kernel over BUNDLES: all rows of the tables of this name, which had this schema."""
    return joined(packed_tables(bundles, name), schema)


def packed_tables(bundles: pa.Table, name: str) -> Sequence[pa.Table]:
    """The tables of this name in BUNDLES, still packed; their bytes are not copied."""
    if not bundles.num_rows:
        return []
    column = whole(bundles["table"])
    _, offsets, payload = column.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[column.offset :].tolist()
    tables = []
    for i, named_so in enumerate(bundles["name"].to_pylist()):
        if named_so == name:
            # A scalar of the column would be a copy.
            with pa.ipc.open_stream(payload.slice(ends[i], ends[i + 1] - ends[i])) as stream:
                tables.append(stream.read_all())
    return tables


def named(bundles: pa.Table, *, name: str) -> pa.Table:
    """Kernel over BUNDLES: the bundles of this name."""
    return bundles.filter(pc.equal(bundles["name"], name))


def _write(table: pa.Table, sink: pa.NativeFile) -> None:
    small = packed(table, table.schema)
    with pa.ipc.new_stream(sink, small.schema) as stream:
        stream.write_table(small)
