"""JSON as it comes in bodies from any sender: what Python reads more widely than JSON is refused.

A number that is not finite, a whole one that needs more than 64 bits, or values nested so deep that writing them
again runs out of stack, would all break a node far from where they came in. One thing that is no JSON is read, since
RocketMQ's own library writes it: the key of a map from whole numbers stands without quotes, `{0:"b1:10911"}`.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

MAX_NESTING: Final = 64
_BRACKETS: Final = re.compile(rb'(?s)"(?:[^"\\]|\\.)*+(?:"|\Z)|([\[{])|([\]}])')
"""Strings, of which the last may lack its end, and brackets outside of them; in a time that grows with the length."""
_NO_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b'"[]{}')
_BARE_KEY: Final = re.compile(rb'(?s)"(?:[^"\\]|\\.)*+(?:"|\Z)|([{,]\s*+)(-?\d++)(?=\s*+:)')
"""Strings, as above, and whole numbers that are keys."""
_WIDE: Final = re.compile(rb"\d{19}")


def decode_json(body: bytes) -> Any:
    """Raises ValueError for whatever is no JSON within these bounds."""
    if body.count(b"[") + body.count(b"{") > MAX_NESTING:
        _check_nesting(body)
    decoder = _STRICT if _WIDE.search(body) else _DECODER
    try:
        return decoder.decode(body.decode())
    except json.JSONDecodeError:
        quoted = _BARE_KEY.sub(_with_quotes, body)
        if quoted == body:
            raise
        return decoder.decode(quoted.decode())


def _with_quotes(found: re.Match[bytes]) -> bytes:
    return found[0] if found[2] is None else found[1] + b'"' + found[2] + b'"'


def _check_nesting(body: bytes) -> None:
    if b"\\" not in body:
        # Two quotes are an empty string, or a string's end and the next one's begin: no bracket comes in or out.
        body = body.translate(None, _NO_BRACKETS).replace(b'""', b"")
    depth = 0
    for match in _BRACKETS.finditer(body):
        depth += (match[1] is not None) - (match[2] is not None)
        if depth > MAX_NESTING:
            raise ValueError(f"nested deeper than {MAX_NESTING} levels")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is beyond all numbers")
    return number


def _whole(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"a whole number of {len(text)} digits needs more than 64 bits")
    return number


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number)
_STRICT: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number, parse_int=_whole)
