"""As few things as still do it, and as small a number: searches that ask a question for each thing they try.

What is found is minimal with respect to what was asked: nobody promises that fewer would not do in other company.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def fewest(items: Sequence[T], does: Callable[[tuple[T, ...]], bool], smallest: int = 1) -> tuple[T, ...]:
    """Some of the items, in order, that do it, of which no `smallest` in a row can be left out; `items` do it.

    Leaves out halves, quarters, … and at last single ones (delta debugging, Zeller and Hildebrandt, TSE 2002), from the
    end, as what comes first often leads to what comes later.
    """
    kept = tuple(items)
    if kept and does(()):
        return ()
    size = max(1, len(kept) // 2)
    while kept:
        left_out = False
        end = len(kept)
        while end > 0:
            begin = max(0, end - size)
            fewer = kept[:begin] + kept[end:]
            if fewer and does(fewer):
                kept, left_out = fewer, True
            end = begin
        if size <= smallest and not left_out:
            return kept
        size = max(smallest, min(size, len(kept)) // 2) if size > smallest else size
    return kept


def least(low: int, high: int, does: Callable[[int], bool]) -> int:
    """A number above `low`, at most `high`, that does it, found by halving; `high` does it."""
    while high - low > 1:
        middle = (low + high) // 2
        if does(middle):
            high = middle
        else:
            low = middle
    return high
