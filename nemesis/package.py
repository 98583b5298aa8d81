"""Packages: a kind of storm by name, with shapes aimed at whatever groups and roles a system declares.

Each function here makes one package from a declaration; entry points in `stormproof.nemeses` name them. Roles come
first, in their order of importance: the most important one is struck most often. Then come groups: nodes and majorities
of those that hold data, minorities of those that decide by majority. Weights are relative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from harness.seed import Seed
from harness.system import Declaration
from nemesis import shape
from nemesis.schedule import Entry, NemesisSettings, at_random
from nemesis.shape import Apart, Bridge, ClockShape, Isolate, IsolateWithCompany, MajoritiesRing, OneWay, Shape
from nemesis.target import ALL, Group, Majority, Minority, One, Role, Target

Weighted = tuple[float, Shape]


@dataclass(frozen=True, kw_only=True)
class Package:
    """A nemesis that `--nemesis NAME` chooses. `fault` is the kind that the environment must be able to apply."""

    name: str
    fault: str
    about: str
    shapes: tuple[Weighted, ...]
    settings_type: type = NemesisSettings
    waits_for_points = False

    def schedule(self, seed: Seed, settings: NemesisSettings, time_limit_s: float) -> tuple[Entry, ...]:
        return at_random(self.name, self.shapes, seed, settings, time_limit_s)


def partition(system: Declaration) -> Package:
    data, groups, first = _data(system), system.groups, tuple(system.roles.items())[:1]
    return Package(
        name="partition",
        fault="partition",
        about="cuts links: single nodes, halves, one way, groups, bridges, rings",
        shapes=(
            *_isolated_roles(system),
            *((1.5, Isolate(One(group))) for group in data),
            *((1.0, Isolate(Minority(group))) for group in system.voters),
            *((1.0, OneWay(Role(role))) for role, _ in first),
            (1.0, OneWay(One())),
            *((1.0, Apart(Group(a), Group(b))) for place, a in enumerate(groups) for b in groups[place + 1 :]),
            *((1.0, Apart(Role(role), Group(group))) for role, group in first),
            (0.7, shape.RandomHalves()),
            *((0.7, Bridge(group)) for group in system.voters),
            *((0.5, MajoritiesRing(group)) for group in data),
        ),
    )


def kill(system: Declaration) -> Package:
    return Package(
        name="kill",
        fault="kill",
        about="kills processes with SIGKILL and starts them again",
        shapes=(
            *_roles(system, shape.kill, 3.0, 1.5),
            *((2.0, shape.kill(One(group))) for group in _data(system)),
            *((1.0, shape.kill(Majority(group))) for group in _data(system)),
            *((1.0, shape.kill(Minority(group))) for group in system.voters),
            *((0.5, shape.kill(Majority(group))) for group in system.voters),
            *((0.7, shape.kill(Group(group))) for group in _data(system)),
            (0.3, shape.kill(ALL)),
        ),
    )


def pause(system: Declaration) -> Package:
    return Package(
        name="pause",
        fault="pause",
        about="stops processes with SIGSTOP and lets them go on",
        shapes=(
            *_roles(system, shape.pause, 3.0, 1.5),
            *((2.0, shape.pause(One(group))) for group in _data(system)),
            *((1.0, shape.pause(Majority(group))) for group in _data(system)),
            *((1.0, shape.pause(Minority(group))) for group in system.voters),
        ),
    )


def clock(system: Declaration) -> Package:
    return Package(
        name="clock",
        fault="clock",
        about="makes wall clocks jump and drift",
        shapes=(
            *_roles(system, ClockShape, 2.0, 1.0),
            (2.0, ClockShape(One())),
            (1.0, ClockShape(Minority("all"))),
            (1.0, ClockShape(ALL)),
        ),
    )


def power(system: Declaration) -> Package:
    return Package(
        name="power",
        fault="power",
        about="cuts the power: bytes that were not fsynced are gone in whole or in part",
        shapes=(
            *_roles(system, shape.power_off, 3.0, 1.5),
            *((2.0, shape.power_off(One(group))) for group in _data(system)),
            *((1.0, shape.power_off(Minority(group))) for group in system.voters),
            *((1.0, shape.power_off(Group(group))) for group in system.voters),
            *((0.5, shape.power_off(Group(group))) for group in _data(system)),
        ),
    )


def _data(system: Declaration) -> tuple[str, ...]:
    """The groups that hold data; all nodes where the system says of none that it does."""
    return system.data or ("all",)


def _roles(
    system: Declaration, shape_of: Callable[[Target], Shape], most_important: float, others: float
) -> Iterator[Weighted]:
    for place, role in enumerate(system.roles):
        yield (others if place else most_important), shape_of(Role(role))


def _isolated_roles(system: Declaration) -> Iterator[Weighted]:
    """Alone, and with one node of another group; the most important one with one of its own group as well."""
    for place, (role, own) in enumerate(system.roles.items()):
        others = tuple(group for group in system.groups if group != own)
        yield (1.5 if place else 3.0), Isolate(Role(role))
        for group in others if place else (*others, own):
            yield 1.0, IsolateWithCompany(Role(role), group)


PACKAGES: Mapping[str, Callable[[Declaration], Package]] = {
    "partition": partition,
    "kill": kill,
    "pause": pause,
    "clock": clock,
    "power": power,
}
"""The packages that come with Stormproof."""
