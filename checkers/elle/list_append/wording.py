"""Lists in few words."""

from __future__ import annotations

from collections.abc import Iterable

from checkers.kernels.columns import NONE, Int64

SHOWN = 12
"""Of longer lists only the ends are told."""


def told(values: Int64 | Iterable[int]) -> str:
    numbers = ["null" if value == NONE else str(value) for value in map(int, values)]
    if len(numbers) > SHOWN:
        numbers[SHOWN // 2 : -SHOWN // 2] = [f"… {len(numbers) - SHOWN} more …"]
    return f"[{', '.join(numbers)}]"
