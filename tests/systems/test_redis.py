"""Redis under Sentinel, in containers: what its failover loses is found, and told as what its vendor says."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.verdict import Verdict
from harness.record.scenario import Scenario
from harness.session.run import run_scenario

pytestmark = pytest.mark.docker


def _scenario(workload: str, time_limit_s: float, *, nemesis: tuple[str, ...] = (), strict: bool = True) -> Scenario:
    return Scenario(
        system="redis",
        workload=workload,
        nemesis=nemesis,
        environment="docker",
        rate=100.0,
        time_limit_s=time_limit_s,
        recovery_s=5.0,
        seed=1,
        settings={"strict": strict},
    )


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param("set", marks=pytest.mark.thorough),
        pytest.param("register", marks=pytest.mark.thorough),
        pytest.param("list-append", marks=pytest.mark.thorough),
    ],
)
def test_without_faults_it_keeps_what_it_acknowledged(tmp_path: Path, workload: str) -> None:
    outcome = run_scenario(_scenario(workload, 15.0), runs=tmp_path, engine="inprocess")
    assert outcome.verdict is Verdict.VALID, outcome.words()


@pytest.mark.parametrize(
    ("strict", "verdict"),
    [
        pytest.param(True, Verdict.INVALID, marks=pytest.mark.gate),
        pytest.param(False, Verdict.VALID, marks=pytest.mark.thorough),
    ],
)
def test_a_primary_that_is_cut_off_loses_what_it_goes_on_acknowledging(
    tmp_path: Path, strict: bool, verdict: Verdict
) -> None:
    scenario = _scenario("set", 30.0, nemesis=("isolate primary every 28 for 15",), strict=strict)
    outcome = run_scenario(scenario, runs=tmp_path, engine="inprocess")
    assert outcome.verdict is verdict, outcome.words()
    assert "lost" in outcome.words()
