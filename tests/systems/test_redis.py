"""Redis in containers: what its failover and its disk lose is found, and told as what its vendor says."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario, SettingValue
from stormproof.session.engines import HERE
from stormproof.session.run import run_scenario

pytestmark = pytest.mark.docker


def _scenario(
    workload: str, time_limit_s: float, *, nemesis: tuple[str, ...] = (), strict: bool = True, **settings: SettingValue
) -> Scenario:
    return Scenario(
        system="redis",
        workload=workload,
        nemesis=nemesis,
        environment="docker",
        rate=100.0,
        time_limit_s=time_limit_s,
        recovery_s=5.0,
        seed=1,
        settings={"strict": strict, **settings},
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
    outcome = run_scenario(_scenario(workload, 15.0), runs=tmp_path, options=HERE)
    assert outcome.verdict is Verdict.VALID, outcome.words()


@pytest.mark.parametrize(
    ("strict", "verdict"),
    [
        pytest.param(True, Verdict.INVALID, marks=pytest.mark.thorough),
        pytest.param(False, Verdict.VALID, marks=pytest.mark.thorough),
    ],
)
def test_a_primary_that_is_cut_off_loses_what_it_goes_on_acknowledging(
    tmp_path: Path, strict: bool, verdict: Verdict
) -> None:
    scenario = _scenario("set", 30.0, nemesis=("isolate primary every 28 for 15",), strict=strict)
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is verdict, outcome.words()
    assert "lost" in outcome.words()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("appendfsync", "strict", "verdict"),
    [
        ("always", True, Verdict.VALID),
        ("everysec", True, Verdict.INVALID),
        ("everysec", False, Verdict.VALID),
        ("no", True, Verdict.INVALID),
    ],
)
def test_a_loss_of_power_takes_what_the_log_of_writes_had_not_made_durable(
    tmp_path: Path, appendfsync: str, strict: bool, verdict: Verdict
) -> None:
    power = ("power off primary every 12 for 3",)
    scenario = _scenario("set", 30.0, nemesis=power, strict=strict, deployment="alone", appendfsync=appendfsync)
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is verdict, outcome.words()
    assert ("lost" in outcome.words()) == (appendfsync != "always")
