"""Schedules: when which shape strikes and when it is healed, drawn from the seed before the storm or read from a file.

A fault draws from streams that are named after its package and number alone, when it is scheduled and when it strikes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from harness.bounds import Bounds
from harness.errors import UsageError
from harness.generator import PENDING, Context, Emission, Generator
from harness.operation import NEMESIS, Operation
from harness.record.fault_log import QUORUM
from harness.seed import Seed
from nemesis.impair import with_drawn_amounts
from nemesis.shape import Shape, kill
from nemesis.target import Role
from nemesis.trigger import Trigger


@dataclass(frozen=True, kw_only=True)
class NemesisSettings:
    """Pace of the storm; each package follows it independently, so faults of several packages overlap."""

    interval_s: Annotated[float, Bounds(0.5, 86_400)] = 5.0
    """Mean calm between two faults of one package."""
    shortest_fault_s: Annotated[float, Bounds(0.01, 86_400)] = 0.3
    longest_fault_s: Annotated[float, Bounds(0.01, 86_400)] = 15.0
    """A fault's length is drawn log-uniform between the two."""

    def __post_init__(self) -> None:
        if self.shortest_fault_s > self.longest_fault_s:
            raise UsageError(
                f"shortest_fault_s must be at most longest_fault_s ({self.longest_fault_s:g}), "
                f"got {self.shortest_fault_s:g}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One fault of a schedule; times in ns from the beginning of the storm.

    With a trigger it is armed at `at_ns`, strikes once the point is reached, and lasts as long as from `at_ns` to
    `until_ns`, but never longer than the storm.
    """

    at_ns: int
    until_ns: int
    package: str
    """The package, or the sentence, that it was drawn from; with the number it names the fault's random stream."""
    number: int
    shape: Shape
    trigger: Trigger | None = None

    @classmethod
    def between(
        cls, at_s: float, until_s: float, package: str, number: int, shape: Shape, trigger: Trigger | None = None
    ) -> Entry:
        at_ns = round(at_s * 1e9)
        until_ns = max(round(until_s * 1e9), at_ns + 1)
        return cls(at_ns=at_ns, until_ns=until_ns, package=package, number=number, shape=shape, trigger=trigger)

    @property
    def key(self) -> tuple[str, int]:
        return self.package, self.number

    @property
    def what(self) -> str:
        """The shape and its trigger, as they are written."""
        return str(self.shape) if self.trigger is None else f"{self.shape} {self.trigger}"


@dataclass(frozen=True, slots=True)
class Due:
    """The start or the stop of an entry: what the nemesis carries out as one operation.

    An entry with a trigger is armed and disarmed instead: in between it strikes and is healed as it comes.
    """

    at_ns: int
    starts: bool
    entry: Entry

    @property
    def f(self) -> str:
        verbs = ("start", "stop") if self.entry.trigger is None else ("arm", "disarm")
        return f"{verbs[0] if self.starts else verbs[1]}-{self.entry.package}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """When which shape strikes and when it is healed."""

    entries: tuple[Entry, ...] = ()
    storm_ns: int = 0
    """The storm's length: what waits for a point until then does no longer."""

    def due(self) -> tuple[Due, ...]:
        """Starts and stops in order of time; stops come before starts at the same instant."""
        both = ((Due(entry.at_ns, True, entry), Due(self._end_ns(entry), False, entry)) for entry in self.entries)
        return tuple(
            sorted(
                itertools.chain.from_iterable(both),
                key=lambda due: (due.at_ns, due.starts, due.entry.package, due.entry.number),
            )
        )

    def _end_ns(self, entry: Entry) -> int:
        return entry.until_ns if entry.trigger is None else max(entry.until_ns, self.storm_ns)


def at_random(
    package: str, shapes: Sequence[tuple[float, Shape]], seed: Seed, settings: NemesisSettings, time_limit_s: float
) -> tuple[Entry, ...]:
    """Calm, fault, calm, fault … until `time_limit_s`; the last fault is stopped at the limit at the latest.

    Each fault draws from a stream of its own, so that taking one away leaves the others as they are.
    """
    entries: list[Entry] = []
    at_s, number = 0.0, 0
    while True:
        draw = seed.child(package, str(number)).stream()
        at_s += draw.uniform(0.3, 1.7) * settings.interval_s
        if at_s >= time_limit_s:
            return tuple(entries)
        span = math.log(settings.longest_fault_s / settings.shortest_fault_s)
        length_s = settings.shortest_fault_s * math.exp(draw.random() * span)
        (shape,) = draw.choices([s for _, s in shapes], weights=[w for w, _ in shapes])
        end_s = min(at_s + length_s, time_limit_s)
        entries.append(Entry.between(at_s, end_s, package, number, with_drawn_amounts(shape, draw)))
        at_s, number = end_s, number + 1


def quorum(spare: str, *, from_s: float, until_s: float) -> Entry:
    """The nodes of the role without which the system must go on are down until the end."""
    return Entry.between(from_s, until_s, QUORUM, 0, kill(Role(spare)))


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A schedule as a generator for the nemesis' thread.

    The storm's beginning is given, not taken from the first call of `op`: a combinator that chooses among generators
    drops the successors of those it did not choose, and each start would for ever lie as far ahead as at the beginning.

    Where verbs take their time, as on a busy machine, a fault whose end has passed before its turn came is left out:
    otherwise faults would pile up, and strike long after the clients' last operation.
    """

    due: tuple[Due, ...]
    start_ns: int
    position: int = 0
    left_out: frozenset[tuple[str, int]] = frozenset()
    """Faults that will not be stopped either."""

    def op(self, context: Context) -> Emission:
        if self.position == len(self.due):
            return None
        if not context.is_free(NEMESIS):
            return PENDING, self
        position, left_out = self.position, self.left_out
        while position < len(self.due):
            next_ = self.due[position]
            key, is_late = next_.entry.key, context.time > self.start_ns + next_.entry.until_ns
            if next_.starts and is_late and next_.entry.trigger is None:
                left_out |= {key}
            elif key not in left_out:
                time_ns = max(context.time, self.start_ns + next_.at_ns)
                operation = Operation(NEMESIS, "invoke", next_.f, {"due": position}, None, time_ns)
                return operation, Scheduled(self.due, self.start_ns, position + 1, left_out)
            position += 1
        return None

    def quiet_until(self, context: Context) -> int:
        return 0 if self.position == len(self.due) else self.start_ns + self.due[self.position].at_ns

    def update(self, context: Context, event: Operation) -> Generator:
        return self
