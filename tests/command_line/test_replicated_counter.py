"""The example of a system with invariants, several logs a node and a planted bug, simulated and in containers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.record.event_lines import node_events
from results.verdict_file import read_verdict
from tests.command_line.installation import ROOT, environment_with, installed_from

PROJECT = ROOT / "examples" / "counter"
PAUSES = "pause leader every 6 for 4"
"""It goes on as the leader that it was, and another one has counted meanwhile."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the example is installed, and runs leave what they leave."""
    installed_from(PROJECT, tmp_path / "site")
    return tmp_path


def answered(folder: Path, *words: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-m", "stormproof.cli.main", *words, "--json"],
        cwd=folder,
        env=environment_with(folder / "site", PROJECT),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    assert ran.returncode == answer["exit_code"], answer
    return answer


def storm(folder: Path, nemesis: str, *words: str) -> dict[str, Any]:
    return answered(folder, "run", "counter", "--nemesis", nemesis, "--seed", "1", "--engine", "inprocess", *words)


def logs_of(directory: Path) -> set[str]:
    """Those of which any node reported an entry."""
    files = directory.glob("nodes/*/events.jsonl")
    return {event["log"] for file in files for _, event in node_events(file) if event["event"] == "written"}


def test_a_deposed_leader_that_answers_alone_breaks_the_systems_own_invariant(folder: Path) -> None:
    answer = storm(folder, PAUSES, "--time-limit", "24", "--mutant", "answers-alone")
    assert answer["verdict"] == "invalid"
    assert {name for of in answer["anomalies"].values() for name in of} == {"stale-read"}, "clients could not tell"
    summary = read_verdict(folder / answer["directory"]).checkers["invariants"].anomalies["stale-read"]
    assert summary.meaning is not None
    assert summary.meaning.says.startswith("A read showed less than what had been answered to be added")


def test_healthy_nodes_with_several_logs_are_valid(folder: Path) -> None:
    answer = storm(folder, PAUSES, "--time-limit", "24", "--set", "counters=3")
    assert answer["verdict"] == "valid", answer
    verdict = read_verdict(folder / answer["directory"])
    assert verdict.checkers["cluster"].statistics["events"]["confirmed"] > 100
    assert logs_of(folder / answer["directory"]) == {"c0", "c1", "c2"}


@pytest.mark.gate
def test_a_search_from_random_starts_finds_the_planted_bug_and_nothing_without_it(folder: Path) -> None:
    search = ["explore", "counter", "--nemesis", "partition,pause,kill", "--random", "--seed", "1", "--seeds", "0..7"]
    assert answered(folder, *search, "--no-shrink", "--mutant", "answers-alone")["verdict"] == "invalid"
    assert answered(folder, *search)["verdict"] == "valid"


@pytest.mark.docker
@pytest.mark.gate
def test_in_containers_counters_outlast_partitions_and_kills(folder: Path) -> None:
    environment = ["--environment", "docker", "--time-limit", "15", "--recovery", "5"]
    answer = storm(folder, "partition,kill", *environment)
    assert answer["verdict"] == "valid", answer
    assert logs_of(folder / answer["directory"]) == {"c0", "c1"}
