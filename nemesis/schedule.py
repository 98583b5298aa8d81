"""Schedules: when which shape strikes, drawn from the seed before the storm, and always ending healed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from harness.bounds import Bounds
from harness.errors import UsageError
from harness.generator import PENDING, Context, Emission, Generator
from harness.operation import NEMESIS, Operation
from harness.seed import Seed
from nemesis.shape import Shape


@dataclass(frozen=True, kw_only=True)
class NemesisSettings:
    """Pace of the storm; every package follows it by itself, so faults of several packages overlap."""

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


@dataclass(frozen=True, slots=True)
class Step:
    """One entry of a schedule. Start and stop of one fault share package and number."""

    at_s: float
    package: str
    number: int
    shape: Shape
    starts: bool

    @property
    def f(self) -> str:
        return f"{'start' if self.starts else 'stop'}-{self.package}"


def storm(
    package: str, shapes: Sequence[tuple[float, Shape]], seed: Seed, settings: NemesisSettings, time_limit_s: float
) -> tuple[Step, ...]:
    """Calm, fault, calm, fault … until `time_limit_s`; the last fault is stopped at the limit at the latest.

    Each fault draws from a stream of its own, so that taking one away leaves the others as they are.
    """
    steps: list[Step] = []
    at_s, number = 0.0, 0
    while True:
        draw = seed.child(package, str(number)).stream()
        at_s += draw.uniform(0.3, 1.7) * settings.interval_s
        if at_s >= time_limit_s:
            return tuple(steps)
        span = math.log(settings.longest_fault_s / settings.shortest_fault_s)
        length_s = settings.shortest_fault_s * math.exp(draw.random() * span)
        (shape,) = draw.choices([s for _, s in shapes], weights=[w for w, _ in shapes])
        end_s = min(at_s + length_s, time_limit_s)
        steps += [Step(at_s, package, number, shape, True), Step(end_s, package, number, shape, False)]
        at_s, number = end_s, number + 1


def together(schedules: Sequence[tuple[Step, ...]]) -> tuple[Step, ...]:
    """One schedule out of several, in order of time; stops come before starts at the same instant."""
    return tuple(
        sorted(
            (step for steps in schedules for step in steps),
            key=lambda step: (step.at_s, step.starts, step.package, step.number),
        )
    )


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A schedule as a generator for the nemesis' thread.

    Its start is told, not taken from the first question: whoever chooses among generators forgets what became of
    those it did not choose, and every step would for ever lie as far ahead of now as of the beginning.
    """

    schedule: tuple[Step, ...]
    start_ns: int
    position: int = 0

    def op(self, context: Context) -> Emission:
        if self.position == len(self.schedule):
            return None
        if not context.is_free(NEMESIS):
            return PENDING, self
        step = self.schedule[self.position]
        due_ns = max(context.time, self.start_ns + round(step.at_s * 1e9))
        operation = Operation(NEMESIS, "invoke", step.f, {"step": self.position}, None, due_ns)
        return operation, Scheduled(self.schedule, self.start_ns, self.position + 1)

    def update(self, context: Context, event: Operation) -> Generator:
        return self
