"""What a number may be, written beside the field that it bounds, and one way of refusing what lies outside.

    @dataclass(frozen=True, kw_only=True)
    class MySettings:
        nodes: Annotated[int, Bounds(1, 100)] = 3

Bounds hold at both ends. Not a number (NaN) lies in none. A field may also be an enum, which takes one of its values,
or a frozenset of an enum, which takes several with commas between them.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal

from harness.errors import UsageError

LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most that a number may be, both included."""

    least: float
    most: float

    def __str__(self) -> str:
        if self == INT64:
            return "of 64 bits"
        return f"from {_plainly(self.least)} to {_plainly(self.most)}"

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most


INT64 = Bounds(-(1 << 63) + 1, (1 << 63) - 1)
"""The bounds of a value in a history, where the least integer of 64 bits stands for null."""


def bounds_of(type_: type) -> Mapping[str, Bounds]:
    """The bounds that a dataclass declares, by field."""
    hints = _hints(type_)
    found = {field.name: _bounds_in(hints[field.name]) for field in dataclasses.fields(type_)}
    return {name: bounds for name, bounds in found.items() if bounds is not None}


def fitting(type_: type, name: str, value: Any, *, what: str) -> Any:
    """The value as that field of the dataclass takes it (a whole number where a number is due becomes one).

    Raises UsageError, where `what` names the field: what it takes, and what came.
    """
    hint = _hints(type_)[name]
    bounds, hint = _bounds_in(hint), _plain(hint)
    if typing.get_origin(hint) is Literal:
        allowed = typing.get_args(hint)
        if any(value == one and type(value) is type(one) for one in allowed):
            return value
        raise UsageError(f"{what} takes one of {', '.join(map(str, allowed))}, got {quote(value)}")
    enum = _enum_of(hint)
    if enum is not None:
        return _members(hint, enum, value, what)
    options = _options(hint)
    is_fitting = any(type(value) is option for option in options) or (float in options and type(value) is int)
    if not is_fitting or (bounds is not None and type(value) in (int, float) and value not in bounds):
        raise UsageError(f"{what} takes {_in_words(options, bounds)}, got {quote(value)}")
    is_made_float = float in options and int not in options and type(value) is int
    return float(value) if is_made_float else value


def _plain(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint


def _options(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def _enum_of(hint: Any) -> type[Enum] | None:
    kind = typing.get_args(hint)[0] if typing.get_origin(hint) is frozenset else hint
    return kind if isinstance(kind, type) and issubclass(kind, Enum) else None


def _members(hint: Any, enum: type[Enum], value: Any, what: str) -> Any:
    try:
        return enum(value) if hint is enum else frozenset(enum(word) for word in value.split(","))
    except (ValueError, AttributeError):
        raise UsageError(f"{what} takes {_choices(hint, enum)}, got {quote(value)}") from None


def _choices(hint: Any, enum: type[Enum]) -> str:
    values = ", ".join(str(member.value) for member in enum)
    return f"one of {values}" if hint is enum else f"some of {values}, with commas between them"


def kind_of(type_: type, name: str) -> str:
    """What that field of the dataclass takes, in words."""
    hint = _hints(type_)[name]
    bounds, hint = _bounds_in(hint), _plain(hint)
    if typing.get_origin(hint) is Literal:
        return f"one of {', '.join(map(str, typing.get_args(hint)))}"
    enum = _enum_of(hint)
    return _in_words(_options(hint), bounds) if enum is None else _choices(hint, enum)


def quote(value: Any) -> str:
    """The value as it was written, not longer than a line has room for."""
    words = repr(value)
    return words if len(words) <= LONGEST_SHOWN else f"{words[:LONGEST_SHOWN]}… ({len(words)} characters)"


@cache
def _hints(type_: type) -> Mapping[str, Any]:
    return typing.get_type_hints(type_, include_extras=True)


def _bounds_in(hint: Any) -> Bounds | None:
    return next((extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, Bounds)), None)


_KINDS: Mapping[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    type(None): "nothing",
}


def _in_words(options: tuple[Any, ...], bounds: Bounds | None) -> str:
    words = [_KINDS.get(option, getattr(option, "__name__", str(option))) for option in options]
    if bounds is not None:
        bounded = [option in (int, float) for option in options]
        words = [f"{word} {bounds}" if is_number else word for word, is_number in zip(words, bounded, strict=True)]
    return " or ".join(words)


def _plainly(number: float) -> str:
    """Without an exponent: 604800 rather than 6.048e+05."""
    return str(int(number)) if number == int(number) else str(number)
