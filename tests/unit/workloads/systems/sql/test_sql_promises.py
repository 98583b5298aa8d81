"""What PostgreSQL and MariaDB are held to: the vendor's promise of the level, unless a run demands another model."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.transactions.model.lattice import ConsistencyModel
from harness.errors import UsageError
from harness.record.fault_log import FaultWindow
from harness.record.scenario import Scenario
from harness.system import LegalLoss
from stormproof.session.registry import resolve
from workloads.systems.mariadb.adapter import SYSTEM as MARIADB
from workloads.systems.mariadb.adapter import Deployment, MariadbSettings
from workloads.systems.postgresql.adapter import SYSTEM as POSTGRESQL
from workloads.systems.postgresql.losses import Isolation, Replication
from workloads.systems.postgresql.settings import Deployment as Servers
from workloads.systems.postgresql.settings import PostgresqlSettings, Reads


def struck(kind: str) -> tuple[FaultWindow, ...]:
    return (FaultWindow(kind=kind, nodes=("p1",), start_ns=0, stop_ns=1),)


def demanded(system: str, workload: str, **settings: Any) -> Any:
    scenario = Scenario(system=system, workload=workload, environment="docker", settings=settings)
    return resolve(scenario).workload_settings


@pytest.mark.parametrize("workload", ["list-append", "rw-register"])
@pytest.mark.parametrize(
    ("system", "settings", "model"),
    [
        ("postgresql", {}, "serializable"),
        ("postgresql", {"isolation": "repeatable-read"}, "snapshot-isolation"),
        ("postgresql", {"isolation": "read-committed"}, "read-committed"),
        ("mariadb", {"isolation": "serializable"}, "serializable"),
        ("mariadb", {}, "PL-2"),
        ("mariadb", {"snapshot_isolation": True}, "snapshot-isolation"),
        ("mariadb", {"isolation": "read-committed"}, "read-committed"),
        ("mariadb", {"isolation": "read-uncommitted"}, "read-uncommitted"),
        ("mariadb", {"deployment": "galera", "snapshot_isolation": True}, "PL-2"),
    ],
)
def test_a_level_is_held_to_what_its_vendor_promises(
    system: str, workload: str, settings: dict[str, Any], model: str
) -> None:
    assert demanded(system, workload, **settings).model is ConsistencyModel(model)


def test_a_run_may_demand_another_model_and_other_keys() -> None:
    settings = demanded("postgresql", "list-append", model="strict-serializable", keys=3)
    assert settings.model is ConsistencyModel.STRICT_SERIALIZABLE and settings.keys == 3


def test_an_unknown_level_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="isolation takes one of serializable, repeatable-read, read-committed, got"):
        demanded("postgresql", "bank", isolation="snapshot")


@pytest.mark.parametrize(
    ("system", "settings"),
    [
        (POSTGRESQL, PostgresqlSettings()),
        (POSTGRESQL, PostgresqlSettings(isolation=Isolation.REPEATABLE_READ)),
        (MARIADB, MariadbSettings(snapshot_isolation=True)),
    ],
)
def test_from_snapshots_on_money_is_kept_and_writes_are_seen_in_one_order(system: Any, settings: Any) -> None:
    assert system.legal_loss(settings, (), None) == LegalLoss()
    assert system.legal_loss(settings, struck("kill"), None) == LegalLoss()


@pytest.mark.parametrize(
    ("system", "settings"),
    [(POSTGRESQL, PostgresqlSettings(isolation=Isolation.READ_COMMITTED)), (MARIADB, MariadbSettings())],
)
def test_below_snapshots_money_may_be_lost_to_overwritten_balances_and_nothing_else(system: Any, settings: Any) -> None:
    loss = system.legal_loss(settings, (), None)
    assert loss.in_workloads == {"bank": ("wrong-total", "negative-balance"), "long-fork": ("long-fork",)}
    assert "page" in loss.reason


def test_only_where_uncommitted_writes_are_read_may_one_be_seen_that_failed() -> None:
    settings = demanded_settings(isolation="read-uncommitted")
    assert "aborted-read" in MARIADB.legal_loss(settings, (), None).in_workloads["long-fork"]


def demanded_settings(**settings: Any) -> Any:
    scenario = Scenario(system="mariadb", workload="bank", environment="docker", settings=settings)
    return resolve(scenario).system_settings


@pytest.mark.parametrize(
    ("system", "settings", "kind", "legal"),
    [
        (POSTGRESQL, PostgresqlSettings(synchronous_commit=False), "kill", True),
        (POSTGRESQL, PostgresqlSettings(synchronous_commit=False), "pause", False),
        (POSTGRESQL, PostgresqlSettings(), "power", False),
        (MARIADB, MariadbSettings(flush_log_at_trx_commit=0), "kill", True),
        (MARIADB, MariadbSettings(flush_log_at_trx_commit=2), "kill", False),
        (MARIADB, MariadbSettings(flush_log_at_trx_commit=2), "power", True),
        (MARIADB, MariadbSettings(), "power", False),
    ],
)
def test_commits_may_be_lost_only_where_they_were_not_flushed_and_a_fault_takes_what_was_not(
    system: Any, settings: Any, kind: str, legal: bool
) -> None:
    in_lists = system.legal_loss(settings, struck(kind), None).in_workloads.get("list-append", ())
    assert bool(in_lists) is legal
    assert not {"G1a", "G1b", "garbage-read", "internal", "duplicate-elements"} & set(in_lists)


@pytest.mark.parametrize(
    ("system", "settings"),
    [
        (POSTGRESQL, PostgresqlSettings(isolation=Isolation.READ_COMMITTED, synchronous_commit=False, strict=True)),
        (MARIADB, MariadbSettings(flush_log_at_trx_commit=0, strict=True)),
    ],
)
def test_judged_strictly_nothing_is_legal(system: Any, settings: Any) -> None:
    assert system.legal_loss(settings, struck("kill"), None) == LegalLoss()


def crash(*nodes: str, at_s: int, for_s: int = 3, kind: str = "kill") -> FaultWindow:
    return FaultWindow(kind=kind, nodes=nodes, start_ns=at_s * 10**9, stop_ns=(at_s + for_s) * 10**9)


@pytest.mark.parametrize(
    ("crashes", "legal"),
    [
        ((crash("m1", "m2", "m3", at_s=5),), True),
        ((crash("m1", at_s=5), crash("m2", at_s=6), crash("m3", at_s=7)), True),
        ((crash("m1", at_s=5), crash("m2", "m3", at_s=20)), True),
        ((crash("m1", at_s=5), crash("m2", "m3", at_s=200)), False),
        ((crash("m1", "m2", at_s=5), crash("m1", "m2", at_s=20)), False),
    ],
    ids=["all", "in quick succession", "the first is not whole again", "long after", "never the third"],
)
def test_a_cluster_loses_what_was_not_flushed_only_where_nobody_was_left(
    crashes: tuple[FaultWindow, ...], legal: bool
) -> None:
    settings = MariadbSettings(deployment=Deployment.GALERA, flush_log_at_trx_commit=0)
    assert ("list-append" in MARIADB.legal_loss(settings, crashes, None).in_workloads) is legal


def test_a_cluster_that_flushes_each_commit_may_lose_none() -> None:
    settings = MariadbSettings(deployment=Deployment.GALERA)
    loss = MARIADB.legal_loss(settings, (crash("m1", "m2", "m3", at_s=5, kind="power"),), None)
    assert "list-append" not in loss.in_workloads


@pytest.mark.parametrize(
    ("settings", "legal"),
    [
        (MariadbSettings(deployment=Deployment.GALERA), True),
        (MariadbSettings(deployment=Deployment.GALERA, sync_wait=True), False),
        (MariadbSettings(), False),
    ],
)
def test_a_set_may_be_stale_where_reads_do_not_wait_for_other_members(settings: MariadbSettings, legal: bool) -> None:
    assert ("set" in MARIADB.legal_loss(settings, (), None).in_workloads) is legal


def test_where_standbys_answer_reads_snapshots_are_promised_and_they_may_be_behind() -> None:
    settings = PostgresqlSettings(deployment=Servers.PATRONI, reads_at=Reads.STANDBY)
    assert POSTGRESQL.advised(settings, "list-append")["model"] == "snapshot-isolation"
    assert POSTGRESQL.legal_loss(settings, (), None).in_workloads == {"set": ("stale",)}


def test_a_commit_that_was_given_up_may_be_lost_in_a_failover_and_not_otherwise() -> None:
    patient, impatient = (
        PostgresqlSettings(deployment=Servers.PATRONI, replication=Replication.SYNCHRONOUS, cancels=cancels)
        for cancels in (False, True)
    )
    assert "lost" in POSTGRESQL.legal_loss(impatient, struck("kill"), None).in_workloads["set"]
    assert POSTGRESQL.legal_loss(impatient, (), None) == LegalLoss()
    assert POSTGRESQL.legal_loss(patient, struck("kill"), None) == LegalLoss()


def test_settings_without_the_servers_that_they_are_about_are_refused() -> None:
    for refused in (
        lambda: PostgresqlSettings(reads_at=Reads.STANDBY),
        lambda: PostgresqlSettings(deployment=Servers.PATRONI, cancels=True),
        lambda: demanded_settings(reads_at="replica"),
    ):
        with pytest.raises(UsageError, match="as well"):
            refused()


def test_replicas_of_mariadb_follow_one_primary_and_may_be_behind_it() -> None:
    settings = demanded_settings(deployment="replicas", reads_at="replica")
    programs: list[Any] = [node.program for node in MARIADB.nodes(settings, None)]
    assert ["/etc/follow.sql" in program.files for program in programs] == [False, True, True]
    assert MARIADB.legal_loss(settings, (), None).in_workloads["set"] == ("stale",)
