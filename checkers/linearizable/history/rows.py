"""Rows of a history about objects, as kernels take them.

A value that is an integer travels as a number, whatever it was recorded as; any other value travels as JSON. So objects
that hold integers are columns from end to end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import (
    TYPES,
    codes,
    member,
)
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.linearizable.history.calls import Row
from checkers.linearizable.values import frozen

COLUMNS = ("index", "process", "type", "f", "key", "value", "error")


ROWS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("key", pa.string()),
        pa.field("index", pa.int64()),
        pa.field("process", pa.int32()),
        pa.field("type", pa.int8()),
        pa.field("f", pa.string()),
        pa.field("number", pa.int64()),
        pa.field("text", pa.string()),
        pa.field("error", pa.string()),
    ]
)
"""Rows of a history about objects. The value is an integer, or JSON, or null; if it is null, neither is there."""


INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
"""A pattern of integers in JSON that certainly fit 64 bits."""


def object_rows(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: the rows of a batch that are clients'."""
    batch = batch.take(pa.array(np.flatnonzero(batch["process"].to_numpy() >= 0)))
    key = batch["key"].combine_chunks()
    number, text = numbers_and_texts(batch["f"].combine_chunks(), batch["value"].combine_chunks())
    return pa.Table.from_arrays(
        [
            pa.array(bucket_of(mixed_column(key), buckets)),
            key.cast(pa.string()),
            batch["index"].cast(pa.int64()).combine_chunks(),
            batch["process"].cast(pa.int32()).combine_chunks(),
            pa.array(codes(batch["type"], TYPES).astype(np.int8)),
            batch["f"].cast(pa.string()).combine_chunks(),
            number,
            text,
            batch["error"].cast(pa.string()).combine_chunks(),
        ],
        schema=ROWS,
    )


def numbers_and_texts(f: pa.Array, value: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The integer and the JSON of each value."""
    struct = value.type if pa.types.is_struct(value.type) else pa.struct([])
    if struct.get_field_index("json") >= 0:
        return _integer_or_json(member(value, "json").cast(pa.string()))
    plain = member(value, "value")
    if not (pa.types.is_signed_integer(plain.type) or pa.types.is_null(plain.type)):
        both = zip(f.to_pylist(), value.to_pylist(), strict=True)
        return _integer_or_json(pa.array([json.dumps(_value(f, value)) for f, value in both], pa.string()))
    is_pair = pc.fill_null(pc.equal(f.cast(pa.string()), "cas"), False)
    if struct.get_field_index("expected") < 0 or not pc.any(is_pair).as_py():
        return plain.cast(pa.int64()), pa.nulls(len(value), pa.string())
    expected, new = (pc.fill_null(column.cast(pa.string()), "null") for column in (member(value, "expected"), plain))
    pair = pc.binary_join_element_wise("[", expected, ", ", new, "]", "")
    nothing = pa.scalar(None, pa.int64())
    return (
        pc.if_else(is_pair, nothing, plain.cast(pa.int64())),
        pc.if_else(pc.and_(is_pair, value.is_valid()), pair, pa.scalar(None, pa.string())),
    )


def _integer_or_json(text: pa.Array) -> tuple[pa.Array, pa.Array]:
    nothing = pa.scalar(None, pa.string())
    is_integer = pc.match_substring_regex(text, INTEGER)
    number = pc.if_else(is_integer, text, nothing).cast(pa.int64())
    return number, pc.if_else(pc.or_(is_integer, pc.equal(text, "null")), nothing, text)


def _value(f: str, struct: Any) -> Any:
    if struct is None:
        return None
    if f == "cas" and "expected" in struct:
        return [struct["expected"], struct.get("value")]
    return struct.get("value")


def objects(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each object, in order, object by object in the order of keys."""
    keys = pc.fill_null(rows["key"].combine_chunks(), "").dictionary_encode()
    names = keys.dictionary.to_pylist()
    place = np.empty(len(names), dtype=np.int64)
    place[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    owner = place[keys.indices.to_numpy()]
    order = np.lexsort((rows["index"].to_numpy(), owner))
    ordered = rows.take(pa.array(order)).combine_chunks()
    bounds = np.searchsorted(owner[order], np.arange(len(names) + 1))
    for number, name in enumerate(sorted(names)):
        yield name, ordered.slice(bounds[number], bounds[number + 1] - bounds[number])


def rows_of(rows: pa.Table) -> list[Row]:
    """Rows of one object, one by one. Raises ValueError for a value that is no JSON."""
    decoded = {text: frozen(json.loads(text)) for text in pc.unique(rows["text"]).to_pylist() if text is not None}
    columns = (rows[name].to_pylist() for name in ("process", "type", "f", "number", "text", "error", "index"))
    return [
        Row(process, TYPES[kind], f, number if text is None else decoded[text], error, index)
        for process, kind, f, number, text, error, index in zip(*columns, strict=True)
    ]
