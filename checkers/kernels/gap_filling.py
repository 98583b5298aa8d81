"""Groups that one pass counts and another one fills: each takes exactly the places that were counted for it.

    first   0 2 3      two elements of group 0, one of group 1: what the first pass counted
    filled  0 2        where the next one of each group goes, in the second pass

Machine code does not check where it writes. If the passes disagreed on what belongs to a group, by a mistake in either,
one element too many would overwrite other memory, and one too few would leave a place with whatever was there before.
So kernels ask for each place, and at the end whether all were taken.
"""

from __future__ import annotations

from checkers.kernels.columns import Int64
from harness.compiled import inlined


@inlined
def next_place(filled: Int64, first: Int64, group: int) -> int:
    """The place of the next element of a group. Raises RuntimeError if no more were counted."""
    at = filled[group]
    if at >= first[group + 1]:
        raise RuntimeError("two passes of a kernel disagree: a group has more elements than were counted")
    filled[group] = at + 1
    return int(at)


@inlined
def require_filled(filled: Int64, first: Int64) -> None:
    """Raises RuntimeError unless each group has all that were counted."""
    for group in range(len(filled)):
        if filled[group] != first[group + 1]:
            raise RuntimeError("two passes of a kernel disagree: a group has fewer elements than were counted")


@inlined
def require_room(count: int, places: int) -> None:
    """Raises RuntimeError if no place is left behind so many elements."""
    if count >= places:
        raise RuntimeError("two passes of a kernel disagree: there are more elements than were counted")
