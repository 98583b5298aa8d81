"""Values that are plainly transactions, read at the speed of memory: `[[:append 4 7] [:r 4 [1 7]] [:w x 2]]`.

Taken are lists of `[f key value]` in EDN or JSON with f r, w or append, a key that is an integer, a keyword or a
string, and a value that is null, an integer or, of a read, a list of integers. Numbers have no sign but a minus, no
zero in front and at most 18 digits; strings no escapes, nothing beyond ASCII, and are no numbers. At anything else the
value is left to a parser, and to `values`, which says the same of what is taken here.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harness.compiled import compiled
from harness.jepsen.scan import (
    _BLANK_OR_COMMA,
    _COLON,
    _COMMA,
    _DIGITS,
    _ENDS_WORD,
    _MINUS,
    _NINE,
    _QUOTE,
    _ZERO,
    ABSENT,
    JSON,
    Bytes,
    Int64,
    gathered,
)

FUNCTIONS = ("r", "w", "append")
MICRO_OPERATION = pa.struct(
    [("f", pa.string()), ("key", pa.string()), ("value", pa.int64()), ("values", pa.list_(pa.int64()))]
)

A_TRANSACTION = object()
"""Stands for a value that is one."""

_OPEN, _CLOSE = map(ord, "[]")
_R, _W = map(ord, "rw")
_APPEND = np.frombuffer(b"append", np.uint8)
_NIL, _NULL = (np.frombuffer(word, np.uint8) for word in (b"nil", b"null"))
_NAMES = np.isin(
    np.arange(256),
    np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.*!?<>=", np.uint8),
)
_NO_LIST = -1
_READ = FUNCTIONS.index("r")


def plain_transactions_of_registers(text: Bytes, begin: Int64, end: Int64, syntax: int) -> pa.ListArray:
    """The same where a list is one value, and so is no plain transaction."""
    return plain_transactions(text, begin, end, syntax, shows_lists=False)


def plain_transactions(text: Bytes, begin: Int64, end: Int64, syntax: int, *, shows_lists: bool = True) -> pa.ListArray:
    """A list of MICRO_OPERATION for each place in the text, where one plainly stands there; else null."""
    brackets = int(np.count_nonzero(text == _OPEN))
    f = np.empty(brackets, np.int8)
    keys, values, sizes = np.empty((brackets, 2), np.int64), np.empty(brackets, np.int64), np.empty(brackets, np.int64)
    # Two integers have something between them.
    elements = np.empty(len(text) // 2 + 1, np.int64)
    first, is_plain = np.zeros(len(begin) + 1, np.int64), np.zeros(len(begin), np.bool_)
    count, listed = _transactions(
        text, begin, end, syntax, shows_lists, first, is_plain, f, keys, values, sizes, elements
    )
    f, keys, values, sizes = f[:count], keys[:count], values[:count], sizes[:count]
    bounds, names = gathered(text, keys[:, 0], keys[:, 1])
    offsets = np.concatenate(([0], np.cumsum(np.maximum(sizes, 0))))
    parts = pa.StructArray.from_arrays(
        [
            pa.array(FUNCTIONS).take(pa.array(f)),
            pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(bounds), pa.py_buffer(names)]),
            pa.array(values, mask=values == ABSENT),
            pa.ListArray.from_arrays(
                pa.array(offsets, pa.int32()), pa.array(elements[:listed]), mask=pa.array(sizes == _NO_LIST)
            ),
        ],
        fields=list(MICRO_OPERATION),
    )
    return pa.ListArray.from_arrays(pa.array(first, pa.int32()), parts, mask=pa.array(~is_plain))


@compiled
def _transactions(
    text: Bytes,
    begin: Int64,
    end: Int64,
    syntax: int,
    shows_lists: bool,
    first: Int64,
    is_plain: npt.NDArray[np.bool_],
    f: npt.NDArray[np.int8],
    keys: Int64,
    values: Int64,
    sizes: Int64,
    elements: Int64,
) -> tuple[int, int]:
    count = listed = 0
    for row in range(len(begin)):
        if end[row] > begin[row]:
            to, to_listed = _transaction(
                text, begin[row], end[row], syntax, shows_lists, count, listed, f, keys, values, sizes, elements
            )
            if to >= 0:
                count, listed, is_plain[row] = to, to_listed, True
        first[row + 1] = count
    return count, listed


@compiled
def _transaction(
    text: Bytes,
    at: int,
    end: int,
    syntax: int,
    shows_lists: bool,
    count: int,
    listed: int,
    f: npt.NDArray[np.int8],
    keys: Int64,
    values: Int64,
    sizes: Int64,
    elements: Int64,
) -> tuple[int, int]:
    """How many micro-operations and elements there are with those of this place; -1 if it is not plain."""
    if text[at] != _OPEN:
        return -1, listed
    at = _item(text, at + 1, syntax, True)
    if at >= 0 and text[at] == _CLOSE:
        # An empty list may be a value.
        return -1, listed
    while at >= 0 and at < end and text[at] != _CLOSE:
        if text[at] != _OPEN:
            return -1, listed
        at = _function(text, _item(text, at + 1, syntax, True), syntax, f, count)
        at = _key(text, _item(text, at, syntax, False), syntax, keys, count)
        at = _item(text, at, syntax, False)
        if at < 0:
            return -1, listed
        values[count], sizes[count] = ABSENT, _NO_LIST
        if text[at] == _OPEN and not (shows_lists and f[count] == _READ):
            return -1, listed
        if text[at] == _OPEN:
            begun = listed
            at = _item(text, at + 1, syntax, True)
            while at >= 0 and at < end and text[at] != _CLOSE:
                at, elements[listed] = _number(text, at)
                listed += 1
                at = _item(text, at, syntax, False)
            sizes[count] = listed - begun
            at = -1 if at < 0 else at + 1
        elif text[at] == _MINUS or (text[at] >= _ZERO and text[at] <= _NINE):
            at, values[count] = _number(text, at)
        else:
            at = _past(text, at, _NULL if syntax == JSON else _NIL)
        at = _item(text, at, syntax, True)
        if at < 0 or at >= end or text[at] != _CLOSE:
            return -1, listed
        count += 1
        at = _item(text, at + 1, syntax, False)
    return (count, listed) if at == end - 1 else (-1, listed)


@compiled
def _item(text: Bytes, at: int, syntax: int, is_first: bool) -> int:
    """Where the next item of a list begins, or its bracket closes; -1 if that cannot be there."""
    if at < 0:
        return -1
    commas = 0
    while at < len(text) and _BLANK_OR_COMMA[text[at]]:
        commas += text[at] == _COMMA
        at += 1
    if at == len(text):
        return -1
    expected = 0 if is_first or text[at] == _CLOSE else 1
    return at if syntax != JSON or commas == expected else -1


@compiled
def _function(text: Bytes, at: int, syntax: int, f: npt.NDArray[np.int8], count: int) -> int:
    if at < 0 or at + 1 >= len(text) or text[at] != (_QUOTE if syntax == JSON else _COLON):
        return -1
    at += 1
    f[count] = 0 if text[at] == _R else 1 if text[at] == _W else 2
    at = at + 1 if f[count] < 2 else _past(text, at, _APPEND)
    if at < 0 or at == len(text) or syntax != JSON:
        return at if at >= 0 and at < len(text) and _BLANK_OR_COMMA[text[at]] else -1
    return at + 1 if text[at] == _QUOTE else -1


@compiled
def _key(text: Bytes, at: int, syntax: int, keys: Int64, count: int) -> int:
    if at < 0:
        return -1
    if text[at] == _MINUS or (text[at] >= _ZERO and text[at] <= _NINE):
        to, _ = _number(text, at)
        keys[count, 0], keys[count, 1] = at, to
        return to
    is_string = text[at] == _QUOTE
    if not is_string and (text[at] != _COLON or syntax == JSON):
        return -1
    begun = at = at + 1
    while at < len(text) and _NAMES[text[at]]:
        at += 1
    keys[count, 0], keys[count, 1] = begun, at
    # What begins like a number may be one.
    if at == begun or at == len(text) or text[begun] == _MINUS or (text[begun] >= _ZERO and text[begun] <= _NINE):
        return -1
    if is_string:
        return at + 1 if text[at] == _QUOTE else -1
    return at if _BLANK_OR_COMMA[text[at]] else -1


@compiled
def _number(text: Bytes, at: int) -> tuple[int, int]:
    """Behind it, and what it is; -1 if it is not plain."""
    begun = at + 1 if text[at] == _MINUS else at
    to, value = begun, 0
    while to < len(text) and text[to] >= _ZERO and text[to] <= _NINE and to - begun <= _DIGITS:
        value = value * 10 + int(text[to]) - _ZERO
        to += 1
    is_odd = to == begun or to - begun > _DIGITS or (text[begun] == _ZERO and (to > begun + 1 or begun > at))
    if is_odd or to == len(text) or not _ENDS_WORD[text[to]]:
        return -1, 0
    return to, -value if begun > at else value


@compiled
def _past(text: Bytes, at: int, word: Bytes) -> int:
    """Behind the word, if it stands there and ends there or goes on as a string; else -1."""
    if at + len(word) >= len(text):
        return -1
    for place in range(len(word)):
        if text[at + place] != word[place]:
            return -1
    return at + len(word) if _ENDS_WORD[text[at + len(word)]] else -1
