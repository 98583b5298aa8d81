"""Beats: one shape at a steady pace, written as a sentence: `isolate primary every 10 for 5`.

A beat goes wherever the name of a package goes. It strikes once in each interval, at a moment that the
seed draws from the interval's first half, and heals the given seconds later (before the next strike).
Shapes that strike at one moment are joined: `isolate primary and restart brokers every 10 for 8`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from harness.errors import UsageError
from harness.seed import Seed
from nemesis.packages import BROKERS, CONTROLLERS, PACKAGES
from nemesis.schedule import NemesisSettings, Step
from nemesis.shapes import (
    Apart,
    Bridge,
    ClockShape,
    Isolate,
    IsolateWithCompany,
    MajoritiesRing,
    OneWay,
    RandomHalves,
    Shape,
    Together,
    kill,
    pause,
    power_off,
    restart,
)
from nemesis.target import ACTIVE_CONTROLLER, ALL, PRIMARY, Majority, Minority, One, Role, Target

DISPENSABLE = Role("dispensable")
QUORUM = "quorum"
"""The name of the steps that leave only a quorum."""

TARGETS: tuple[Target, ...] = (
    PRIMARY,
    ACTIVE_CONTROLLER,
    ALL,
    BROKERS,
    CONTROLLERS,
    One(),
    *(target(group) for group in ("brokers", "controllers") for target in (One, Minority, Majority)),
)
_SHAPES: tuple[tuple[str, Shape], ...] = (
    *(("partition", Isolate(target)) for target in TARGETS if target is not ALL),
    *(("partition", OneWay(target)) for target in TARGETS if target is not ALL),
    *(
        ("partition", IsolateWithCompany(role, group))
        for role in (PRIMARY, ACTIVE_CONTROLLER)
        for group in ("brokers", "controllers")
    ),
    ("partition", Apart(BROKERS, CONTROLLERS)),
    ("partition", Apart(PRIMARY, BROKERS)),
    ("partition", Apart(PRIMARY, CONTROLLERS)),
    ("partition", RandomHalves()),
    *(("partition", shape(group)) for group in ("brokers", "controllers") for shape in (Bridge, MajoritiesRing)),
    *(("kill", kill(target)) for target in TARGETS),
    *(("kill", restart(target)) for target in TARGETS),
    *(("pause", pause(target)) for target in TARGETS),
    *(("power", power_off(target)) for target in TARGETS),
    *(("clock", ClockShape(target)) for target in TARGETS),
)
SHAPES: Mapping[str, tuple[str, Shape]] = {str(shape): (fault, shape) for fault, shape in _SHAPES}
"""What a shape is called -> (kind of fault, the shape)."""

_SENTENCE = re.compile(r"(?P<shape>.+) every (?P<interval>\d+(\.\d+)?) for (?P<length>\d+(\.\d+)?)")


@dataclass(frozen=True, slots=True)
class Beat:
    """Stands where a package stands; see the module."""

    fault: str
    shape: Shape
    interval_s: float
    heal_after_s: float
    settings_type = NemesisSettings

    @property
    def name(self) -> str:
        return f"{self.shape} every {self.interval_s:g} for {self.heal_after_s:g}"

    def schedule(self, seed: Seed, settings: NemesisSettings, time_limit_s: float) -> tuple[Step, ...]:
        steps: list[Step] = []
        for number in range(int(time_limit_s / self.interval_s)):
            draw = seed.child(self.name, str(number)).stream()
            at_s = self.interval_s * (number + draw.random() / 2)
            end_s = min(at_s + self.heal_after_s, self.interval_s * (number + 1), time_limit_s)
            steps += [
                Step(at_s, self.name, number, self.shape, True),
                Step(end_s, self.name, number, self.shape, False),
            ]
        return tuple(steps)


def quorum(*, from_s: float, until_s: float) -> tuple[Step, ...]:
    """The nodes that the system can do without go down and stay down until the end."""
    shape = kill(DISPENSABLE)
    return (Step(from_s, QUORUM, 0, shape, True), Step(until_s, QUORUM, 0, shape, False))


def every(interval_s: float, shape: Shape, *, heal_after_s: float) -> str:
    """The sentence for a shape, to be used in a Scenario's `nemesis`. Raises UsageError for an unknown shape."""
    return parse(f"{shape} every {interval_s:g} for {heal_after_s:g}").name


def parse(sentence: str) -> Beat:
    """Raises UsageError that says what was expected."""
    match = _SENTENCE.fullmatch(sentence.strip())
    if match is None:
        raise UsageError(
            f"unknown nemesis {sentence!r}; known are {', '.join(PACKAGES)}, "
            "or a sentence such as 'isolate primary every 10 for 5'"
        )
    interval_s, heal_after_s = float(match["interval"]), float(match["length"])
    if interval_s <= 0 or heal_after_s <= 0:
        raise UsageError(f"a beat's interval and length are more than 0 seconds, got {sentence!r}")
    parts = match["shape"].split(" and ")
    unknown = [part for part in parts if part not in SHAPES]
    if unknown:
        near = get_close_matches(unknown[0], SHAPES, 4, 0.5) or list(SHAPES)[:4]
        raise UsageError(f"unknown shape {unknown[0]!r} of a fault; such are known: {', '.join(near)}, …")
    faults, shapes = zip(*(SHAPES[part] for part in parts), strict=True)
    shape = shapes[0] if len(shapes) == 1 else Together(shapes)
    return Beat("+".join(sorted(set(faults))), shape, interval_s, heal_after_s)
