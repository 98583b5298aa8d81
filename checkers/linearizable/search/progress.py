"""The input of a search, how much it may explore, and how far it is: named arrays and numbers for its kernel."""

from __future__ import annotations

from typing import NamedTuple

from checkers.kernels.columns import Int64
from checkers.linearizable.search.configurations import Rows, Trail
from checkers.linearizable.search.events import Moves, Present, Timeline


class Allowance(NamedTuple):
    """How much may be explored, in configurations."""

    limit: int
    """How many in all."""
    room: int
    """How many may be held at once, and how many steps the trail may have."""


class Reached(NamedTuple):
    """How far a search is."""

    at: int
    """The next event."""
    current: Int64
    """The configurations before it, of shape (count, width)."""
    explored: int
    trail: Trail
    settled: int
    """How many configurations had been explored before it began with the next event."""


class SearchInput(NamedTuple):
    """What is searched: the events, what operations do, and which of them are open."""

    line: Timeline
    moves: Moves
    present: Present
    words: int
    """How many numbers a bit set over the slots takes."""


class Completion(NamedTuple):
    """What can take effect before an operation completes, and room to look at it."""

    slot: int
    """The slot of the operation that completes."""
    reads: Int64
    """Slots of the open reads."""
    changes: Int64
    """Slots of the other open operations, by their ends."""
    overwrites: Int64
    """Slots of those in `changes` that overwrite: a bit set of shape (words,)."""
    possible: Int64
    """The kinds of which indefinite operations have begun."""
    tried: Int64
    """By kind: the configuration in which it was tried last."""
    row: Int64
    """Room for one configuration."""


class Found(NamedTuple):
    """What was found on the way to a completion; changed in place."""

    lacking: Rows
    """Configurations in which the operation has not taken effect."""
    done: Rows
    """Configurations in which it has, as they are after its completion."""
    trail: Trail
