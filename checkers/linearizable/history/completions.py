"""Which completions of objects may only repeat their invocation, and which of these differ from it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.completions import CompletionEchoes, members_differ
from checkers.kernels.columns import (
    Bool,
    Int64,
    whole,
)
from checkers.linearizable.history.rows import numbers_and_texts
from checkers.linearizable.model import Model, Repeated


def repeats_of(model: Model) -> tuple[CompletionEchoes, ...]:
    """What ok completions may only repeat. Other completions are not compared."""
    if not model.repeats:
        return ()
    differs = partial(_answers_differ, repeats=model.repeats)
    return (CompletionEchoes(functions=tuple(model.repeats), differs=differs, columns=("value",), types=("ok",)),)


def _holds_integers(kind: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_null(kind))


def _answers_differ(rows: pa.Table, asked: Int64, answered: Int64, *, repeats: Mapping[str, Repeated]) -> Bool:
    value = whole(rows["value"])
    if not pa.types.is_struct(value.type) or all(_holds_integers(field.type) for field in value.type):
        return members_differ(rows, asked, answered, of=("expected", "value"))
    f = whole(rows["f"]).take(pa.array(asked)).cast(pa.string())
    asked_number, asked_text = numbers_and_texts(f, value.take(pa.array(asked)))
    answered_number, answered_text = numbers_and_texts(f, value.take(pa.array(answered)))
    is_answered = pc.or_(answered_number.is_valid(), answered_text.is_valid())
    same = pc.or_(
        pc.equal(asked_number, answered_number).fill_null(False), pc.equal(asked_text, answered_text).fill_null(False)
    )
    doubtful = np.flatnonzero(pc.and_not(is_answered, same).to_numpy(zero_copy_only=False))
    found = np.zeros(len(asked), dtype=np.bool_)
    if not len(doubtful):
        return found
    taken = pa.array(doubtful)
    asked_json = pc.coalesce(asked_text.take(taken), asked_number.take(taken).cast(pa.string()), "null")
    answered_json = pc.coalesce(answered_text.take(taken), answered_number.take(taken).cast(pa.string()))
    names = f.take(taken)
    for name in pc.unique(names).to_pylist():
        mine = np.flatnonzero(pc.equal(names, name).to_numpy(zero_copy_only=False))
        at = pa.array(mine)
        found[doubtful[mine]] = _json_differs(asked_json.take(at), answered_json.take(at), repeats[name])
    return found


def _json_differs(asked: pa.Array, answered: pa.Array, repeated: Repeated) -> Bool:
    """Whether texts that differ stand for different values."""
    is_open = np.ones(len(asked), dtype=np.bool_)
    if repeated.answer:
        is_open &= ~pc.match_substring_regex(answered, repeated.answer).to_numpy(zero_copy_only=False)
    if repeated.within:
        inner = pc.replace_substring_regex(answered, repeated.within, r"\1")
        is_open &= ~pc.equal(asked, inner).to_numpy(zero_copy_only=False)
        answered = inner
    for number in np.flatnonzero(is_open).tolist():
        try:
            is_open[number] = not repeated.same(json.loads(asked[number].as_py()), json.loads(answered[number].as_py()))
        except ValueError:  # no JSON, which the model says
            is_open[number] = False
    return is_open
