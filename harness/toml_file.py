"""TOML that a user wrote, read within bounds."""

from __future__ import annotations

import tomllib
from typing import Any, Final

from harness.errors import UsageError

MOST_DOTS: Final = 500
"""How many dots a line may have: Python's reader of TOML takes the square of them, hours for what fits into a file."""


def parsed(text: str, where: str) -> dict[str, Any]:
    """`where` names the file in errors. Raises UsageError."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.count(".") > MOST_DOTS:
            raise UsageError(f"{where}: line {number} has {line.count('.')} dots, at most {MOST_DOTS} can be")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not TOML: {error}") from None
