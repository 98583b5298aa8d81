"""JSON: operations in an array, or one object a line. A file of a single line is read in pieces as well."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from harness.foreign.source import BrokenText, Pieces, Row

_BETWEEN = re.compile(r"[\s,]*")
OPERATION_CHARACTERS = 1 << 26
"""No operation is longer."""


def rows(pieces: Pieces) -> Iterator[tuple[int, Row]]:
    """Each operation with the line on which it begins. Raises BrokenText."""
    decode = json.JSONDecoder().raw_decode
    rest, begun, opened = "", 0, 0
    for piece in pieces:
        begun = begun if rest else pieces.line
        text = rest + piece
        at = 0
        while True:
            at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it matches the empty text as well
            begun = pieces.line if at > len(rest) else begun
            if at == len(text):
                rest = ""
                break
            if text[at] in "[]":
                opened += 1 if text[at] == "[" else -1
                if opened not in (0, 1):
                    raise BrokenText(pieces.line, f"{text[at]!r} where an operation was expected")
                at += 1
                continue
            try:
                value, at = decode(text, at)
            except json.JSONDecodeError as error:
                if _is_broken(error, text, piece) or len(text) - at > OPERATION_CHARACTERS:
                    raise BrokenText(begun, f"no JSON: {error.msg}: {text[at : at + 60]!r}") from None
                rest = text[at:]
                break
            yield begun, _operation(begun, value)
    if rest:
        raise BrokenText(begun, f"the text ends within {rest[:60]!r}")
    if opened:
        raise BrokenText(pieces.line, "the text ends before ']'")


def _is_broken(error: json.JSONDecodeError, text: str, piece: str) -> bool:
    """More text would not help: the mistake lies before the end, and no token is cut off there."""
    return piece.endswith("\n") and error.pos < len(text.rstrip())


def _operation(line: int, value: Any) -> Row:
    if not isinstance(value, dict):
        raise BrokenText(line, f"an operation must be an object, it is {json.dumps(value)[:60]}")
    return value
