"""A run on a real terminal and without one: what is seen meanwhile, what remains at the end, and that watching a run
changes nothing of it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.progress import Progress, unwatched
from harness.record.scenario import Scenario
from stormproof.cli.console import Console, Watching
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario
from tests.terminal import Screen, on_a_terminal

STORMPROOF = [sys.executable, "-m", "stormproof.cli.main"]
STORM = ["run", "rocketmq", "--nemesis", "isolate primary every 10 for 9", "--seed", "7", "--engine", "inprocess"]
PLAIN = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE")}


@pytest.mark.parametrize(("columns", "seconds"), [(64, 12), (200, 20)])
def test_a_storm_shows_how_far_it_is_and_leaves_its_lines_alone_on_the_terminal(
    tmp_path: Path, columns: int, seconds: int
) -> None:
    written, code = on_a_terminal(
        [*STORMPROOF, *STORM, "--time-limit", str(seconds), "--rate", "200", "--runs", str(tmp_path)],
        columns=columns,
        environment={**PLAIN, "TERM": "xterm"},
    )
    assert code == 0, written
    screen = Screen(columns).feed(written)
    storm = [line for line in screen.drawn if "simulated storm" in line]
    assert re.search(r"\d s  simulated storm, \d+ s left · \d+ ok, \d+ failed, \d+ u", storm[-1])
    assert all(len(line) < columns for line in storm)
    if columns == 200:
        assert re.search(r"\d+ unknown a second", storm[-1])
        assert any("faults: isolate primary (b" in line for line in storm)
    assert not any(" left" in line for line in screen.seen)
    assert any("checked in" in line for line in screen.seen)
    assert [line for line in screen.seen if line.startswith("verdict")] == ["verdict   VALID"]
    assert screen.colours == [("verdict   VALID", "1;32")]
    assert screen.seen[-1] == ""


def test_without_a_terminal_there_is_no_escape_sequence(tmp_path: Path) -> None:
    finished = subprocess.run(
        [*STORMPROOF, *STORM, "--time-limit", "10", "--runs", str(tmp_path), "--progress"],
        env={**PLAIN, "TERM": "xterm"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "checked in" in finished.stderr
    assert not {"\x1b", "\r"} & set(finished.stdout + finished.stderr)


def what_happened(runs: Path, progress: Progress) -> dict[str, str]:
    """The trace, and the bytes of all files that a run records."""
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        nemesis=("partition", "kill"),
        time_limit_s=10.0,
        recovery_s=5.0,
        seed=11,
        settings={"interval_s": 3.0},
    )
    directory = run_scenario(scenario, runs=runs, options=HERE, progress=progress).directory
    record = json.loads((directory / "scenario.json").read_text())
    files = [directory / "history.parquet", directory / "nemesis.jsonl", *sorted(directory.glob("nodes/*/*"))]
    digests = {str(file.relative_to(directory)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    return {"trace": record["trace_hash"], **digests}


def test_a_run_that_is_watched_is_the_same_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stormproof.cli.live_line.SAID_EVERY_S", 0.05)
    watched = what_happened(tmp_path / "watched", Console(watching=Watching.YES).progress)
    assert "simulated storm" in capsys.readouterr().err
    assert len(watched) > 5
    assert watched == what_happened(tmp_path / "unwatched", unwatched)
