"""Which process owns a directory, and when it may be removed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.lifetime import scratch
from harness.lifetime.owner import State, owner_id, state_of
from stormproof.cli.main import run


def test_an_owner_lives_exactly_as_long_as_its_process() -> None:
    assert state_of(owner_id()) is State.LIVING
    program = "from harness.lifetime.owner import owner_id; print(owner_id())"
    gone = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert gone and state_of(gone) is State.GONE
    host, pid, _ = owner_id().rsplit(":", 2)
    assert state_of(f"{host}:{pid}:1") is State.GONE, "another process that got the same number later"
    assert state_of(f"another-{host}:{pid}:1") is State.ELSEWHERE
    assert state_of("") is State.GONE


def test_a_zombie_owns_nothing_any_more() -> None:
    program = "from harness.lifetime.owner import owner_id; print(owner_id(), flush=True)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.read().strip()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays what it is
        assert Path(f"/proc/{process.pid}").exists()
        assert state_of(name) is State.GONE


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a process that was killed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    program = f"""
import os, signal, tempfile
tempfile.tempdir = {str(tmp_path)!r}
from harness.lifetime import scratch
(scratch.for_the_process() / "file").write_text("x")
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program], check=False)
    (made,) = tmp_path.iterdir()
    return made


def test_cleanup_removes_directories_of_dead_processes_alone_and_says_so_as_data(
    killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("stormproof.cli.cleanup.CLEANED_ENVIRONMENTS", ())
    host, pid, start = owner_id().rsplit(":", 2)
    foreign = [tmp_path / "stormproof-notes", tmp_path / f"stormproof-another-{host}+{pid}+{start}-0123456789abcdef"]
    for directory in foreign:
        directory.mkdir()
    with scratch.directory() as mine:
        assert run(["cleanup", "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed == {
            "removed": [{"kind": "directory", "name": str(killed)}],
            "brought_home": [],
            "spared": [],
            "failed": [],
            "not_looked_at": [],
            "exit_code": 0,
        }
        assert sorted(tmp_path.iterdir()) == sorted([mine, *foreign])
        assert run(["cleanup"]) == 0
        assert capsys.readouterr().out == "nothing was left behind\n"
    assert not mine.exists()


def test_what_cannot_be_removed_is_reported_and_is_255(
    killed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("stormproof.cli.cleanup.CLEANED_ENVIRONMENTS", ())
    monkeypatch.setattr("shutil.rmtree", lambda path, ignore_errors: None)
    assert run(["cleanup"]) == 255
    assert capsys.readouterr().out.startswith(f"FAILED    directory {killed}: not all of it could be removed")


def test_an_engine_that_does_not_answer_is_reported_and_is_255(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert run(["cleanup", "--json"]) == 255
    (printed,) = json.loads(capsys.readouterr().out)["not_looked_at"]
    assert printed["environment"] == "docker" and printed["reason"].startswith("no Docker engine answers")


def test_where_no_engine_is_none_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr("harness.environments.docker.leftovers.LOCAL_SOCKET", tmp_path / "docker.sock")
    assert run(["cleanup"]) == 0
    assert capsys.readouterr().out == "nothing was left behind\n"


def test_temporary_directories_are_made_in_one_place_alone() -> None:
    """Others would have no owner, and stay after a kill."""
    root = Path(__file__).resolve().parents[4]
    packages = ("harness", "nemesis", "workloads", "checkers", "results", "system_under_test")
    sources = [path for package in packages for path in (root / package).rglob("*.py")]
    makers = [path.name for path in sources if re.search(r"TemporaryDirectory|mkdtemp", path.read_text("utf-8"))]
    assert len(sources) > 100 and makers == []
