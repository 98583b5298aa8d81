"""A verdict that was reached is not hidden by what fails beside it; a harness that fails before it is 255."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.environments.simulated.kind import SIMULATED
from harness.errors import HarnessError
from stormproof.session import outcome, registry
from tests.command_line.answers import Stormproof

RUN = ["run", "rocketmq", "--nemesis", "kill", "--time-limit", "10", "--recovery", "10", "--seed", "11"]
RUN += ["--engine", "inprocess"]


class LosesItsLogs:
    """The simulator, with a teardown that fails after all was done."""

    faults = SIMULATED.faults
    programs = SIMULATED.programs

    def run(self, main: Any, setting: Any) -> Any:
        SIMULATED.run(main, setting)
        raise HarnessError("the nodes' logs could not be brought home")


class BreaksDown:
    """An environment that ends before anything happened, and then cannot even be tidied up."""

    faults = SIMULATED.faults
    programs = SIMULATED.programs

    def run(self, main: Any, setting: Any) -> Any:
        try:
            raise HarnessError("the engine went away")
        finally:
            raise OSError(28, "No space left on device", "nodes/b1/node.log")


def test_a_teardown_that_fails_is_reported_beside_the_verdict(
    stormproof: Stormproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "environment_of", lambda scenario, parts: LosesItsLogs())
    answer = stormproof(*RUN)
    assert answer.code == 0
    assert "verdict   VALID" in answer.out
    assert answer.err == "stormproof: the harness failed: the nodes' logs could not be brought home\n"


def test_the_first_failure_is_reported_and_no_verdict_is_made_up(
    stormproof: Stormproof, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "environment_of", lambda scenario, parts: BreaksDown())
    answer = stormproof(*RUN)
    assert answer.code == 255
    assert answer.err == "stormproof: the engine went away\n"
    again = stormproof("check", "runs/latest", "--engine", "inprocess")
    assert again.code == 2
    assert "the harness failed: the engine went away" in again.out


def test_a_report_that_cannot_be_drawn_is_reported_beside_the_verdict(
    stormproof: Stormproof, monkeypatch: pytest.MonkeyPatch, stored_run: Path
) -> None:
    monkeypatch.setattr(outcome, "write_report", lambda directory: "the report could not be written: no ink")
    answer = stormproof("check", stored_run, "--engine", "inprocess", "--progress")
    assert answer.code == 0
    assert "stormproof: the report could not be written: no ink" in answer.err
    assert "s  the report could not be written: no ink" in answer.err


def test_a_verdict_that_cannot_be_written_is_still_the_exit_code(
    stormproof: Stormproof, monkeypatch: pytest.MonkeyPatch, stored_run: Path
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(outcome, "write_verdict", full)
    answer = stormproof("check", stored_run, "--engine", "inprocess")
    assert answer.code == 0
    assert "verdict   VALID" in answer.out
    assert f"the verdict could not be written to {stored_run}: No space left on device" in answer.err
