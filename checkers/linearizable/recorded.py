"""What was recorded of objects: the rows of a history as kernels take them, and as what they tell of each object.

A value that is an integer travels as a number, whatever it came as; any other as JSON. So objects that hold integers
never become anything else than columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import (
    FAIL,
    INFO,
    INVOKE,
    NONE,
    OK,
    TYPES,
    Bool,
    Int32,
    Int64,
    codes,
    integers,
    member,
    whole,
)
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.linearizable.models import UNTOLD, Call, Model, Repeated, frozen
from checkers.linearizable.objects.spans import NEVER, Spans
from checkers.linearizable.search.problem import Row
from checkers.repeats import Repeats, members_differ
from harness.record.history import NO_PARTNER, pairs

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
"""Rows of a history about objects. The value is an integer, or JSON, or null: then neither is there."""

COMPARING = ("priority-queue",)
"""Models that ask which of two values is less."""

INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"
"""Integers in JSON that have 64 bits for sure."""


def object_rows(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: what of a batch clients did."""
    batch = batch.take(pa.array(np.flatnonzero(batch["process"].to_numpy() >= 0)))
    key = batch["key"].combine_chunks()
    number, text = _values(batch["f"].combine_chunks(), batch["value"].combine_chunks())
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


def _values(f: pa.Array, value: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The integer and the JSON of each value."""
    struct = value.type if pa.types.is_struct(value.type) else pa.struct([])
    if struct.get_field_index("json") >= 0:
        return _integer_or_json(member(value, "json").cast(pa.string()))
    plain = member(value, "value")
    if not (pa.types.is_signed_integer(plain.type) or pa.types.is_null(plain.type)):
        told = zip(f.to_pylist(), value.to_pylist(), strict=True)
        return _integer_or_json(pa.array([json.dumps(_value(f, value)) for f, value in told], pa.string()))
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


def repeats_of(model: Model) -> tuple[Repeats, ...]:
    """What ok completions may only repeat; what others say nobody looks at."""
    if not model.repeats:
        return ()
    differs = partial(_answers_differ, repeats=model.repeats)
    return (Repeats(functions=tuple(model.repeats), differs=differs, columns=("value",), types=("ok",)),)


def _holds_integers(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_null(kind))


def _answers_differ(rows: pa.Table, asked: Int64, told: Int64, *, repeats: Mapping[str, Repeated]) -> Bool:
    value = whole(rows["value"])
    if not pa.types.is_struct(value.type) or all(_holds_integers(field.type) for field in value.type):
        return members_differ(rows, asked, told, of=("expected", "value"))
    f = whole(rows["f"]).take(pa.array(asked)).cast(pa.string())
    asked_number, asked_text = _values(f, value.take(pa.array(asked)))
    told_number, told_text = _values(f, value.take(pa.array(told)))
    is_told = pc.or_(told_number.is_valid(), told_text.is_valid())
    same = pc.or_(
        pc.equal(asked_number, told_number).fill_null(False), pc.equal(asked_text, told_text).fill_null(False)
    )
    doubtful = np.flatnonzero(pc.and_not(is_told, same).to_numpy(zero_copy_only=False))
    found = np.zeros(len(asked), dtype=np.bool_)
    if not len(doubtful):
        return found
    taken = pa.array(doubtful)
    asked_json = pc.coalesce(asked_text.take(taken), asked_number.take(taken).cast(pa.string()), "null")
    told_json = pc.coalesce(told_text.take(taken), told_number.take(taken).cast(pa.string()))
    names = f.take(taken)
    for name in pc.unique(names).to_pylist():
        mine = np.flatnonzero(pc.equal(names, name).to_numpy(zero_copy_only=False))
        at = pa.array(mine)
        found[doubtful[mine]] = _json_differs(asked_json.take(at), told_json.take(at), repeats[name])
    return found


def _json_differs(asked: pa.Array, told: pa.Array, repeated: Repeated) -> Bool:
    """Of texts that differ."""
    is_open = np.ones(len(asked), dtype=np.bool_)
    if repeated.answer:
        is_open &= ~pc.match_substring_regex(told, repeated.answer).to_numpy(zero_copy_only=False)
    if repeated.within:
        inner = pc.replace_substring_regex(told, repeated.within, r"\1")
        is_open &= ~pc.equal(asked, inner).to_numpy(zero_copy_only=False)
        told = inner
    for number in np.flatnonzero(is_open).tolist():
        try:
            is_open[number] = not repeated.same(json.loads(asked[number].as_py()), json.loads(told[number].as_py()))
        except ValueError:  # no JSON, which the model says
            is_open[number] = False
    return is_open


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


def spans_of(model: Model, rows: pa.Table, held: Sequence[Hashable]) -> tuple[Spans, tuple[int, ...]]:
    """Rows of one object as columns; and what it holds at first, as `held` names it, in numbers.

    Values that are no integers are numbered, in their own order, or in any if the model compares none. Raises TypeError
    if they have no order that they need, and ValueError for a value that is no JSON.
    """
    value, initial, values = _numbered(rows, held, None if model.name in COMPARING else _any_order)
    index, f = rows["index"].to_numpy(), codes(rows["f"], model.functions)
    invoked, completed, is_ok = happened(model, rows, f, value == NONE)
    spans = Spans(
        start=index[invoked],
        end=np.where(is_ok, index[completed], NEVER),
        f=f[invoked].astype(np.int8),
        argument=value[invoked],
        result=np.where(is_ok, value[completed], NONE),
        values=values,
    )
    return spans, initial


def happened(model: Model, rows: pa.Table, f: Int32, is_null: Bool) -> tuple[Int64, Int64, Bool]:
    """Rows of invocations and of their completions, without what failed or tells nothing, and whether these are ok."""
    kind = rows["type"].to_numpy()
    partner = pairs(rows["index"].to_numpy(), rows["process"].to_numpy(), kind == INVOKE)
    invoked = np.flatnonzero(kind == INVOKE)
    completed = partner[invoked]
    became = np.where(completed == NO_PARTNER, INFO, kind[completed])
    is_ok = became == OK
    untold, told_null = tells_nothing(model, UNTOLD)[f[invoked]], tells_nothing(model, None)[f[invoked]]
    kept = (became != FAIL) & ~np.where(is_ok, told_null & is_null[completed], untold)
    return invoked[kept], completed[kept], is_ok[kept]


def tells_nothing(model: Model, result: Hashable) -> Bool:
    """By function: whether a call with this result tells nothing."""
    calls = [Call(f=f, argument=None, result=result) for f in model.functions]
    return np.array([model.tells_nothing(call) for call in calls], dtype=np.bool_)


def _any_order(value: Hashable) -> tuple[str, str]:
    return type(value).__name__, repr(value)


def _numbered(
    rows: pa.Table, held: Sequence[Hashable], otherwise: Callable[[Hashable], Any] | None
) -> tuple[Int64, tuple[int, ...], Sequence[Hashable] | None]:
    """Values, what is held at first, and what the numbers stand for, if not for themselves; null is NONE."""
    number, text = rows["number"], rows["text"].combine_chunks()
    value = integers(number)
    is_plain = text.null_count == len(text) and number.null_count == np.count_nonzero(value == NONE)
    if is_plain and all(one is None or (type(one) is int and NONE < one <= -(NONE + 1)) for one in held):
        return value, tuple(NONE if one is None else one for one in held), None  # type: ignore[misc]
    texts = text.dictionary_encode()
    decoded = [frozen(json.loads(one)) for one in texts.dictionary.to_pylist()]
    is_number = number.combine_chunks().is_valid().to_numpy(zero_copy_only=False)
    distinct, at = np.unique(value[is_number], return_inverse=True)
    different = {*held, *decoded, *distinct.tolist()} - {None}
    try:
        values = sorted(different)
    except TypeError:
        if otherwise is None:
            raise
        values = sorted(different, key=otherwise)
    place = {one: position for position, one in enumerate(values)} | {None: NONE}
    numbered = np.full(len(value), NONE, dtype=np.int64)
    numbered[is_number] = np.array([place[one] for one in distinct.tolist()], dtype=np.int64)[at]
    is_text = text.is_valid().to_numpy(zero_copy_only=False)
    of_texts = np.array([place[one] for one in decoded], dtype=np.int64)
    numbered[is_text] = of_texts[texts.indices.drop_null().to_numpy()]
    return numbered, tuple(place[one] for one in held), values
