"""Nearest names: what somebody who misspelt a name most probably meant. Messages about unknown names are made here.

Names are compared without regard to case, and with `_`, `-` and a space taken for the same.
(`system_under_test` cannot import this: it runs alone in a container.)
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from harness.bounds import quote


def nearest(name: str, candidates: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """The known names that are spelt most like `name`, the nearest first; none where nothing comes near."""
    by_spelling: dict[str, str] = {}
    for candidate in candidates:
        by_spelling.setdefault(_spelt(candidate), candidate)
    return tuple(by_spelling[spelling] for spelling in get_close_matches(_spelt(name), by_spelling, most))


def unknown(kind: str, name: str, candidates: Iterable[str], *, of: str = "", more: str = "") -> str:
    """One line: no `kind` has this name, which ones come near, and all that are known.

    `of` is what they belong to, as ` of rocketmq`; `more` goes at the line's end.
    """
    names = tuple(candidates)
    if not name.strip():
        article = "an" if kind[0] in "aeiou" else "a"
        return f"empty name of {article} {kind}{of}; known are: {', '.join(names) or 'none'}{more}"
    meant = did_you_mean(name, names)
    known_are = "? Known are" if meant else "; known are"
    return f"unknown {kind} {quote(name)}{of}{meant.removesuffix('?')}{known_are}: {', '.join(names) or 'none'}{more}"


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """`; did you mean partition or pause?`, to go on with, or nothing where no name comes near."""
    near = nearest(name, candidates)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _spelt(name: str) -> str:
    return name.strip().casefold().replace("_", "-").replace(" ", "-")
