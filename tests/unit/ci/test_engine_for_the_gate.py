"""The gate brings a Docker engine where none answers, says why where it cannot, and ends what it started."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / ".ci" / "engine.py"
NOWHERE = "unix:///nowhere/docker.sock"


@pytest.fixture(scope="module")
def engine() -> ModuleType:
    specification = importlib.util.spec_from_file_location("engine_of_the_gate", PROGRAM)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def dockerd(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process of that name that does nothing."""
    program = tmp_path / "dockerd"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with subprocess.Popen([program, "600"]) as process:
        yield process
        process.kill()


def test_no_engine_at_the_address_that_was_given_is_one_line_and_no_second_engine() -> None:
    ran = subprocess.run(
        [sys.executable, PROGRAM, "start"],
        env={**os.environ, "DOCKER_HOST": NOWHERE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f".ci/engine.py: no Docker engine answers at DOCKER_HOST={NOWHERE}")
    assert ran.stderr.count("\n") == 1


def test_only_root_starts_one(engine: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(engine, "answers", lambda: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(engine.NoEngine, match="only root may start one here"):
        engine.start()


def test_one_that_ends_at_once_is_named_with_its_last_words(engine: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(engine.NoEngine) as raised:
        engine.launch(["sh", "-c", "echo no cgroups here; exit 3"], tmp_path / "log", lambda: False, 20.0)
    assert "sh ended with 3" in str(raised.value) and "no cgroups here" in str(raised.value)


def test_one_that_never_answers_is_waited_for_with_a_bound_and_ended(engine: ModuleType, tmp_path: Path) -> None:
    written = tmp_path / "pid"
    command = ["sh", "-c", f"echo $$ >{written}; echo still thinking; exec sleep 600"]
    with pytest.raises(engine.NoEngine, match=r"did not answer within 1 s(.|\n)*still thinking"):
        engine.launch(command, tmp_path / "log", lambda: False, 1.0)
    assert not Path("/proc", written.read_text().strip()).exists()


def test_one_that_answers_goes_on_and_its_pid_is_known(engine: ModuleType, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    pid = engine.launch(["sh", "-c", f"touch {ready}; exec sleep 600"], tmp_path / "log", ready.exists, 20.0)
    os.kill(pid, 9)
    os.waitpid(pid, 0)


def test_it_ends_what_it_started_and_nothing_that_has_the_number_by_then(
    engine: ModuleType, dockerd: subprocess.Popen[bytes]
) -> None:
    with subprocess.Popen(["sleep", "600"]) as another:
        engine.stop(another.pid)
        assert another.poll() is None
        another.kill()
    engine.stop(dockerd.pid)
    assert dockerd.wait(10) == -15
    engine.stop(dockerd.pid)


def test_what_a_killed_engine_left_is_forgotten_and_what_a_living_one_wrote_is_kept(
    engine: ModuleType, dockerd: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    left = {"gone.pid": "999999999", "another.pid": str(os.getpid()), "torn.pid": "", "living.pid": str(dockerd.pid)}
    for name, text in left.items():
        (tmp_path / name).write_text(text)
    engine.forget_dead_engines(tuple(tmp_path / name for name in (*left, "never-there.pid")))
    assert [path.name for path in tmp_path.glob("*.pid")] == ["living.pid"]
