"""Values of registers and lists as messages show them."""

from __future__ import annotations

from collections.abc import Container, Iterable

from checkers.kernels.columns import NONE, Int64

SHOWN = 12
"""The most elements of a list that are shown. Of longer lists the ends are shown, and elements that the message is
about."""


def value_in_words(value: int) -> str:
    return "null" if value == NONE else str(value)


def list_in_words(values: Int64 | Iterable[int], about: Container[int] = ()) -> str:
    """A list in words. Elements in `about`, and those right before them, are never left out."""
    elements = list(map(int, values))
    kept = set(range(len(elements)))
    if len(elements) > SHOWN:
        kept = {*range(SHOWN // 2), *range(len(elements) - SHOWN // 2, len(elements))}
        asked = [place for place, element in enumerate(elements) if element in about]
        kept |= {near for place in asked[:SHOWN] for near in (max(place - 1, 0), place)}
    words: list[str] = []
    behind = 0
    for place in sorted(kept):
        words += [f"… {place - behind} more …"] if place > behind else []
        words.append(value_in_words(elements[place]))
        behind = place + 1
    return f"[{', '.join(words)}]"
