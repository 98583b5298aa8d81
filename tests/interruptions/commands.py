"""The commands that are interrupted, by world; each writes under `place` alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.interruptions.attempt import World

BRIEF = [
    "--time-limit",
    "6",
    "--recovery",
    "2",
    "--set",
    "brokers=2",
    "--set",
    "controllers=1",
    "--engine",
    "inprocess",
]
Arguments = Callable[[Path], list[str]]

EVERYWHERE = "partition,kill,pause,strobe,slow-links,lossy-links,slow-nodes"
"""Faults of links, processes and clocks that containers and machines over SSH have."""
LOAD = ["--rate", "200", "--seed", "5"]
STORM = ["--nemesis", "partition,kill", *LOAD]
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
    inventory: Path | None = None
    """Of machines over SSH."""

    def of(self, world: World) -> Mapping[str, tuple[int, Arguments]]:
        if world is World.DOCKER:
            return {"run": (1, _docker), "disks": (1, _disks)}
        if world is World.SSH:
            return {"run": (1, self._ssh)}
        if world is World.SPARK:
            return {"check": (4, self._check_on_spark), "run": (1, _run_on_spark)}
        return {
            "run": (6, _simulated),
            "suite": (2, _suite),
            "replay": (1, self._replay),
            "check": (1, self._check),
            "export": (1, self._export),
        }

    def _ssh(self, place: Path) -> list[str]:
        where = ["--environment", "ssh", "--inventory", str(self.inventory)]
        return _run(place, *where, *BRIEF, nemesis=EVERYWHERE)

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
    return _run(place, "--environment", "docker", *BRIEF, nemesis=EVERYWHERE)


def _disks(place: Path) -> list[str]:
    return _run(place, "--environment", "docker", *BRIEF, nemesis="partition,power,disk")


def _run(place: Path, *options: str, nemesis: str = "partition,kill") -> list[str]:
    return ["run", "rocketmq", "--nemesis", nemesis, *LOAD, *options, "--runs", str(place / "runs")]


def _suite(place: Path) -> list[str]:
    (place / "suite.toml").write_text(SUITE)
    return ["suite", str(place / "suite.toml"), "--jobs", "2", "--engine", "inprocess", "--runs", str(place / "runs")]
