"""Reads the text of triggers: `when` or `after`, how often where it is not the first time, and the point."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.bounds import quote
from harness.nearest import nearest
from nemesis.asking import ASKING
from nemesis.grammar import FEW, Mistake, Words
from nemesis.shape import Shape
from nemesis.trigger import Moment, Trigger, ordinal
from nemesis.vocabulary import IT, MOMENTS

_ORDINAL = re.compile(r"([1-9][0-9]{0,8})(st|nd|rd|th)")


def split(words: Words) -> tuple[Words, Words]:
    """The words of the shapes, and those of the trigger, from `when` or `after` on; none where there is no trigger."""
    place = next((place for place, word in enumerate(words) if word in MOMENTS), len(words))
    return words[:place], words[place:]


def parse_trigger(words: Words, points: Sequence[str]) -> Trigger | None:
    """None for no words. Raises Mistake: its words corrected are the trigger's alone."""
    if not words:
        return None
    moment: Moment = "after" if words[0] == "after" else "when"
    rest = words[1:]
    nth = 1
    if rest and rest[0][:1].isdigit():
        read = _ORDINAL.fullmatch(rest[0])
        number = int(read[1]) if read else 0
        if not number or rest[0] != ordinal(number):
            known = (moment, ordinal(number), *rest[1:]) if number else None
            raise Mistake(f"how often the point is reached is written as 1st, 2nd, 3rd …, got {quote(rest[0])}", known)
        nth, rest = number, rest[1:]
    before = words[: len(words) - len(rest)]
    if not points:
        raise Mistake(f"the system declares no points, so nothing can strike '{moment}' one is reached")
    if not rest:
        raise Mistake(f"the point after '{' '.join(before)}' is missing, e.g. {_few(points)}", (*before, points[0]))
    if rest[0] not in points:
        near = nearest(rest[0], points, 1)
        what = f"{quote(rest[0])} is no point of the system; there are: {_few(points)} (stormproof list points)"
        raise Mistake(what, (*before, *near, *rest[1:]) if near else None)
    if len(rest) > 1:
        raise Mistake(f"nothing of the fault follows the point '{rest[0]}', got {quote(rest[1])}", (*before, rest[0]))
    return Trigger(rest[0], nth, moment)


def require_known_node(shape_words: Words, trigger: Trigger | None) -> None:
    """Raises Mistake for `it` in a fault that waits for no point."""
    if trigger is None and IT in shape_words:
        raise Mistake(f"'{IT}' is the node that reaches a point, which one has to be said, as in 'kill it when POINT'")


def require_at_once(shape: Shape, trigger: Trigger | None) -> None:
    """Raises Mistake for a fault that waits for a point, and takes longer than the moment when it is reached."""
    if trigger is not None and shape.kind in ASKING:
        what = f"'{shape}' asks the system, which takes its time: it cannot strike '{trigger}'"
        raise Mistake(what, tuple(str(shape).split()))


def next_trigger_words(words: Words, points: Sequence[str]) -> tuple[str, ...]:
    """The words that can come next in a trigger that begins so, but for how often; none where it is whole."""
    counted = len(words) == 2 and _ORDINAL.fullmatch(words[1])
    return tuple(points) if len(words) == 1 or counted else ()


def _few(points: Sequence[str]) -> str:
    return ", ".join(points[:FEW]) + (", …" if len(points) > FEW else "")
