"""The command as a user meets it, with a real system, real files and real processes behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormproof.cli import main
from tests.command_line.answers import Answer, Stormproof


@pytest.fixture
def stormproof(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Stormproof:
    """Carry a command line out in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STORMPROOF_DEBUG", "")  # so that what --debug sets is taken back afterwards
    monkeypatch.delenv("STORMPROOF_DEBUG")
    capsys.readouterr()

    def run(*arguments: str | Path) -> Answer:
        code = main.run([str(argument) for argument in arguments])
        return Answer(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def stored_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a valid run of the log workload, with kills."""
    runs = tmp_path_factory.mktemp("stored")
    short = ["--nemesis", "kill", "--time-limit", "10", "--recovery", "10", "--seed", "11"]
    assert main.run(["run", "rocketmq", *short, "--engine", "inprocess", "--runs", str(runs)]) == 0
    return (runs / "latest").resolve()
