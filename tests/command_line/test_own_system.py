"""A system that comes from another package is found, run and judged without a change here."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.command_line.installation import environment_with, installed_as, installed_from

REMEMBERED = Path(__file__).parent / "remembered.py"
EXAMPLES = Path(__file__).parents[2] / "examples"
MEMO = EXAMPLES / "memo"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """What an installation of the example leaves."""
    return installed_from(MEMO, tmp_path / "site")


@pytest.fixture
def with_a_workload(installed: Path) -> Path:
    """Another package beside it: one file with a workload and its checker, found through one entry point."""
    shutil.copy(REMEMBERED, installed)
    points = {
        "stormproof.workloads": {"remembered": "remembered:WORKLOAD"},
        "stormproof.systems": {"remembering": "remembered:SYSTEM"},
    }
    return installed_as("remembered", points, installed)


def ran(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stormproof.cli.main", *arguments, "--json"],
        cwd=installed.parent,
        env=environment_with(installed, MEMO),
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
    ended, printed = stormproof(installed, *run, "--time-limit", "40", "--seed", "1", "--engine", "inprocess")
    assert (ended, printed["exit_code"]) == (code, code), printed
    assert bool(printed["anomalies"]["linearizable"]) is (keep == "memory")


def test_it_is_listed_beside_our_own(installed: Path) -> None:
    _, listed = stormproof(installed, "list", "systems")
    systems = {entry["name"]: entry for entry in listed["systems"]}
    assert {"redis", "rocketmq"} <= systems.keys()
    assert systems["memo"]["settings"] == {"keep": "disk"}


def test_a_system_of_commands_is_refused_where_none_can_run(installed: Path) -> None:
    refused = ran(installed, "run", "redis", "--workload", "register")
    assert refused.returncode == 254
    words = "environment 'simulated' cannot run redis: its node r1 is a command (sh); it can be run in: docker, ssh"
    assert refused.stderr == f"stormproof: {words}\n"
    assert not (installed.parent / "runs").exists()


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """An installation of the example with a node that cannot read its settings."""
    changed = (MEMO / "memo.py").read_text().replace('host.disk.open("log")', 'host.disk.open(config["file"])')
    site = installed_from(MEMO, tmp_path / "site")
    (site / "memo.py").write_text(changed)
    return site


def said_of_a_node_that_ends(broken: Path, *where: str) -> str:
    """What is printed about a run whose only node ends before it serves; the recorded run is no accusation either."""
    run = ["run", "memo", "--workload", "register", "--nemesis", "none", "--time-limit", "5", "--engine", "inprocess"]
    ended = ran(broken, *run, *where)
    assert ended.returncode == 255, ended.stderr
    assert ran(broken, "check", "runs/latest", "--engine", "inprocess").returncode == 2
    return ended.stderr


def test_a_node_that_ends_before_it_serves_says_nothing_about_the_system(broken: Path) -> None:
    *_, line = said_of_a_node_that_ends(broken).splitlines()
    assert line.startswith("stormproof: memo did not serve within 120 s after its start; memo-1 ended by itself: ")
    assert line.endswith("KeyError: 'file'")


@pytest.mark.docker
@pytest.mark.gate
def test_a_node_that_ends_in_its_container_before_it_serves_is_told_with_its_last_words(broken: Path) -> None:
    *_, line = said_of_a_node_that_ends(broken, "--environment", "docker").splitlines()
    # It is noticed by the probe of the program, or while the system does not serve.
    assert "memo-1 ended" in line and ": exit code 70 | " in line and line.endswith("KeyError: 'file'")


IN_CONTAINERS = ("--environment", "docker", "--engine", "inprocess", "--recovery", "3", "--seed", "1")


@pytest.mark.docker
@pytest.mark.gate
def test_a_python_program_of_any_package_runs_in_containers(installed: Path) -> None:
    nemesis = "kill memos every 6 for 1,pause memos every 5 for 1,skew clocks of memos every 7 for 2"
    run = ["run", "memo", "--workload", "register", "--nemesis", nemesis, "--time-limit", "12", *IN_CONTAINERS]
    ended, outcome = stormproof(installed, *run)
    assert ended == 0, outcome
    assert all(count["with_effect"] for count in outcome["faults"].values()), outcome["faults"]


@pytest.mark.parametrize(("keep", "code"), [pytest.param("disk", 0, marks=pytest.mark.gate), ("memory", 1)])
def test_a_workload_of_ones_own_is_run_and_judged_by_a_checker_of_ones_own(
    with_a_workload: Path, keep: str, code: int
) -> None:
    run = ["run", "remembering", "--workload", "remembered", "--nemesis", "kill all every 8 for 2"]
    settings = [
        "--set",
        f"keep={keep}",
        "--set",
        "keys=2",
        "--time-limit",
        "20",
        "--seed",
        "1",
        "--engine",
        "inprocess",
    ]
    ended, answer = stormproof(with_a_workload, *run, *settings)
    assert (ended, answer["exit_code"]) == (code, code), answer
    directory = with_a_workload.parent / answer["directory"]
    anomalies = json.loads((directory / "verdict.json").read_text())["checkers"]["remembered"]["anomalies"]
    explained = {"says": "What was written is read as nothing.", "usually": "It was kept in memory alone."}
    assert [anomaly["meaning"] for anomaly in anomalies.values()] == [explained] * code
    history = str(directory / "history.parquet")
    again, _ = stormproof(with_a_workload, "check", history, "--workload", "remembered", "--engine", "inprocess")
    assert again == code


def test_a_workload_of_ones_own_is_listed_with_what_its_checker_reports(with_a_workload: Path) -> None:
    _, listed = stormproof(with_a_workload, "list", "checks")
    (entry,) = (entry for entry in listed["checks"] if entry["name"] == "remembered")
    assert entry["anomalies"] == ["forgotten"]
    assert entry["settings"] == {"keys": "a whole number from 1 to 100"}
