"""The commands that are interrupted, by world; each writes under `place` alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.interruptions.attempt import World

Arguments = Callable[[Path], list[str]]

STORM = ["--nemesis", "partition,kill", "--rate", "200", "--seed", "5"]
SUITE = """
[defaults]
system = "rocketmq"
time_limit_s = 10
[[matrix]]
workload = ["log", "register"]
nemesis = "kill"
seeds = [1, 2]
"""


@dataclass(frozen=True, kw_only=True)
class Commands:
    """Of each world, by name and how often it is drawn."""

    stored: Path
    """A finished run, of which each command gets a copy."""

    def of(self, world: World) -> Mapping[str, tuple[int, Arguments]]:
        if world is World.DOCKER:
            return {"run": (1, _docker)}
        if world is World.SPARK:
            return {"check": (4, self._check_on_spark), "run": (1, _run_on_spark)}
        return {
            "run": (6, _simulated),
            "suite": (2, _suite),
            "replay": (1, self._replay),
            "check": (1, self._check),
            "export": (1, self._export),
        }

    def _copied(self, place: Path) -> str:
        """Whatever became of this run, its directory stays one that can be checked."""
        return str(shutil.copytree(self.stored, place / "runs" / "stored" / "run"))

    def _check_on_spark(self, place: Path) -> list[str]:
        return ["check", self._copied(place), "--engine", "spark", "--master", "local[2]"]

    def _check(self, place: Path) -> list[str]:
        return ["check", self._copied(place), "--engine", "inprocess"]

    def _replay(self, place: Path) -> list[str]:
        return ["replay", self._copied(place), "--engine", "inprocess", "--runs", str(place / "runs")]

    def _export(self, place: Path) -> list[str]:
        return ["export", self._copied(place), "--output", str(place / "history.edn")]


def _simulated(place: Path) -> list[str]:
    return _run(place, "--time-limit", "25", "--engine", "inprocess")


def _run_on_spark(place: Path) -> list[str]:
    return _run(place, "--time-limit", "5", "--engine", "spark", "--master", "local[2]")


def _docker(place: Path) -> list[str]:
    brief = ["--time-limit", "6", "--recovery", "2", "--set", "brokers=2", "--set", "controllers=1"]
    return _run(place, "--environment", "docker", *brief, "--engine", "inprocess")


def _run(place: Path, *options: str) -> list[str]:
    return ["run", "rocketmq", *STORM, *options, "--runs", str(place / "runs")]


def _suite(place: Path) -> list[str]:
    (place / "suite.toml").write_text(SUITE)
    return ["suite", str(place / "suite.toml"), "--jobs", "2", "--engine", "inprocess", "--runs", str(place / "runs")]
