"""The input and the output of deciders of single objects: operations as flat arrays in, an answer in numbers out."""

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
    """What reads of everything showed, one read after the other."""

    elements: Int64
    bounds: Int64
    """The list of the read at a position is elements[bounds[position] : bounds[position + 1]]; other operations have
    empty ones."""

    def of(self, position: int) -> Int64:
        return self.elements[self.bounds[position] : self.bounds[position + 1]]

    def part(self, positions: Int64) -> Lists:
        sizes = np.diff(self.bounds)[positions]
        bounds = np.concatenate(([0], np.cumsum(sizes)))
        inside = np.arange(bounds[-1]) - np.repeat(bounds[:-1], sizes)
        return Lists(elements=self.elements[np.repeat(self.bounds[positions], sizes) + inside], bounds=bounds)


@dataclass(frozen=True, kw_only=True)
class Paths:
    """States as the values that made them, one after the other. State 0 is the one in which nothing was put."""

    before: Int64
    """By state: the state to which its last value was appended; -1 if nothing leads to it. If that is 0, the value was
    put or, if the object held nothing, appended."""
    token: Int64
    """By state: the number of its last value; NONE if it has none."""
    of: Int64
    """By number of a value that a get showed: its state."""
    begins: int
    """The state in which the object begins."""


@dataclass(frozen=True, kw_only=True)
class Spans:
    """Operations on one object by ascending start, without those that certainly did not happen or show nothing.

    Times are history indices: if the `end` of one operation is less than the `start` of another, it came first.
    """

    start: Int64
    end: Int64
    """When the operation ended; NEVER if indefinite."""
    f: Int8
    """Its function, as a position in the model's."""
    argument: Int64
    """Its argument; NONE if there is none, or null."""
    result: Int64
    """Its result; NONE if there is none, or null, or if it is unknown."""
    expected: Int64 | None = None
    """What a cas expects, whose argument is what it writes; None if the object has no cas."""
    values: Sequence[Hashable] | None = None
    """What the numbers stand for, if values are not integers; in ascending order if the model compares them."""
    lists: Lists | None = None
    """What reads showed, for objects of which a read shows everything."""
    paths: Paths | None = None
    """The states, for objects to which values are appended, and of which reads show all values since the last put."""

    @property
    def whole(self) -> bool:
        """Whether reads show the effects of several operations, so that no value stands for itself."""
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
        """The value that an argument or a result stands for."""
        if number == NONE:
            return None
        return int(number) if self.values is None else self.values[number]

    def render(self, number: int) -> str:
        """The same value as people write it."""
        return render(self.value(number))

    def when(self, position: int) -> str:
        """A text that says which operation of the history it is."""
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
    """The positions in the spans of operations that cannot be ordered by themselves."""
    because: str
    """The reason as a sentence with values and history indices."""


@dataclass(frozen=True)
class Open:
    """Nothing is claimed: this is outside the case that can be decided in polynomial time."""

    because: str


Outcome = Ordered | Contradiction | Open


class Decider(Protocol):
    """Decides one kind of object to which no value is given twice."""

    def decide(self, spans: Spans, initial: tuple[int, ...]) -> Outcome:
        """`initial`: what the object holds before anything happens, in its own order. Cost: O(n log n)."""

    def order(self, spans: Spans, initial: tuple[int, ...]) -> Int64:
        """Positions of all operations that took effect, in that order. The spans must be `Ordered`."""
