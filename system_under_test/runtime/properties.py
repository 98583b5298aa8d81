"""Settings as RocketMQ's files have them: a line `name = value` each, `#` before a comment."""

from __future__ import annotations

_FLAGS = {"true": True, "false": False}


def properties(text: str) -> dict[str, str | int | bool]:
    """A value that is true or false, or a whole number without zeros before it, becomes one; the last of a name counts.

    Raises ValueError that tells the line that is none.
    """
    found: dict[str, str | int | bool] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in stripped.partition("="))
        if not equals or not name:
            raise ValueError(f"line {number}: expected `name = value`, got {stripped!r}")
        found[name] = _typed(value)
    return found


def _typed(value: str) -> str | int | bool:
    if value in _FLAGS:
        return _FLAGS[value]
    digits = value.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and (digits == "0" or not digits.startswith("0"))
    return int(value) if is_number and len(digits) <= 18 else value
