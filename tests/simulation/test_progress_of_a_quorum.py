"""A healed quorum makes progress while the rest stays down, and a system that does not is found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.verdict import Verdict
from harness.record.scenario import Scenario, SettingValue
from harness.session.outcome import Outcome
from harness.session.run import run_scenario


def _run(tmp_path: Path, workload: str, **settings: SettingValue) -> Outcome:
    scenario = Scenario(
        system="rocketmq",
        workload=workload,
        nemesis=("partition", "kill"),
        time_limit_s=50.0,
        liveness_s=25.0,
        seed=3,
        settings=settings,
    )
    return run_scenario(scenario, runs=tmp_path, engine="inprocess")


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["log", "register"])
def test_without_its_master_and_its_active_controller_the_rest_goes_on(tmp_path: Path, workload: str) -> None:
    outcome = _run(tmp_path, workload)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert min(outcome.results["liveness"].statistics["succeeded"].values()) > 0


@pytest.mark.slow
def test_a_group_that_learns_of_its_new_master_too_late_makes_no_progress(tmp_path: Path) -> None:
    outcome = _run(tmp_path, "log", notify_role_changed=False, time_scale=40.0)
    assert outcome.verdict is Verdict.INVALID, outcome.words()
    assert outcome.anomalies()["no-progress"]
