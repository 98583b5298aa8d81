"""Rows of one object as the numbers that its decider takes as input."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import (
    FAIL,
    INFO,
    INVOKE,
    NONE,
    OK,
    Bool,
    Int32,
    Int64,
    codes,
    integers,
)
from checkers.linearizable.deciders.spans import Spans
from checkers.linearizable.model import INDEFINITE, Call, Columns, Model
from checkers.linearizable.values import NEVER, frozen
from harness.record.history import NO_PARTNER, pairs


def spans_of(model: Model, rows: pa.Table, held: Sequence[Hashable], columns: Columns) -> tuple[Spans, tuple[int, ...]]:
    """(rows of one object as columns, the numbers of `held`, which it holds at first).

    Values that are not integers are numbered, in their own order if the decider compares them. Raises TypeError if they
    have no order but need one, and ValueError for a value that is not JSON.
    """
    value, initial, values = _numbered(rows, held, None if columns is Columns.ORDERED_VALUES else _any_order)
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
    """(rows of invocations, rows of their completions, whether these are ok), without operations that failed or show
    nothing."""
    kind = rows["type"].to_numpy()
    partner = pairs(rows["index"].to_numpy(), rows["process"].to_numpy(), kind == INVOKE)
    invoked = np.flatnonzero(kind == INVOKE)
    completed = partner[invoked]
    became = np.where(completed == NO_PARTNER, INFO, kind[completed])
    is_ok = became == OK
    indefinite, null = says_nothing(model, INDEFINITE)[f[invoked]], says_nothing(model, None)[f[invoked]]
    kept = (became != FAIL) & ~np.where(is_ok, null & is_null[completed], indefinite)
    return invoked[kept], completed[kept], is_ok[kept]


def says_nothing(model: Model, result: Hashable) -> Bool:
    """By function: whether a call with this result shows nothing."""
    calls = [Call(f=f, argument=None, result=result) for f in model.functions]
    return np.array([model.says_nothing(call) for call in calls], dtype=np.bool_)


def _any_order(value: Hashable) -> tuple[str, str]:
    return type(value).__name__, repr(value)


def _numbered(
    rows: pa.Table, held: Sequence[Hashable], otherwise: Callable[[Hashable], Any] | None
) -> tuple[Int64, tuple[int, ...], Sequence[Hashable] | None]:
    """(values, what is held at first, what the numbers stand for if not for themselves); null is NONE."""
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
