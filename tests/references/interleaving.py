"""How made-up operations overlap: each begins, and between two of them some take effect, or end."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

Open = tuple[str, Any, list[Any]]
"""An operation that has not ended: its function, its argument, and what it answered, if it took effect."""


def interleave(
    asked: Iterable[tuple[int, str, Any]],
    *,
    row: Callable[[int, str, str, Any], None],
    take_effect: Callable[[str, Any, list[Any]], None],
    complete: Callable[[int], None],
    opened: dict[int, Open],
    rng: random.Random,
) -> None:
    """`asked`: process, function and argument of each operation. `row` writes one of its type. `complete` takes one out
    of those that are open, of which there are three at most when the next one begins; in the end there is none."""
    for process, f, argument in asked:
        row(process, "invoke", f, argument)
        opened[process] = (f, argument, [])
        while opened and (rng.random() < 0.4 or len(opened) > 3):
            one = rng.choice(sorted(opened))
            if rng.random() < 0.5:
                take_effect(*opened[one])
            else:
                complete(one)
    for process in sorted(opened):
        complete(process)
