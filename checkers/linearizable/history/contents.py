"""Rows of objects whose reads show all that they hold, as columns: sets and append-only logs.

Elements are numbers: themselves if all of them are integers, otherwise their places among all that occur. The result of
a call is 1 or 0 for true or false, or the position that an append returned; the result of a read is a list.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.kernels.columns import NONE, Int64, codes, integers
from checkers.linearizable.deciders.spans import Lists, Open, Spans
from checkers.linearizable.history.columns import happened
from checkers.linearizable.model import INDEFINITE, Call, Model
from checkers.linearizable.values import NEVER, Truth, frozen

CONTENTS = ("append-log", "set")
"""The models of such objects."""


POSITIONS = 1 << 60
"""A length that no log has."""


class _Elements:
    """The numbers of elements, which are integers that stand for themselves, or any values."""

    def __init__(self, integers: Int64, others: Iterable[Hashable]) -> None:
        found = dict.fromkeys(others)
        self.values: Sequence[Hashable] | None = None
        if not all(type(one) is int and NONE < one < -NONE for one in found):
            self.values = list(found | dict.fromkeys(np.unique(integers[integers != NONE]).tolist()))
            self._place = {value: place for place, value in enumerate(self.values)}

    def number(self, value: Any) -> int:
        return int(value if self.values is None else self._place[value])

    def value(self, number: int) -> Hashable:
        return int(number) if self.values is None or number == NONE else self.values[number]

    def numbers(self, integers: Int64) -> Int64:
        """The numbers of integers, and NONE for NONE."""
        if self.values is None:
            return integers
        distinct, at = np.unique(integers, return_inverse=True)
        places = [NONE if one == NONE else self._place[one] for one in distinct.tolist()]
        return np.array(places, dtype=np.int64)[at.reshape(-1)]


def contents_of(model: Model, rows: pa.Table, held: Sequence[Hashable]) -> tuple[Spans, tuple[int, ...]] | Open:
    """Rows of one object as columns, and what it holds at first, in numbers.

    Open if a call returned something that such objects do not return. Raises ValueError for a value that is no JSON.
    """
    texts = rows["text"].combine_chunks().dictionary_encode()
    value = [*(frozen(json.loads(text)) for text in texts.dictionary.to_pylist()), None]
    nothing = len(value) - 1
    text = pc.fill_null(texts.indices, nothing).to_numpy(zero_copy_only=False).astype(np.int64)
    number, f = integers(rows["number"]), codes(rows["f"], model.functions)
    invoked, completed, is_ok = happened(model, rows, f, (number == NONE) & (text == nothing))
    f = f[invoked]
    read_text = np.where(is_ok, text[completed], nothing)
    is_read = f == model.functions.index("read")
    is_append = np.isin(f, [at for at, name in enumerate(model.functions) if name == "append"])
    lists = {at: value[at] for at in np.unique(read_text[is_read]).tolist()}
    if not all(isinstance(one, tuple) for one in lists.values()):
        return Open("a read returned no list")

    asked = np.where(is_read, NONE, number[invoked])
    names = np.unique(text[invoked[~is_read & (asked == NONE)]]).tolist()
    elements = _Elements(asked, chain(held, (value[at] for at in names), chain.from_iterable(lists.values())))
    of_name = np.full(len(value), NONE, dtype=np.int64)
    of_name[names] = [NONE if value[at] is None else elements.number(value[at]) for at in names]
    argument = np.where(is_read | (asked != NONE), elements.numbers(asked), of_name[text[invoked]])

    result = np.full(len(invoked), NONE, dtype=np.int64)
    truth = np.array([int(bool(one)) if isinstance(one, Truth) else NONE for one in value], dtype=np.int64)
    result[~is_append] = truth[read_text[~is_append]]
    if "contains" in model.functions and np.any((f == model.functions.index("contains")) & (result == NONE)):
        return Open("a contains returned neither true nor false")
    positioned = np.flatnonzero(is_append & (read_text != nothing) & (read_text != text[invoked]))
    for one in positioned.tolist():
        place = value[read_text[one]]
        if not isinstance(place, tuple):
            continue
        if len(place) != 2 or place[1] != elements.value(argument[one]) or not _is_position(place[0]):
            return Open("an append returned something else than a position and its element")
        result[one] = place[0]
    index = rows["index"].to_numpy()
    spans = Spans(
        start=index[invoked],
        end=np.where(is_ok, index[completed], NEVER),
        f=f.astype(np.int8),
        argument=argument,
        result=result,
        values=elements.values,
        lists=_lists(len(value), lists, elements).part(np.where(is_read, read_text, nothing)),
    )
    return spans, tuple(elements.number(one) for one in held)


def _is_position(place: Hashable) -> bool:
    return type(place) is int and 0 <= place < POSITIONS


def _lists(texts: int, lists: Mapping[int, tuple[Hashable, ...]], elements: _Elements) -> Lists:
    """The list of each text; empty for a text that is not a list."""
    sizes = np.zeros(texts + 1, dtype=np.int64)
    for at, read in lists.items():
        sizes[at + 1] = len(read)
    numbers = (elements.number(element) for at in sorted(lists) for element in lists[at])
    return Lists(elements=np.fromiter(numbers, dtype=np.int64, count=int(sizes.sum())), bounds=np.cumsum(sizes))


def content_call(model: Model, spans: Spans, position: int) -> Call:
    """An operation as the model sees it."""
    f = model.functions[spans.f[position]]
    argument, number = spans.value(spans.argument[position]), int(spans.result[position])
    result: Hashable = argument
    if spans.end[position] == NEVER:
        result = INDEFINITE
    elif f == "read" and spans.lists is not None:
        result = tuple(spans.value(element) for element in spans.lists.of(position))
    elif number != NONE:
        result = (number, argument) if f == "append" else Truth(bool(number))
    return Call(f=f, argument=argument, result=result)
