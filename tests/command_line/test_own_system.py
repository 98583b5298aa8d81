"""A system that comes from somebody else's package is found, run and judged without a change here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MEMO, REDIS = EXAMPLES / "memo", EXAMPLES / "redis"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """What an installation of the examples leaves: their metadata beside their modules."""
    for example in (MEMO, REDIS):
        project = tomllib.loads((example / "pyproject.toml").read_text())["project"]
        metadata = tmp_path / "site" / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        points = [
            f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in entries.items())
            for group, entries in project["entry-points"].items()
        ]
        (metadata / "entry_points.txt").write_text("\n".join(points))
    return metadata.parent


def ran(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness.cli.main", *arguments, "--json"],
        cwd=installed.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (installed, MEMO, REDIS, EXAMPLES.parent)))},
        capture_output=True,
        text=True,
        check=False,
    )


def stormproof(installed: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = ran(installed, *arguments)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(("keep", "code"), [("disk", 0), ("memory", 1)])
def test_the_example_is_judged_by_what_it_keeps(installed: Path, keep: str, code: int) -> None:
    nemesis = "kill all every 8 for 2" if keep == "memory" else "kill all every 8 for 2,power off all every 9 for 2"
    run = ["run", "memo", "--workload", "register", "--nemesis", nemesis, "--set", f"keep={keep}"]
    ended, told = stormproof(installed, *run, "--time-limit", "40", "--seed", "1", "--engine", "inprocess")
    assert (ended, told["exit_code"]) == (code, code), told
    assert bool(told["anomalies"]["linearizable"]) is (keep == "memory")


def test_it_is_listed_beside_our_own(installed: Path) -> None:
    _, listed = stormproof(installed, "list", "systems")
    assert [entry["name"] for entry in listed["systems"]] == ["memo", "redis", "rocketmq"]
    assert listed["systems"][0]["settings"] == {"keep": "disk"}


def test_a_system_of_commands_is_refused_where_none_can_run(installed: Path) -> None:
    refused = ran(installed, "run", "redis", "--workload", "register")
    assert refused.returncode == 254
    words = "environment 'simulated' cannot run redis: its node r1 is a command (sh); it can be run in: docker"
    assert refused.stderr == f"stormproof: {words}\n"
    assert not (installed.parent / "runs").exists()


IN_CONTAINERS = ("--environment", "docker", "--engine", "inprocess", "--recovery", "3", "--seed", "1")


@pytest.mark.docker
def test_a_python_program_of_any_package_runs_in_containers(installed: Path) -> None:
    nemesis = "kill memos every 6 for 1,pause memos every 5 for 1,skew clocks of memos every 7 for 2"
    run = ["run", "memo", "--workload", "register", "--nemesis", nemesis, "--time-limit", "12", *IN_CONTAINERS]
    ended, outcome = stormproof(installed, *run)
    assert ended == 0, outcome
    assert all(count["with_effect"] for count in outcome["faults"].values()), outcome["faults"]


@pytest.mark.docker
@pytest.mark.gate
def test_redis_keeps_what_it_acknowledged_without_faults_and_loses_it_in_a_failover(installed: Path) -> None:
    calm = stormproof(installed, "run", "redis", "--workload", "set", "--time-limit", "15", *IN_CONTAINERS)
    assert calm[0] == 0, calm
    isolated = ("--nemesis", "isolate primary every 28 for 15", "--time-limit", "30")
    ended, outcome = stormproof(installed, "run", "redis", "--workload", "set", *isolated, *IN_CONTAINERS)
    assert ended == 1, outcome
    assert outcome["anomalies"]["set"]["lost"] > 0
