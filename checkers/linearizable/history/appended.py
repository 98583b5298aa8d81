"""Rows of maps as columns: each state that a get showed is the values that made it, in order.

    put "a;"    append "b;"    append "c;"    get "a;b;c;"    get "a;b;"

A get shows all that was appended since the last put, so states form a tree: "a;b;c;" is "a;b;" followed by "c;". If the
values can be distinguished in what gets show, each state has one place in that tree.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.kernels.columns import NO_INDEX, NONE
from checkers.linearizable.deciders.append_tree import APPEND, EMPTY, GET
from checkers.linearizable.deciders.spans import Open, Paths, Spans
from checkers.linearizable.history.columns import spans_of
from checkers.linearizable.model import Columns, Model


def appended_of(model: Model, rows: pa.Table, held: Sequence[Hashable]) -> tuple[Spans, tuple[int, ...]] | Open:
    """Rows of one entry of a map as columns, and what it holds at first, in numbers. Raises ValueError for a value that
    is no JSON."""
    spans, initial = _counted(*spans_of(model, rows, held, Columns.VALUES))
    given = np.unique(spans.argument[spans.f != GET])
    shown = np.unique(spans.result[(spans.f == GET) & spans.definite & (spans.result != NONE)])
    if NONE in given:
        return Open("null is put or appended")
    begins = spans.value(initial[0])
    # An entry that begins empty is only supported if reads show it as empty, not as null.
    empty = () if begins == () else ""
    shows_null = (spans.f == GET) & spans.definite & (spans.result == NONE)
    if begins in ("", ()) and np.any(spans.f == APPEND) and not shows_null.any():
        begins, initial = None, (NONE,)
    tokens: dict[int, Any] = {int(number): spans.value(number) for number in (*given, *initial) if number != NONE}
    texts: dict[int, Any] = {int(number): spans.value(number) for number in shown}
    if np.any(spans.f == APPEND):
        kinds = {type(one) for one in (*tokens.values(), *texts.values())}
        if kinds not in ({str}, {tuple}):
            return Open("not all of its values are strings, or all lists")
    else:
        # Without appends each value is a state of its own.
        tokens, texts = ({number: (one,) for number, one in some.items()} for some in (tokens, texts))
        if begins is None:
            texts = {number: () if one == (empty,) else one for number, one in texts.items()}
    if not all(tokens.values()) or (begins is None and empty in map(spans.value, given)):
        return Open("nothing is put or appended")
    tree = _Tree(tokens)
    begun = EMPTY if begins is None else tree.state(tokens[initial[0]])
    if begun is None:
        return Open("what it begins with can be read as several values")
    states = {}
    for number in sorted(texts, key=lambda one: _in_order(texts[one])):
        state = tree.state(texts[number])
        if state is None:
            return Open("what a get showed can be read as several rows of values")
        # Only an entry that was never put can be shown as an empty text.
        is_empty = begins is None and spans.value(number) == empty
        states[number] = state if state != EMPTY or is_empty else tree.unknown()
    of = np.full(1 + max(states, default=-1), NO_INDEX, dtype=np.int64)
    of[list(states)] = list(states.values())
    paths = Paths(before=np.array(tree.before), token=np.array(tree.token), of=of, begins=begun)
    return replace(spans, paths=paths), initial


def _counted(spans: Spans, initial: tuple[int, ...]) -> tuple[Spans, tuple[int, ...]]:
    """The same with numbered values, even if they are integers."""
    if spans.values is not None:
        return spans, initial
    distinct = np.unique(np.concatenate((spans.argument, spans.result, np.array(initial, dtype=np.int64))))
    distinct = distinct[distinct != NONE]
    argument, result, begins = (
        np.where(column == NONE, NONE, np.searchsorted(distinct, column))
        for column in (spans.argument, spans.result, np.array(initial, dtype=np.int64))
    )
    return replace(spans, argument=argument, result=result, values=distinct.tolist()), tuple(begins.tolist())


def _in_order(text: Any) -> str:
    return text if isinstance(text, str) else repr(text)


@dataclass
class _Place:
    """A position in a text up to which the text is a sequence of values."""

    ways: int
    """The number of ways in which it is one."""
    before: int
    token: int
    state: int = NO_INDEX


class _Tree:
    """The tree of states, in the order in which they are met. Cost: O(size of all texts), and a look-up for each value
    behind the part that a text has in common with the one before it."""

    def __init__(self, tokens: Mapping[int, Any]) -> None:
        self.before, self.token = [NO_INDEX], [NONE]
        self._number = {value: number for number, value in tokens.items()}
        self._lengths = sorted({len(value) for value in self._number})
        self._child: dict[tuple[int, int], int] = {}
        self._text: Any = None
        self._order: list[int] = []
        self._places: dict[int, _Place] = {}

    def state(self, text: Any) -> int | None:
        """The state of a text; None if it can be split in several ways. A text that no values make is a state of its
        own."""
        self._follow(text)
        place = self._places.get(len(text))
        if place is None:
            return self.unknown()
        return self._make_states(len(text)) if place.ways == 1 else None

    def unknown(self) -> int:
        """A new state to which nothing leads."""
        self.before.append(NO_INDEX)
        self.token.append(NONE)
        return len(self.before) - 1

    def _follow(self, text: Any) -> None:
        """Find all positions up to which the text is a sequence of values."""
        shared = _shared(self._text, text) if self._text is not None else 0
        longest = self._lengths[-1] if self._lengths else 0
        order = [at for at in self._order if at <= shared] or [0]
        self._places = {at: self._places.get(at, _Place(1, NO_INDEX, NONE, EMPTY)) for at in order}
        self._text, self._order = text, order
        next_one = next(number for number, at in enumerate(order) if at + longest > shared or at == order[-1])
        while next_one < len(order):
            at = order[next_one]
            next_one += 1
            for length in self._lengths:
                if shared < at + length <= len(text):
                    token = self._number.get(text[at : at + length])
                    if token is not None:
                        self._reach(at, at + length, token)

    def _reach(self, at: int, to: int, token: int) -> None:
        place = self._places.get(to)
        if place is None:
            self._places[to] = _Place(self._places[at].ways, at, token)
            insort(self._order, to)
        else:
            place.ways += self._places[at].ways

    def _make_states(self, to: int) -> int:
        row = []
        while self._places[to].state == NO_INDEX:
            row.append(self._places[to])
            to = self._places[to].before
        state = self._places[to].state
        for place in reversed(row):
            made = self._child.setdefault((state, place.token), len(self.before))
            if made == len(self.before):
                self.before.append(state)
                self.token.append(place.token)
            state = place.state = made
        return state


def _shared(one: Any, other: Any) -> int:
    """The length of the common prefix of two texts."""
    least, most = 0, min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    while least < most:
        middle = (least + most + 1) // 2
        if one[:middle] == other[:middle]:
            least = middle
        else:
            most = middle - 1
    return least
