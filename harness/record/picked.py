"""Which operations of a storm its clients carry out, where not all: text such as `3, 17-20`, counted from 0."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from harness.bounds import quote
from harness.errors import UsageError

MOST_NUMBER: Final = 10_000_000
LONGEST_TEXT: Final = 100_000
_RANGE = re.compile(r"([0-9]{1,8})(?:-([0-9]{1,8}))?")


def picked_numbers(text: str) -> frozenset[int]:
    """Raises UsageError."""
    if len(text) > LONGEST_TEXT:
        raise UsageError(f"operations takes at most {LONGEST_TEXT} characters, got {len(text)}")
    numbers: set[int] = set()
    for part in text.split(","):
        read = _RANGE.fullmatch(part.strip())
        first, last = (int(read[1]), int(read[2] or read[1])) if read else (1, 0)
        if first > last or last > MOST_NUMBER:
            raise UsageError(
                f"operations takes numbers and ranges of them up to {MOST_NUMBER}, such as '3, 17-20', "
                f"got {quote(part.strip())}"
            )
        numbers.update(range(first, last + 1))
    return frozenset(numbers)


def picked_text(numbers: Iterable[int]) -> str:
    """What `picked_numbers` reads as the same numbers, of which there is at least one."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
