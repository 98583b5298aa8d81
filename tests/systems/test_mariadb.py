"""MariaDB in containers, alone and as a Galera cluster: each level keeps what it promises, and no more than that."""

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


def outcome_of(tmp_path: Path, workload: str, time_limit_s: float = 15.0, **settings: Any) -> Outcome:
    scenario = Scenario(
        system="mariadb",
        workload=workload,
        environment="docker",
        time_limit_s=time_limit_s,
        recovery_s=2.0,
        seed=1,
        settings=settings,
    )
    return run_scenario(scenario, runs=tmp_path, options=HERE)


@pytest.mark.thorough
@pytest.mark.parametrize("workload", ["list-append", "rw-register", "bank", "long-fork"])
@pytest.mark.parametrize(
    "settings",
    [
        {"isolation": "serializable"},
        {},
        {"snapshot_isolation": True},
        {"isolation": "read-committed"},
        {"isolation": "read-uncommitted"},
        {"deployment": "galera"},
    ],
    ids=["serializable", "repeatable read", "snapshots", "read committed", "read uncommitted", "Galera"],
)
def test_each_level_keeps_what_its_vendor_promises(tmp_path: Path, workload: str, settings: dict[str, Any]) -> None:
    outcome = outcome_of(tmp_path, workload, **settings)
    assert outcome.verdict is Verdict.VALID, outcome.words()


@pytest.mark.thorough
def test_repeatable_read_is_no_snapshot_isolation(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "list-append", model="snapshot-isolation")
    assert outcome.verdict is Verdict.INVALID, outcome.words()
    assert "G-single-item" in outcome.words()


@pytest.mark.thorough
@pytest.mark.parametrize(("snapshot_isolation", "verdict"), [(False, Verdict.INVALID), (True, Verdict.VALID)])
def test_innodb_snapshot_isolation_keeps_money(tmp_path: Path, snapshot_isolation: bool, verdict: Verdict) -> None:
    outcome = outcome_of(tmp_path, "bank", strict=True, snapshot_isolation=snapshot_isolation)
    assert outcome.verdict is verdict, outcome.words()


@pytest.mark.thorough
def test_a_healthy_galera_cluster_is_no_snapshot_isolation(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "list-append", 30.0, deployment="galera", model="snapshot-isolation")
    assert outcome.verdict is Verdict.INVALID, outcome.words()
    assert "G-single-item" in outcome.words()


@pytest.mark.thorough
@pytest.mark.parametrize(("flush", "verdict"), [(0, Verdict.INVALID), (1, Verdict.VALID)])
def test_a_galera_cluster_whose_servers_are_all_killed_keeps_the_commits_that_were_flushed(
    tmp_path: Path, flush: int, verdict: Verdict
) -> None:
    scenario = Scenario(
        system="mariadb",
        workload="set",
        nemesis=("kill all every 16 for 2",),
        environment="docker",
        rate=150.0,
        time_limit_s=34.0,
        recovery_s=5.0,
        seed=1,
        settings={"deployment": "galera", "flush_log_at_trx_commit": flush, "strict": True},
    )
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is verdict, outcome.words()
    assert flush or "lost" in outcome.words()


@pytest.mark.thorough
@pytest.mark.parametrize(("sync_wait", "verdict"), [(False, Verdict.INVALID), (True, Verdict.VALID)])
def test_reads_in_a_healthy_galera_cluster_are_stale_unless_they_wait(
    tmp_path: Path, sync_wait: bool, verdict: Verdict
) -> None:
    scenario = Scenario(
        system="mariadb",
        workload="set",
        environment="docker",
        rate=400.0,
        concurrency=20,
        time_limit_s=12.0,
        recovery_s=5.0,
        seed=1,
        settings={
            "deployment": "galera",
            "sync_wait": sync_wait,
            "sets": 2,
            "read_share": 0.5,
            "reads": "current",
            "strict": True,
        },
    )
    outcome = run_scenario(scenario, runs=tmp_path, options=HERE)
    assert outcome.verdict is verdict, outcome.words()
