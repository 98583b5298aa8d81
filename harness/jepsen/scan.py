"""Operations that are plain maps, found in text at the speed of memory: where each field's text begins and ends.

Taken are maps as nearly all histories have them, in EDN or JSON: keywords or strings as keys; as values words,
strings, and whatever stands between brackets in one line. What such a text says is not looked at here. At anything
else (a comment, a form that is discarded, a character, a map that is cut off) scanning stops, for a parser to go on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness.compiled import compiled

Int64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

BESIDE = ("position", "link")
"""What an operation of some tests has beside its value."""
POSITION = ("seek-to-beginning?", "rebalance-log")
"""What an operation on a log has beside its value."""
MARKED_FINAL = "final?"
"""Stands beside a read after which there is none."""
TEXTS = ("process", "type", "f", "value", "key", "error", "node", *BESIDE, *POSITION, MARKED_FINAL)
"""Fields of an operation whose text is kept."""
NUMBERS = ("time", "index")
"""Fields of an operation that are kept as numbers."""
ABSENT = int(np.iinfo(np.int64).min)

EDN, JSON = ord(":"), ord('"')
"""What a key begins with."""

IN_LINES = ("process", "type", "f", "rest")
"""What a log line holds of an operation: the rest is its value, and perhaps an error."""

_FIELDS = np.frombuffer("".join(TEXTS + NUMBERS).encode(), dtype=np.uint8)
_FIELD_ENDS = np.cumsum([len(name) for name in TEXTS + NUMBERS])
_TEXTS = len(TEXTS)
_TYPES = np.frombuffer(b":invoke:ok:fail:info", dtype=np.uint8)
_TYPE_ENDS = np.array([7, 10, 15, 20])
_NEMESIS = np.frombuffer(b":nemesisnemesis", dtype=np.uint8)
_NEMESIS_ENDS = np.array([8, 15])
_DIGITS = 18
"""An integer of so many digits fits into 64 bits."""

_NEWLINE, _TAB, _COMMA, _OPEN_CURLY, _CLOSE_CURLY = map(ord, "\n\t,{}")
_QUOTE, _BACKSLASH, _HASH, _UNDERSCORE, _COLON, _ZERO, _NINE, _MINUS = map(ord, '"\\#_:09-')


def _among(characters: str) -> npt.NDArray[np.bool_]:
    return np.isin(np.arange(256), np.frombuffer(characters.encode(), np.uint8))


_BLANK = _among(" \n\t\r")
_BLANK_OR_COMMA = _among(" \n\t\r,")
_ENDS_WORD = _among(' \n\t\r,";\\{}[]()')
_OPENS = _among("[{(")
_CLOSES = _among("]})")
_HIDES = _among("\n;\\")
"""What may hide a bracket from those who only count them, or ends the line."""


@dataclass(frozen=True)
class Spans:
    """Fields of operations in one text; row by row, room for all that can be there."""

    at: Int64
    """Where each operation begins."""
    begin: Int64
    """A row an operation, a column a field of TEXTS; -1 where it is absent."""
    end: Int64
    numbers: Int64
    """A column a field of NUMBERS; ABSENT where it is."""

    @classmethod
    def of(cls, operations: int) -> Spans:
        """Room for so many."""
        return cls(
            np.empty(operations, np.int64),
            np.empty((operations, _TEXTS), np.int64),
            np.empty((operations, _TEXTS), np.int64),
            np.empty((operations, len(NUMBERS)), np.int64),
        )

    def scan(self, text: Bytes, at: int, row: int, syntax: int) -> tuple[int, int]:
        """Fill in the plain operations from `at` on, as rows from `row` on; where the text goes on, and the next row.

        `syntax` is EDN or JSON.
        """
        went_to, rows = _scan(text, at, row, syntax, self.at, self.begin, self.end, self.numbers)
        return int(went_to), int(rows)

    def blank(self, row: int, at: int) -> None:
        """A row without any field, for an operation that a parser read."""
        self.at[row] = at
        self.begin[row] = self.end[row] = -1
        self.numbers[row] = ABSENT


@dataclass(frozen=True)
class Lines:
    """The operations in log lines."""

    at: Int64
    """Where each line with an operation begins."""
    begin: Int64
    """A row a line, a column a field of IN_LINES."""
    end: Int64
    others: Int64
    """Where each line without one begins."""

    @classmethod
    def of(cls, text: Bytes) -> Lines:
        room = int(np.count_nonzero(text == _NEWLINE)) + 1
        at, others = np.empty(room, np.int64), np.empty(room, np.int64)
        begin, end = np.empty((room, len(IN_LINES)), np.int64), np.empty((room, len(IN_LINES)), np.int64)
        found, passed = _scan_lines(text, at, begin, end, others)
        return cls(at[:found], begin[:found], end[:found], others[:passed])


def gathered(text: Bytes, begin: Int64, end: Int64) -> tuple[npt.NDArray[np.int32], Bytes]:
    """The texts of one field behind each other, and where each of them begins and the last one ends."""
    bounds = np.zeros(len(begin) + 1, np.int64)
    np.cumsum(end - begin, out=bounds[1:])
    together = np.empty(int(bounds[-1]), np.uint8)
    _gather(text, begin, bounds, together)
    return bounds.astype(np.int32), together


@compiled
def _gather(text: Bytes, begin: Int64, bounds: Int64, together: Bytes) -> None:
    for row in range(len(begin)):
        for place in range(bounds[row], bounds[row + 1]):
            together[place] = text[begin[row] + place - bounds[row]]


@compiled
def _past(text: Bytes, at: int, passed: npt.NDArray[np.bool_]) -> int:
    while at < len(text) and passed[text[at]]:
        at += 1
    return at


@compiled
def _past_word(text: Bytes, at: int) -> int:
    while at < len(text) and not _ENDS_WORD[text[at]]:
        at += 1
    return at


@compiled
def _past_string(text: Bytes, at: int) -> int:
    """-1 if it does not end in its line."""
    at += 1
    while at < len(text):
        c = text[at]
        if c == _QUOTE:
            return at + 1
        if c == _NEWLINE:
            return -1
        at += 2 if c == _BACKSLASH else 1
    return -1


@compiled
def _past_brackets(text: Bytes, at: int) -> int:
    """-1 if they do not close in their line, or hold what may hide a bracket."""
    depth = 0
    while at < len(text):
        c = text[at]
        if c == _QUOTE:
            at = _past_string(text, at)
            if at < 0:
                return -1
            continue
        if _HIDES[c]:
            return -1
        at += 1
        if _OPENS[c]:
            depth += 1
        elif _CLOSES[c]:
            depth -= 1
            if depth == 0:
                return at
    return -1


@compiled
def _past_value(text: Bytes, at: int) -> int:
    """-1 if it is not plain."""
    size = len(text)
    if at < size and text[at] == _HASH:
        if at + 1 == size or text[at + 1] == _UNDERSCORE or text[at + 1] == _QUOTE:
            return -1
        if text[at + 1] == _OPEN_CURLY:
            return _past_brackets(text, at + 1)
        is_symbolic = text[at + 1] == _HASH
        at = _past_word(text, at)
        if is_symbolic:
            return at
        at = _past(text, at, _BLANK)
        if at < size and text[at] == _HASH:
            return -1
    if at == size:
        return -1
    c = text[at]
    if c == _QUOTE:
        return _past_string(text, at)
    if _OPENS[c]:
        return _past_brackets(text, at)
    end = _past_word(text, at)
    return end if end > at else -1


@compiled
def _named(text: Bytes, begin: int, end: int, names: Bytes, name_ends: Int64) -> int:
    """Which of the names stands there; -1 for none."""
    start = 0
    for number in range(len(name_ends)):
        stop = name_ends[number]
        if stop - start == end - begin:
            same = True
            for place in range(end - begin):
                same &= text[begin + place] == names[start + place]
            if same:
                return number
        start = stop
    return -1


@compiled
def _integer(text: Bytes, begin: int, end: int) -> int:
    """ABSENT if it is none."""
    at = begin + 1 if text[begin] == _MINUS else begin
    if at == end or end - at > _DIGITS:
        return ABSENT
    value = 0
    for place in range(at, end):
        if text[place] < _ZERO or text[place] > _NINE:
            return ABSENT
        value = value * 10 + int(text[place]) - _ZERO
    return -value if at > begin else value


@compiled
def _past_operation(text: Bytes, at: int, syntax: int, begins: Int64, ends: Int64, numbers: Int64) -> int:
    """Behind the map whose bracket is at `at`; -1 if it is not plain."""
    begins[:] = -1
    ends[:] = -1
    numbers[:] = ABSENT
    size = len(text)
    at = _past(text, at + 1, _BLANK)
    if at < size and text[at] == _CLOSE_CURLY:
        return at + 1
    while at < size:
        if text[at] != syntax:
            return -1
        if syntax == JSON:
            key, end = at + 1, _past_string(text, at) - 1
            at = _past(text, end + 1, _BLANK)
            if end < key or at == size or text[at] != _COLON:
                return -1
            at += 1
        else:
            key, end = at + 1, _past_word(text, at)
            at = end
        at = _past(text, at, _BLANK)
        value = at
        at = _past_value(text, at)
        if at < 0:
            return -1
        field = _named(text, key, end, _FIELDS, _FIELD_ENDS)
        if field >= 0 and field < _TEXTS:
            if begins[field] >= 0:
                return -1
            begins[field] = value
            ends[field] = at
        elif field >= 0:
            number = _integer(text, value, at)
            if number == ABSENT or numbers[field - _TEXTS] != ABSENT:
                return -1
            numbers[field - _TEXTS] = number
        if syntax == JSON:
            at = _past(text, at, _BLANK)
            if at < size and text[at] == _COMMA:
                at = _past(text, at + 1, _BLANK)
            elif at < size and text[at] != _CLOSE_CURLY:
                return -1
            elif at < size:
                return at + 1
        else:
            at = _past(text, at, _BLANK_OR_COMMA)
            if at < size and text[at] == _CLOSE_CURLY:
                return at + 1
    return -1


@compiled
def _scan(
    text: Bytes, at: int, row: int, syntax: int, ats: Int64, begins: Int64, ends: Int64, numbers: Int64
) -> tuple[int, int]:
    size = len(text)
    while True:
        at = _past(text, at, _BLANK_OR_COMMA)
        if at == size:
            return at, row
        begun = at
        if text[at] == _HASH:
            at = _past_word(text, at)
            if at == begun + 1 or text[begun + 1] == _UNDERSCORE or syntax == JSON:
                return begun, row
            at = _past(text, at, _BLANK)
        if at == size or text[at] != _OPEN_CURLY:
            return begun, row
        at = _past_operation(text, at, syntax, begins[row], ends[row], numbers[row])
        if at < 0:
            return begun, row
        ats[row] = begun
        row += 1


@compiled
def _names_process(text: Bytes, begin: int, end: int) -> bool:
    """Whether it is a number, or the nemesis; in the prose of a log any word may stand before `:ok`."""
    if _named(text, begin, end, _NEMESIS, _NEMESIS_ENDS) >= 0:
        return True
    digits = 0
    for place in range(begin, end):
        digits += _ZERO <= text[place] <= _NINE
    return digits == end - begin


@compiled
def _holds_operation(text: Bytes, at: int, stop: int, begins: Int64, ends: Int64) -> bool:
    """Find in a line the words PROCESS :TYPE :F and what comes behind them."""
    before, before_end = -1, -1
    while at < stop:
        at = _past(text, at, _BLANK)
        begin = at
        while at < stop and not _BLANK[text[at]]:
            at += 1
        is_process = before >= 0 and (text[before_end] == _TAB or _names_process(text, before, before_end))
        if is_process and at < stop and _named(text, begin, at, _TYPES, _TYPE_ENDS) >= 0:
            f = _past(text, at, _BLANK)
            f_end = f
            while f_end < stop and not _BLANK[text[f_end]]:
                f_end += 1
            rest = _past(text, f_end, _BLANK)
            if rest < stop and f + 1 < f_end and text[f] == _COLON:
                while _BLANK[text[stop - 1]]:
                    stop -= 1
                begins[0], begins[1], begins[2], begins[3] = before, begin + 1, f + 1, rest
                ends[0], ends[1], ends[2], ends[3] = before_end, at, f_end, stop
                return True
        before, before_end = begin, at
    return False


@compiled
def _scan_lines(text: Bytes, ats: Int64, begins: Int64, ends: Int64, others: Int64) -> tuple[int, int]:
    found = passed = at = 0
    while at < len(text):
        stop = at
        while stop < len(text) and text[stop] != _NEWLINE:
            stop += 1
        if _holds_operation(text, at, stop, begins[found], ends[found]):
            ats[found] = at
            found += 1
        else:
            others[passed] = at
            passed += 1
        at = stop + 1
    return found, passed
