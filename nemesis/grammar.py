"""Sentences: a beat in words, `SHAPE [and SHAPE …] every SECONDS for SECONDS`, and what is wrong with one that is none.

An error names the first part that is wrong: a shape's verb or target, and which of several shapes joined by `and`; the
words `every` and `for`; the seconds after them. It ends with the nearest sentence that is right, if there is one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.bounds import shown
from harness.errors import UsageError
from harness.nearest import nearest
from nemesis.beat import SHAPES, TARGETS, Beat
from nemesis.package import PACKAGES
from nemesis.shape import Shape, Together

EXAMPLE = "isolate primary every 10 for 5"
MOST_CORRECTIONS = 10
FEW = 6
"""Of the words that could stand somewhere so many are named."""

_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")

Words = tuple[str, ...]


@dataclass(eq=False)
class _Mistake(Exception):
    """What is wrong with a part of a sentence, and the words with that part corrected, if what was meant is clear."""

    what: str
    corrected: Words | None = None


def parse(sentence: str) -> Beat:
    """Raises UsageError that names the part which is wrong, and the nearest sentence."""
    words = tuple(sentence.split())
    try:
        return _read(words)
    except _Mistake as mistake:
        meant = _meant(mistake)
        hint = f"did you mean '{meant}'?" if meant else f"a sentence reads '{EXAMPLE}' (stormproof list shapes)"
        raise UsageError(f"nemesis {shown(' '.join(words))}: {mistake.what}; {hint}") from None


def every(interval_s: float, shape: Shape, *, heal_after_s: float) -> str:
    """The sentence for a shape, to be used in a Scenario's `nemesis`.

    Raises UsageError for an unknown shape, and for a fault that is not shorter than the interval.
    """
    beat = parse(f"{shape} every {interval_s:g} for {heal_after_s:g}")
    beat.require_kept()
    return beat.name


def _meant(mistake: _Mistake) -> str | None:
    """The whole sentence, with this and all further mistakes corrected; None where that is none which can be kept."""
    words = mistake.corrected
    for _ in range(MOST_CORRECTIONS):
        if words is None:
            return None
        try:
            beat = _read(words)
        except _Mistake as further:
            words = further.corrected
        else:
            return beat.name if beat.is_kept() else None
    return None


def _read(words: Words) -> Beat:
    """Raises _Mistake."""
    at = _place_of_every(words)
    shapes, (_, *tail) = words[:at], words[at:]
    faults, struck = zip(*_shapes(shapes, words[at:]), strict=True)
    before = words[: at + 1]
    interval_s = _seconds(before, tail, "interval")
    before = (*before, tail[0])
    if len(tail) < 2 or tail[1] != "for":
        raise _no_for(before, tail[1:], interval_s)
    before = (*before, "for")
    length_s = _seconds(before, tail[2:], "length")
    if len(tail) > 3:
        what = f"nothing follows the length, got {shown(' '.join(tail[3:]))}"
        raise _Mistake(f"{what} (shapes are joined by 'and' before 'every', sentences by a comma)", (*before, tail[2]))
    shape = struck[0] if len(struck) == 1 else Together(struck)
    return Beat("+".join(sorted(set(faults))), shape, interval_s, length_s)


def _place_of_every(words: Words) -> int:
    """Raises _Mistake, also where something else stands in its place."""
    if "every" in words:
        return words.index("every")
    for place, word in enumerate(words):
        if nearest(word, ["every"]):
            raise _Mistake(f"the word 'every' is misspelt as {shown(word)}", _with(words, place, "every"))
    for place, word in enumerate(words):
        if _SECONDS.fullmatch(word) and place:
            if words[place - 1] in _LAST_WORDS:
                raise _Mistake(f"the word 'every' is missing before {word}", (*words[:place], "every", *words[place:]))
            instead = shown(words[place - 1])
            raise _Mistake(f"expected 'every' before {word}, got {instead}", _with(words, place - 1, "every"))
    if words and all(word in PACKAGES for word in words):
        raise _Mistake(f"packages of faults are named with a comma between them: {','.join(words)}")
    raise _Mistake("it lacks 'every SECONDS for SECONDS'", (*words, "every", "10", "for", "5") if words else None)


def _no_for(before: Words, rest: Sequence[str], interval_s: float) -> _Mistake:
    half = f"{interval_s / 2:g}"
    if not rest:
        return _Mistake(f"'for' and the fault's length are missing after 'every {before[-1]}'", (*before, "for", half))
    if _SECONDS.fullmatch(rest[0]):
        return _Mistake(f"the word 'for' is missing before {rest[0]}", (*before, "for", *rest))
    what = f"expected 'for' after 'every {before[-1]}', got {shown(rest[0])}"
    return _Mistake(what, (*before, "for", *rest[1:]) if len(rest) > 1 else (*before, "for", half))


def _seconds(before: Words, rest: Sequence[str], name: str) -> float:
    """The number that comes next. Raises _Mistake."""
    after = before[-1]
    if not rest or rest[0] in ("for", "every"):
        usual = {"interval": "10", "length": "5"}[name]
        raise _Mistake(f"the {name} after '{after}' is missing", (*before, usual, *rest))
    if _SECONDS.fullmatch(rest[0]) and 0 < float(rest[0]) < math.inf:
        return float(rest[0])
    number = _SECONDS.search(rest[0])
    clear = number is not None and 0 < float(number[0]) < math.inf
    raise _Mistake(
        f"the {name} after '{after}' is a number of seconds greater than 0, got {shown(rest[0])}",
        (*before, number[0], *rest[1:]) if number is not None and clear else None,
    )


def _shapes(words: Words, tail: Words) -> Iterator[tuple[str, Shape]]:
    """The kind of fault and the shape of each part between `and`s. Raises _Mistake."""
    parts = _split(words)
    for number, part in enumerate(parts):
        name = " ".join(part)
        if name in SHAPES:
            yield SHAPES[name]
            continue
        what, corrected = _wrong_shape(part)
        if len(parts) > 1:
            what = f"shape {number + 1} of {len(parts)}: {what}"
        if corrected is None:
            raise _Mistake(what)
        others = [*parts[:number], corrected, *parts[number + 1 :]]
        joined = tuple(word for other in others if other for word in ("and", *other))[1:]
        raise _Mistake(what, (*joined, *tail) if joined else None)


def _split(words: Words) -> list[Words]:
    parts: list[Words] = [()]
    for word in words:
        if word == "and":
            parts.append(())
        else:
            parts[-1] = (*parts[-1], word)
    return parts


def _wrong_shape(part: Words) -> tuple[str, Words | None]:
    """What is wrong with a shape, and the words that were meant (none of them: leave the shape out)."""
    if not part:
        return "no shape stands there", ()
    known = [tuple(name.split()) for name in SHAPES]
    right = max(count for count in range(len(part) + 1) if any(name[:count] == part[:count] for name in known))
    begun, rest = part[:right], part[right:]
    if not begun:
        return _wrong_verb(part)
    endings = [" ".join(name[right:]) for name in known if name[:right] == begun and name[right:]]
    before, few = " ".join(begun), ", ".join(endings[:FEW]) + (", …" if len(endings) > FEW else "")
    if not rest:
        return f"the target after '{before}' is missing, e.g. {few}", (*begun, *endings[0].split())
    if begun in known and nearest(rest[0], ["and"]):
        return f"the word 'and' is misspelt as {shown(rest[0])}", (*begun, "and", *rest[1:])
    near = nearest(" ".join(rest), endings, 1) or nearest(rest[0], endings, 1)
    corrected = (*begun, *near[0].split()) if near else None
    got = shown(" ".join(rest))
    if begun in known and not near:
        return f"only 'and' or 'every' can follow '{before}', got {got}", None
    kind = "target" if before in VERBS else "word"
    return f"{got} is no {kind} that can follow '{before}'; there can be: {few}", corrected


def _wrong_verb(part: Words) -> tuple[str, Words | None]:
    if part[0] in PACKAGES:
        what = f"'{part[0]}' is a package of faults, which has a pace of its own"
        return f"{what}; a sentence begins with: {', '.join(VERBS)}", None
    firsts = tuple(dict.fromkeys(name.split()[0] for name in SHAPES))
    first = nearest(part[0], firsts, 1)
    kind = "target" if first and first[0] in _TARGET_NAMES else "verb"
    listed = _TARGET_NAMES if kind == "target" else VERBS
    return f"the {kind} {shown(part[0])} is unknown; known are: {', '.join(listed)}", (
        *first,
        *part[1:],
    ) if first else None


def _with(words: Words, place: int, word: str) -> Words:
    return (*words[:place], word, *words[place + 1 :])


def _verb(shape: str) -> str:
    """The words before a shape's first target: `one way around` of `one way around primary`."""
    words = shape.split()
    for place in range(len(words)):
        rest = " ".join(words[place:])
        if any(rest == target or rest.startswith(f"{target} ") for target in _TARGET_NAMES):
            return " ".join(words[:place])
    return shape


_TARGET_NAMES = tuple(map(str, TARGETS))
_LAST_WORDS = frozenset(name.split()[-1] for name in SHAPES)
VERBS = tuple(dict.fromkeys(verb for verb in map(_verb, SHAPES) if verb))
"""What shapes begin with, if not with a target."""
