"""A harness that is killed leaves a run that can be judged, over what was recorded."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.command_line.answers import Stormproof

LONGEST_WAIT_S = 120.0
KEPT = ("history.arrows", "nemesis.jsonl", "nodes", "scenario.json", "schedule.txt")
"""What a killed run leaves."""


@contextlib.contextmanager
def running(runs: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "stormproof.cli.main", "run", "rocketmq", "--time-limit", "600", "--seed", "5"]
    process = subprocess.Popen([*command, "--engine", "inprocess", "--runs", str(runs), *options])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(happened: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + LONGEST_WAIT_S
    while not happened():
        assert time.monotonic() < deadline
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.02)
            pytest.fail("the run ended before it could be killed")


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that was killed in the middle of its storm."""
    runs = tmp_path_factory.mktemp("killed")
    latest = runs / "latest"
    with running(runs, "--nemesis", "partition,kill", "--rate", "200") as process:
        wait_until(
            lambda: size(latest / "history.arrows") > 150_000 and size(latest / "nemesis.jsonl") > 1_000, process
        )
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    directory = latest.resolve()
    assert sorted(entry.name for entry in directory.iterdir()) == sorted(KEPT)
    return directory


def test_a_run_killed_in_its_storm_gets_a_verdict_over_what_was_recorded(
    killed: Path, tmp_path: Path, stormproof: Stormproof
) -> None:
    run = Path(shutil.copytree(killed, tmp_path / "run"))
    answer = stormproof("check", run, "--engine", "inprocess")
    assert answer.code == 2
    assert "verdict   UNKNOWN" in answer.out
    assert "the run was cut short: " in answer.out
    assert "final reads incomplete for queue storm/0: no replica was read to its end" in answer.out
    assert "no fault took effect" not in answer.out
    assert "replay    stormproof run rocketmq" in answer.out
    verdict = json.loads((run / "verdict.json").read_text())
    assert verdict["operations"]["send"]["ok"] > 100
    assert verdict["faults"]
    assert "UNKNOWN" in (run / "report.html").read_text()
    assert stormproof("check", run, "--engine", "inprocess").code == 2, "a second look must not make it whole"


def test_a_torn_tail_is_dropped_and_reported(killed: Path, tmp_path: Path, stormproof: Stormproof) -> None:
    run = Path(shutil.copytree(killed, tmp_path / "run"))
    stream = run / "history.arrows"
    stream.write_bytes(stream.read_bytes()[:-1_001])
    answer = stormproof("check", run, "--engine", "inprocess", "--json")
    assert answer.code == 2
    assert "torn bytes dropped" in answer.json["reasons"][0]


def test_a_run_killed_before_anything_was_recorded_is_unknown_and_says_so(
    killed: Path, tmp_path: Path, stormproof: Stormproof
) -> None:
    run = Path(shutil.copytree(killed, tmp_path / "run"))
    (run / "history.arrows").write_bytes(b"")
    assert "the run was cut short before anything was recorded" in stormproof("check", run).out
    (run / "history.arrows").unlink()
    answer = stormproof("check", run, "--engine", "inprocess")
    assert answer.code == 2
    assert "the run was cut short before it began" in answer.out
    assert (run / "report.html").exists()


def test_a_broken_promise_is_found_in_what_a_killed_run_recorded(killed: Path, stormproof: Stormproof) -> None:
    with running(Path("runs").absolute(), "--nemesis", "isolate primary every 12 for 6", "--rate", "200",
                 "--mutant", "dispatch-to-max") as process:  # fmt: skip
        wait_until(lambda: size(Path("runs/latest/history.arrows")) > 400_000, process)
        process.kill()
        process.wait()
    answer = stormproof("check", "runs/latest", "--engine", "inprocess", "--json")
    assert answer.code == 1
    assert answer.json["anomalies"]["inconsistent-offsets"] > 0
    assert any(reason.startswith("the run was cut short") for reason in answer.json["reasons"])
