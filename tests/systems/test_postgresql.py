"""PostgreSQL in containers, alone and under Patroni: each level keeps what it promises, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.outcome import Outcome
from stormproof.session.run import run_scenario

pytestmark = pytest.mark.docker


def outcome_of(tmp_path: Path, workload: str, *, nemesis: tuple[str, ...] = (), **settings: Any) -> Outcome:
    scenario = Scenario(
        system="postgresql",
        workload=workload,
        nemesis=nemesis,
        environment="docker",
        time_limit_s=40.0 if nemesis else 15.0,
        recovery_s=2.0,
        seed=1,
        settings=settings,
    )
    return run_scenario(scenario, runs=tmp_path, options=HERE)


@pytest.mark.thorough
@pytest.mark.parametrize("workload", ["list-append", "rw-register", "bank", "long-fork"])
@pytest.mark.parametrize("isolation", ["serializable", "repeatable-read", "read-committed"])
def test_each_level_keeps_what_its_vendor_promises(tmp_path: Path, workload: str, isolation: str) -> None:
    outcome = outcome_of(tmp_path, workload, isolation=isolation)
    assert outcome.verdict is Verdict.VALID, outcome.words()


@pytest.mark.gate
def test_repeatable_read_is_snapshot_isolation_and_so_not_serializable(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "list-append", isolation="repeatable-read", model="serializable")
    assert outcome.verdict is Verdict.INVALID, outcome.words()
    assert "G2-item" in outcome.words() and "G-single" not in outcome.words(), "write skew, and nothing worse"


@pytest.mark.thorough
def test_read_committed_loses_updates(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "bank", isolation="read-committed", strict=True)
    assert outcome.verdict is Verdict.INVALID, outcome.words()
    assert "wrong-total" in outcome.words()


@pytest.mark.thorough
def test_killed_again_and_again_it_stays_serializable(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "list-append", nemesis=("kill primary every 10 for 2",))
    assert outcome.verdict is Verdict.VALID, outcome.words()


def under_patroni(tmp_path: Path, replication: str) -> Outcome:
    scenario = Scenario(
        system="postgresql",
        workload="set",
        nemesis=("isolate primary every 34 for 26",),
        environment="docker",
        time_limit_s=60.0,
        recovery_s=5.0,
        seed=1,
        settings={"deployment": "patroni", "replication": replication, "strict": True},
    )
    return run_scenario(scenario, runs=tmp_path, options=HERE)


@pytest.mark.thorough
def test_an_asynchronous_failover_loses_what_the_former_primary_had_alone(tmp_path: Path) -> None:
    outcome = under_patroni(tmp_path, "asynchronous")
    assert outcome.verdict is Verdict.INVALID, outcome.words()
    assert "lost" in outcome.words()


@pytest.mark.thorough
def test_a_synchronous_failover_loses_nothing(tmp_path: Path) -> None:
    outcome = under_patroni(tmp_path, "synchronous")
    assert outcome.verdict is Verdict.VALID, outcome.words()
