"""A quorum makes progress while the rest stays down or cut off, and a system that does not is found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario, SettingValue
from stormproof.search.storm import blown_and_judged
from stormproof.session import registry
from stormproof.session.engines import HERE
from stormproof.session.outcome import Outcome
from stormproof.session.run import run_scenario


def _run(tmp_path: Path, workload: str, **settings: SettingValue) -> Outcome:
    scenario = Scenario(
        system="rocketmq",
        workload=workload,
        nemesis=("partition", "kill"),
        rate=40.0,
        time_limit_s=50.0,
        liveness_s=25.0,
        seed=3,
        settings=settings,
    )
    return run_scenario(scenario, runs=tmp_path, options=HERE)


@pytest.mark.slow
@pytest.mark.parametrize("workload", ["log", pytest.param("register", marks=pytest.mark.gate)])
def test_without_its_master_and_its_active_controller_the_rest_goes_on(tmp_path: Path, workload: str) -> None:
    outcome = _run(tmp_path, workload)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert min(outcome.results["liveness"].statistics["succeeded"].values()) > 0


@pytest.mark.slow
def test_a_group_that_learns_of_its_new_master_too_late_makes_no_progress(tmp_path: Path) -> None:
    outcome = _run(tmp_path, "log", notify_role_changed=False, time_scale=40.0)
    assert outcome.verdict is Verdict.INVALID, outcome.words()
    assert outcome.anomalies()["no-progress"]


@pytest.mark.parametrize("mutant", [None, "newcomer-blocks-shrink"])
def test_while_a_newcomer_is_not_heard_and_a_member_is_dead_the_others_serve(mutant: str | None) -> None:
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        mutant=mutant,
        settings={"brokers": 4, "time_scale": 0.1},
        schedule=(
            "2 for 20 cut link active-controller to b4 [links 0]",
            "4 for 3 pause b4 [pause 0]",
            "9 for 13 kill b1 [kill 0]",
        ),
        rate=20,
        time_limit_s=22,
        seed=4,
    )
    storm = blown_and_judged(scenario, registry.resolve(scenario))
    assert storm.results["progress"].statistics["demanded_s"] > 12
    assert ("no-progress" in storm.anomalies) is (mutant is not None)
    assert storm.verdict is (Verdict.VALID if mutant is None else Verdict.INVALID)
