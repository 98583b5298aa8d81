"""What deciders of single objects take and give: operations as flat arrays in, an answer in numbers out."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from checkers.kernels.columns import NONE, Bool, Int8, Int64
from checkers.linearizable.values import NEVER, render

__all__ = ["NEVER", "NONE", "Contradiction", "Decider", "Open", "Ordered", "Outcome", "Spans"]


@dataclass(frozen=True, kw_only=True)
class Lists:
    """What reads of everything showed, one read behind the other."""

    elements: Int64
    bounds: Int64
    """The list of the operation at a position is elements[bounds[position] : bounds[position + 1]]; of others empty."""

    def of(self, position: int) -> Int64:
        return self.elements[self.bounds[position] : self.bounds[position + 1]]

    def part(self, positions: Int64) -> Lists:
        sizes = np.diff(self.bounds)[positions]
        bounds = np.concatenate(([0], np.cumsum(sizes)))
        inside = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
        return Lists(elements=self.elements[np.repeat(self.bounds[positions], sizes) + inside], bounds=bounds)


@dataclass(frozen=True, kw_only=True)
class Paths:
    """States as the values that made them, one behind the other; state 0 is the one in which nothing was put."""

    before: Int64
    """By state, the one to which its last value was appended; -1 where nothing leads to it. Behind 0 that value was put
    or, if the object held nothing, appended."""
    token: Int64
    """By state, the number of its last value; NONE if it has none."""
    of: Int64
    """By the number of a value that a get showed, its state."""
    begins: int
    """The state in which the object begins."""


@dataclass(frozen=True, kw_only=True)
class Spans:
    """Operations on one object by ascending start, without those that certainly did not happen or say nothing.

    Times are history indices: `end` < `start` of another operation means that it came first.
    """

    start: Int64
    end: Int64
    """NEVER if indefinite."""
    f: Int8
    """Position in the model's functions."""
    argument: Int64
    """NONE if there is none, or null."""
    result: Int64
    """NONE if there is none, or null, or it is unknown."""
    expected: Int64 | None = None
    """What a cas expects, whose argument is what it writes; None where the object has no cas."""
    values: Sequence[Hashable] | None = None
    """What the numbers stand for, where the values are no integers; in ascending order, if the model compares them."""
    lists: Lists | None = None
    """Of objects of which reads show all that they hold."""
    paths: Paths | None = None
    """Of objects to which values are appended, and of which reads show all since the last one that was put."""

    @property
    def whole(self) -> bool:
        """Whether reads show what several operations left, so that no value stands for itself."""
        return self.lists is not None or self.paths is not None

    def part(self, kept: Bool) -> Spans:
        return replace(
            self,
            start=self.start[kept],
            end=self.end[kept],
            f=self.f[kept],
            argument=self.argument[kept],
            result=self.result[kept],
            expected=None if self.expected is None else self.expected[kept],
            lists=self.lists and self.lists.part(np.flatnonzero(kept)),
        )

    @property
    def definite(self) -> Bool:
        return np.asarray(self.end != NEVER)

    def value(self, number: int) -> Hashable:
        """What an argument or a result stands for."""
        if number == NONE:
            return None
        return int(number) if self.values is None else self.values[number]

    def render(self, number: int) -> str:
        """The same as people write it."""
        return render(self.value(number))

    def when(self, position: int) -> str:
        """Which operation of the history it is."""
        end = "of unknown outcome" if self.end[position] == NEVER else f"completed by {self.end[position]}"
        return f"operation {self.start[position]}, {end}"

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Ordered:
    """The object is linearizable."""


@dataclass(frozen=True)
class Contradiction:
    """The object is not linearizable."""

    operations: frozenset[int]
    """Positions in the spans: these alone cannot be ordered."""
    because: str
    """A sentence in terms of values (`Spans.shown`) and history indices."""


@dataclass(frozen=True)
class Open:
    """Nothing is claimed: this leaves the polynomial case."""

    because: str


Outcome = Ordered | Contradiction | Open


class Decider(Protocol):
    """Decides one kind of object where no value is given to it twice."""

    def decide(self, spans: Spans, initial: tuple[int, ...]) -> Outcome:
        """`initial`: what the object holds before anything happens, in its own order. Cost: O(n log n)."""

    def order(self, spans: Spans, initial: tuple[int, ...]) -> Int64:
        """Positions of all operations that took effect, as they did; only of spans that are `Ordered`."""
