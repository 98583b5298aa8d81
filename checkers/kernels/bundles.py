"""Several tables as one, so that one pass over a history makes them all: each travels as bytes, under its name."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from checkers.kernels.columns import whole
from checkers.kernels.packing import joined, packed

BUNDLES = pa.schema([pa.field("name", pa.string()), pa.field("table", pa.binary())])


def bundled(tables: Mapping[str, pa.Table]) -> pa.Table:
    """BUNDLES, a row for each of these that has rows."""
    rows = [{"name": name, "table": _bytes(table)} for name, table in tables.items() if table.num_rows]
    return pa.Table.from_pylist(rows, schema=BUNDLES)


def unbundled(bundles: pa.Table, *, name: str, schema: pa.Schema) -> pa.Table:
    """Kernel over BUNDLES: all rows of the tables of this name, which had this schema."""
    parts = []
    for named, payload in zip(bundles["name"].to_pylist(), whole(bundles["table"]), strict=True):
        if named == name:
            with pa.ipc.open_stream(payload.as_buffer()) as stream:
                parts.append(stream.read_all())
    return joined(parts, schema)


def _bytes(table: pa.Table) -> memoryview:
    small = packed(table, table.schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, small.schema) as stream:
        stream.write_table(small)
    return memoryview(sink.getvalue())
