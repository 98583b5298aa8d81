"""Sentences: a beat in words, `SHAPE [and SHAPE …] [when POINT] every SECONDS for SECONDS`, and what is wrong with one
that is none.

An error names the first part that is wrong: a shape's verb or target, and which of several shapes joined by `and`; the
words `every` and `for`; the seconds after them. It ends with the nearest sentence that is right, if there is one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from harness.bounds import quote
from harness.errors import UsageError
from harness.nearest import nearest
from nemesis.grammar import Mistake, Words, may_end_with, meant, next_words, parse_shapes
from nemesis.package import PACKAGES
from nemesis.periodic import Beat
from nemesis.trigger_grammar import next_trigger_words, parse_trigger, require_at_once, require_known_node, split
from nemesis.vocabulary import MOMENTS, Vocabulary

EXAMPLE = "kill one of all every 10 for 5"

_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")


def parse(sentence: str, vocabulary: Vocabulary) -> Beat:
    """Raises UsageError that names the part which is wrong, and the nearest sentence."""
    words = tuple(sentence.split())
    try:
        return _read(words, vocabulary)
    except Mistake as mistake:
        near = meant(mistake, lambda corrected: _read(corrected, vocabulary))
        hint = (
            f"did you mean '{near}'?"
            if near is not None and near.is_kept()
            else f"a sentence reads '{EXAMPLE}' (stormproof list shapes)"
        )
        raise UsageError(f"nemesis {quote(' '.join(words))}: {mistake.what}; {hint}") from None


def following(words: Words, vocabulary: Vocabulary) -> tuple[str, ...]:
    """The words that can come next in a sentence that begins so; none where a number is due."""
    if "every" in words:
        return ("for",) if len(words) - words.index("every") == 2 else ()
    of_trigger = split(words)[1]
    if of_trigger:
        return next_trigger_words(of_trigger, vocabulary.points) or ("every",)
    shape = words[len(words) - words[::-1].index("and") :] if "and" in words else words
    following_shape = next_words(shape, vocabulary)
    if "and" not in following_shape:
        return following_shape
    return (*following_shape, *(MOMENTS if vocabulary.points else ()), "every")


def _read(words: Words, vocabulary: Vocabulary) -> Beat:
    """Raises Mistake."""
    at = _place_of_every(words, vocabulary)
    of_shapes, of_trigger = split(words[:at])
    try:
        shape = parse_shapes(of_shapes, vocabulary, after="'and' or 'every'")
    except Mistake as mistake:
        corrected = None if mistake.corrected is None else (*mistake.corrected, *of_trigger, *words[at:])
        raise Mistake(mistake.what, corrected) from None
    try:
        trigger = parse_trigger(of_trigger, vocabulary.points)
    except Mistake as mistake:
        corrected = None if mistake.corrected is None else (*of_shapes, *mistake.corrected, *words[at:])
        raise Mistake(mistake.what, corrected) from None
    require_known_node(of_shapes, trigger)
    try:
        require_at_once(shape, trigger)
    except Mistake as mistake:
        raise Mistake(mistake.what, (*of_shapes, *words[at:])) from None
    before, tail = words[: at + 1], words[at + 1 :]
    interval_s = _seconds(before, tail, "interval")
    before = (*before, tail[0])
    if len(tail) < 2 or tail[1] != "for":
        raise _no_for(before, tail[1:], interval_s)
    before = (*before, "for")
    length_s = _seconds(before, tail[2:], "length")
    if len(tail) > 3:
        what = f"nothing follows the length, got {quote(' '.join(tail[3:]))}"
        raise Mistake(f"{what} (shapes are joined by 'and' before 'every', sentences by a comma)", (*before, tail[2]))
    return Beat(shape, interval_s, length_s, trigger)


def _place_of_every(words: Words, vocabulary: Vocabulary) -> int:
    """Raises Mistake, also where something else stands in its place."""
    if "every" in words:
        return words.index("every")
    for place, word in enumerate(words):
        if nearest(word, ["every"]):
            raise Mistake(f"the word 'every' is misspelt as {quote(word)}", _with(words, place, "every"))
    for place, word in enumerate(words):
        if _SECONDS.fullmatch(word) and place:
            before = words[place - 1]
            if may_end_with(before, vocabulary):
                raise Mistake(f"the word 'every' is missing before {word}", (*words[:place], "every", *words[place:]))
            raise Mistake(f"expected 'every' before {word}, got {quote(before)}", _with(words, place - 1, "every"))
    if words and all(word in PACKAGES for word in words):
        raise Mistake(f"packages of faults are named with a comma between them: {','.join(words)}")
    raise Mistake("it lacks 'every SECONDS for SECONDS'", (*words, "every", "10", "for", "5") if words else None)


def _no_for(before: Words, rest: Sequence[str], interval_s: float) -> Mistake:
    half = f"{interval_s / 2:g}"
    if not rest:
        return Mistake(f"'for' and the fault's length are missing after 'every {before[-1]}'", (*before, "for", half))
    if _SECONDS.fullmatch(rest[0]):
        return Mistake(f"the word 'for' is missing before {rest[0]}", (*before, "for", *rest))
    what = f"expected 'for' after 'every {before[-1]}', got {quote(rest[0])}"
    return Mistake(what, (*before, "for", *rest[1:]) if len(rest) > 1 else (*before, "for", half))


def _seconds(before: Words, rest: Sequence[str], name: str) -> float:
    """The number that comes next. Raises Mistake."""
    after = before[-1]
    if not rest or rest[0] in ("for", "every"):
        usual = {"interval": "10", "length": "5"}[name]
        raise Mistake(f"the {name} after '{after}' is missing", (*before, usual, *rest))
    if _SECONDS.fullmatch(rest[0]) and 0 < float(rest[0]) < math.inf:
        return float(rest[0])
    number = _SECONDS.search(rest[0])
    clear = number is not None and 0 < float(number[0]) < math.inf
    raise Mistake(
        f"the {name} after '{after}' is a number of seconds greater than 0, got {quote(rest[0])}",
        (*before, number[0], *rest[1:]) if number is not None and clear else None,
    )


def _with(words: Words, place: int, word: str) -> Words:
    return (*words[:place], word, *words[place + 1 :])
