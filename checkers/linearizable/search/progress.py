"""What a search is given, how much it may explore, and how far it is: named arrays and numbers for its kernel."""

from __future__ import annotations

from typing import NamedTuple

from checkers.kernels.columns import Int64
from checkers.linearizable.search.configurations import Rows, Trail
from checkers.linearizable.search.events import Moves, Present, Timeline


class Allowance(NamedTuple):
    """How much may be explored, in configurations."""

    limit: int
    """In all."""
    room: int
    """Held at once; and steps in the trail."""


class Reached(NamedTuple):
    """How far a search is."""

    at: int
    """The next event."""
    current: Int64
    """The configurations before it, of shape (count, width)."""
    explored: int
    trail: Trail
    settled: int
    """How many of those had been explored before it began with the next event."""


class SearchInput(NamedTuple):
    """What is searched."""

    line: Timeline
    moves: Moves
    present: Present
    words: int
    """Numbers that a bit set over the slots takes."""


class Completion(NamedTuple):
    """What can take effect before an operation completes, and room to look at it."""

    slot: int
    """Of the operation."""
    reads: Int64
    """Slots of the open reads."""
    changes: Int64
    """Slots of the other open operations, by their ends."""
    overwrites: Int64
    """Those of them that overwrite: a bit set of shape (words,)."""
    possible: Int64
    """Kinds of which indefinite operations began."""
    tried: Int64
    """By kind, which configuration it was tried in last."""
    row: Int64
    """Room for one configuration."""


class Found(NamedTuple):
    """What was found on the way to a completion; changed in place."""

    lacking: Rows
    """Configurations in which the operation has not taken effect."""
    done: Rows
    """Those in which it has, as they are when it has completed."""
    trail: Trail
