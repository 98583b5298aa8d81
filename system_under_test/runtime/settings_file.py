"""Settings as RocketMQ's files have them: Java's properties, whose values are flags, numbers or text."""

from __future__ import annotations

from system_under_test.remoting.properties import decode_properties

_FLAGS = {"true": True, "false": False}


def settings_of(text: str) -> dict[str, str | int | bool]:
    """A value that is true or false, or a whole number without zeros before it, becomes one; the last of a name counts.

    Raises ValueError for what is no properties.
    """
    return {name: _typed(value.strip()) for name, value in decode_properties(text.encode()).items()}


def _typed(value: str) -> str | int | bool:
    if value in _FLAGS:
        return _FLAGS[value]
    digits = value.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and (digits == "0" or not digits.startswith("0"))
    return int(value) if is_number and len(digits) <= 18 else value
