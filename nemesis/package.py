"""Packages: a kind of storm by name, with its shapes; they compose, each at its own pace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.seed import Seed
from nemesis.schedule import NemesisSettings, Step, storm
from nemesis.shape import (
    Apart,
    Bridge,
    ClockShape,
    Isolate,
    IsolateWithCompany,
    MajoritiesRing,
    OneWay,
    RandomHalves,
    Shape,
    kill,
    pause,
    power_off,
)
from nemesis.target import ACTIVE_CONTROLLER, ALL, PRIMARY, Group, Majority, Minority, One

BROKERS, CONTROLLERS = Group("brokers"), Group("controllers")


@dataclass(frozen=True, kw_only=True)
class Package:
    """A nemesis that `--nemesis NAME` chooses. `fault` is the kind that the environment must be able to apply."""

    name: str
    fault: str
    about: str
    shapes: tuple[tuple[float, Shape], ...]
    """Weight and shape; the weights are relative."""
    settings_type: type = NemesisSettings

    def schedule(self, seed: Seed, settings: NemesisSettings, time_limit_s: float) -> tuple[Step, ...]:
        return storm(self.name, self.shapes, seed, settings, time_limit_s)


PARTITION = Package(
    name="partition",
    fault="partition",
    about="cuts links: single nodes, halves, one way, groups, bridges, rings",
    shapes=(
        (3.0, Isolate(PRIMARY)),
        (1.0, IsolateWithCompany(PRIMARY, "controllers")),
        (1.0, IsolateWithCompany(PRIMARY, "brokers")),
        (1.5, Isolate(ACTIVE_CONTROLLER)),
        (1.0, IsolateWithCompany(ACTIVE_CONTROLLER, "brokers")),
        (1.5, Isolate(One("brokers"))),
        (1.0, Isolate(Minority("controllers"))),
        (1.0, OneWay(PRIMARY)),
        (1.0, OneWay(One())),
        (1.0, Apart(BROKERS, CONTROLLERS)),
        (1.0, Apart(PRIMARY, BROKERS)),
        (0.7, RandomHalves()),
        (0.7, Bridge("controllers")),
        (0.5, MajoritiesRing("brokers")),
    ),
)
KILL = Package(
    name="kill",
    fault="kill",
    about="kills processes with SIGKILL and starts them again",
    shapes=(
        (3.0, kill(PRIMARY)),
        (1.5, kill(ACTIVE_CONTROLLER)),
        (2.0, kill(One("brokers"))),
        (1.0, kill(Majority("brokers"))),
        (1.0, kill(Minority("controllers"))),
        (0.5, kill(Majority("controllers"))),
        (0.7, kill(BROKERS)),
        (0.3, kill(ALL)),
    ),
)
PAUSE = Package(
    name="pause",
    fault="pause",
    about="stops processes with SIGSTOP and lets them go on",
    shapes=(
        (3.0, pause(PRIMARY)),
        (1.5, pause(ACTIVE_CONTROLLER)),
        (2.0, pause(One("brokers"))),
        (1.0, pause(Majority("brokers"))),
        (1.0, pause(Minority("controllers"))),
    ),
)
CLOCK = Package(
    name="clock",
    fault="clock",
    about="makes wall clocks jump and drift",
    shapes=(
        (2.0, ClockShape(PRIMARY)),
        (1.0, ClockShape(ACTIVE_CONTROLLER)),
        (2.0, ClockShape(One())),
        (1.0, ClockShape(Minority("all"))),
        (1.0, ClockShape(ALL)),
    ),
)
POWER = Package(
    name="power",
    fault="power",
    about="cuts the power: bytes that were not fsynced are gone in whole or in part",
    shapes=(
        (3.0, power_off(PRIMARY)),
        (1.5, power_off(ACTIVE_CONTROLLER)),
        (2.0, power_off(One("brokers"))),
        (1.0, power_off(Minority("controllers"))),
        (1.0, power_off(CONTROLLERS)),
        (0.5, power_off(BROKERS)),
    ),
)

PACKAGES: Mapping[str, Package] = {package.name: package for package in (PARTITION, KILL, PAUSE, CLOCK, POWER)}
