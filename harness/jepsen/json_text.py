"""JSON: operations in an array, or one object a line, or all in a single line."""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

from harness.jepsen.source import BrokenText, CutOff, Row, Unfinished

DEEPEST = 200
"""Brackets within brackets, as in EDN."""
DIGITS = 18
"""What is made of so many digits is read without a look at it."""
_WINDOW_BYTES = 1 << 12
_NEAR_THE_END = 8
"""A word that is cut off is no longer."""


class Objects:
    """Reads what stands between operations, and operations."""

    def __init__(self) -> None:
        self._opened = False

    def one(self, text: bytes, at: int, *, final: bool) -> tuple[int, Row | None]:
        """Read a bracket or an operation; where the text goes on, and the operation.

        Raises BrokenText, and if that does not end in the text Unfinished where the text is `final`, CutOff otherwise.
        """
        if text[at : at + 1] in (b"[", b"]"):
            if self._opened is (text[at : at + 1] == b"["):
                raise BrokenText(at, f"{chr(text[at])!r} where an operation was expected")
            self._opened = not self._opened
            return at + 1, None
        size = _WINDOW_BYTES
        while True:
            window = _decoded(text, at, size)
            is_whole = at + size >= len(text)
            try:
                value, end = _DECODER.raw_decode(window)
            except _Twice as twice:
                raise BrokenText(at, f"an object has the key {json.dumps(str(twice))} twice") from None
            except RecursionError:
                raise BrokenText(at, "brackets are nested too deeply") from None
            except ValueError as error:
                if not is_whole:
                    size <<= 4
                elif not final and _is_cut(error, window):
                    raise CutOff from None
                else:
                    raise _broken(error, at, window) from None
                continue
            if _is_too_deep(text, at, at + len(window[:end].encode()), value):
                raise BrokenText(at, f"brackets are nested deeper than {DEEPEST}")
            if not isinstance(value, dict):
                raise BrokenText(at, f"an operation must be an object, it is {json.dumps(value)[:60]}")
            return at + len(window[:end].encode()), value

    def end(self, at: int) -> None:
        """Raises Unfinished if the array lacks its end."""
        if self._opened:
            raise Unfinished(at, "the text ends before ']'")


def parse(text: bytes) -> Any:
    """The one value in the text. Raises BrokenText."""
    if text.isdigit() and len(text) <= DIGITS:
        return int(text)
    try:
        value = json.loads(text.decode())
    except UnicodeDecodeError as error:
        raise BrokenText(0, f"not UTF-8 text: {error.reason}") from None
    except RecursionError:
        raise BrokenText(0, "brackets are nested too deeply") from None
    except ValueError as error:
        raise BrokenText(0, f"no JSON: {error}: {text[:60].decode()!r}") from None
    if _is_too_deep(text, 0, len(text), value):
        raise BrokenText(0, f"brackets are nested deeper than {DEEPEST}")
    return value


def _is_too_deep(text: bytes, begin: int, end: int, value: Any) -> bool:
    """Looked at only where there are brackets enough for it."""
    if text.count(b"[", begin, end) + text.count(b"{", begin, end) <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST + 1):
        inner = [one for one in level if isinstance(one, (list, dict))]
        level = [part for one in inner for part in (one.values() if isinstance(one, dict) else one)]
    return bool(level)


_WORD_OR_ESCAPE_CUT_OFF = re.compile(r"[\w\\.+-]*\s*")
"""What a text ends with that ends within a value."""


class _Twice(Exception):
    """A key that an object has twice."""


def _object(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for number, name in enumerate(names) if name in names[:number]))
    return row


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _decoded(text: bytes, at: int, size: int) -> str:
    """So many bytes, without the part of a character at their end. Raises BrokenText."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(text[at : at + size], final=False)
    except UnicodeDecodeError as error:
        raise BrokenText(at, f"not UTF-8 text: {error.reason}", fault=at + error.start) from None


def _is_cut(error: ValueError, window: str) -> bool:
    """More text may help: the mistake is the end of the text, or a word or string that goes to it."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith("Unterminated string") or error.pos >= len(window.rstrip()) - _NEAR_THE_END


def _broken(error: ValueError, at: int, window: str) -> BrokenText:
    if not isinstance(error, json.JSONDecodeError):
        return BrokenText(at, f"no JSON: {error}")
    if error.msg.startswith("Unterminated string") or _WORD_OR_ESCAPE_CUT_OFF.fullmatch(window, error.pos):
        return Unfinished(at, f"the text ends within {window[:60]!r}")
    fault = at + len(window[: error.pos].encode())
    return BrokenText(at, f"no JSON: {error.msg}: {window[:60]!r}", fault=fault)
