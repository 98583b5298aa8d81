"""The events of a storm as data: things on lines, a line for each node and client, from which a few are chosen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MOST_SHOWN: Final = 30
"""The most things that are shown at once."""
MOST_KEPT: Final = 600
"""The most things that are on the page."""
TELLING: Final = 2
"""The least weight of things that are shown at once, even if there is little else."""
NEEDED: Final = 100
"""The least weight of things that are needed to follow the story."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Something that happened at one node, or to it."""

    line: str
    time_ns: int
    label: str
    sentence: str = ""
    """A text that follows the line's name in the narrative; empty if the narrative leaves it out."""
    weight: int

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.line,)

    @property
    def times_ns(self) -> tuple[int, ...]:
        return (self.time_ns,)


@dataclass(frozen=True, kw_only=True)
class Message:
    """From one line to another; `received_ns` is None for one that never arrived."""

    source: str
    target: str
    time_ns: int
    received_ns: int | None
    label: str
    weight: int
    sentence: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.source, self.target)

    @property
    def times_ns(self) -> tuple[int, ...]:
        return (self.time_ns,) if self.received_ns is None else (self.time_ns, self.received_ns)


@dataclass(frozen=True, kw_only=True)
class Band:
    """Something that lasted: a fault at a node, an operation of a client."""

    line: str
    time_ns: int
    until_ns: int
    label: str
    colour: str
    """A variable of the page's style, as `--kill`."""
    sentence: str = ""
    after: str = ""
    """A sentence for its end."""
    weight: int

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.line,)

    @property
    def times_ns(self) -> tuple[int, ...]:
        return (self.time_ns, self.until_ns)


Thing = Moment | Message | Band


@dataclass(frozen=True, kw_only=True)
class Story:
    """All things, in order of time."""

    title: str
    because: tuple[str, ...]
    """Why the promise is broken, a sentence each."""
    command: str
    """The command that replays it."""
    schedule: tuple[str, ...]
    lines: tuple[str, ...]
    """All lines, from left to right."""
    things: tuple[Thing, ...]


def chosen(things: Iterable[Thing], most: int, *, least: int) -> tuple[Thing, ...]:
    """The most important things of at least this weight, in order of time; of equal weight the earliest."""
    ranked = sorted(
        (thing for thing in things if thing.weight >= least), key=lambda thing: (-thing.weight, thing.time_ns)
    )
    return tuple(sorted(ranked[:most], key=lambda thing: thing.time_ns))


def lines_of(things: Iterable[Thing], lines: tuple[str, ...]) -> tuple[str, ...]:
    """The lines on which something happens, in the order given."""
    used = {line for thing in things for line in thing.lines}
    return tuple(line for line in lines if line in used)
