"""PostgreSQL under Patroni: what can be set, what its nodes are, and when the cluster is whole."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import UsageError
from harness.program import Command
from harness.record.fault_log import FaultWindow
from workloads.systems.postgresql.adapter import SYSTEM
from workloads.systems.postgresql.losses import Isolation, Replication
from workloads.systems.postgresql.patroni import is_whole, roles_of
from workloads.systems.postgresql.settings import Deployment, PostgresqlSettings


def under_patroni(**settings: Any) -> PostgresqlSettings:
    return PostgresqlSettings(deployment=Deployment.PATRONI, **settings)


def config_of(settings: PostgresqlSettings) -> str:
    program = SYSTEM.nodes(settings, None)[0].program
    assert isinstance(program, Command)
    return program.files["/etc/start.yml"]


def test_alone_is_one_server_as_before() -> None:
    assert [node.name for node in SYSTEM.nodes(PostgresqlSettings(), None)] == ["p1"]
    assert SYSTEM.cluster(PostgresqlSettings()).groups == ("servers",)


@pytest.mark.parametrize(("members", "etcd_members"), [(2, 1), (3, 1), (2, 3), (3, 3)])
def test_servers_and_the_members_of_etcd_are_nodes_of_their_own_groups(members: int, etcd_members: int) -> None:
    settings = under_patroni(members=members, etcd_members=etcd_members)
    nodes = SYSTEM.nodes(settings, None)
    assert [node.name for node in nodes if node.groups == ("servers",)] == ["p1", "p2", "p3"][:members]
    assert [node.name for node in nodes if node.groups == ("etcd",)] == ["e1", "e2", "e3"][:etcd_members]
    assert f"hosts: {','.join(f'e{n + 1}:2379' for n in range(etcd_members))}\n" in config_of(settings)


@pytest.mark.parametrize(
    ("replication", "mode", "strict_mode"),
    [
        (Replication.ASYNCHRONOUS, "false", "false"),
        (Replication.SYNCHRONOUS, "true", "false"),
        (Replication.STRICTLY_SYNCHRONOUS, "true", "true"),
    ],
)
def test_replication_is_a_mode_of_patroni(replication: Replication, mode: str, strict_mode: str) -> None:
    config = config_of(under_patroni(replication=replication))
    assert f"synchronous_mode: {mode}\n" in config and f"synchronous_mode_strict: {strict_mode}\n" in config


def test_patroni_runs_by_the_true_clock_since_a_faked_one_breaks_its_sleep() -> None:
    program = SYSTEM.nodes(under_patroni(), None)[0].program
    assert isinstance(program, Command)
    assert "env -u LD_PRELOAD setpriv --reuid=postgres" in program.argv[-1]


def test_two_members_of_etcd_are_refused() -> None:
    with pytest.raises(UsageError, match=r"etcd_members takes 1 or 3.*got 2"):
        under_patroni(etcd_members=2)


def test_synchronous_replication_needs_somebody_who_replicates() -> None:
    with pytest.raises(UsageError, match="set deployment=patroni"):
        PostgresqlSettings(replication=Replication.SYNCHRONOUS)


def member(role: str, name: str, *, state: str = "running", timeline: int = 1) -> dict[str, Any]:
    return {"role": role, "name": name, "state": state, "timeline": timeline}


def test_roles_are_those_that_etcd_has() -> None:
    known = [member("replica", "p1"), member("leader", "p2"), member("sync_standby", "p3")]
    assert roles_of(known) == {"primary": ("p2",), "replica": ("p1", "p3")}
    assert roles_of([]) == {}


@pytest.mark.parametrize(
    ("members", "whole"),
    [
        ([member("leader", "p1"), member("sync_standby", "p2")], True),
        ([member("leader", "p1"), member("replica", "p2")], False),
        ([member("leader", "p1"), member("sync_standby", "p2", timeline=2)], False),
        ([member("leader", "p1"), member("sync_standby", "p2", state="starting")], False),
        ([member("replica", "p1"), member("sync_standby", "p2")], False),
        ([member("leader", "p1")], False),
        ([], False),
    ],
)
def test_a_cluster_is_whole_once_all_run_on_the_leaders_timeline(members: list[dict[str, Any]], whole: bool) -> None:
    assert is_whole(members, servers=2, synchronous=True) is whole


def legal(kind: str, **settings: Any) -> dict[str, tuple[str, ...]]:
    struck = (FaultWindow(kind=kind, nodes=("p1",), start_ns=0, stop_ns=1),)
    return dict(SYSTEM.legal_loss(under_patroni(**settings), struck, None).in_workloads)


@pytest.mark.parametrize("kind", ["partition", "kill", "pause", "power"])
def test_a_failover_may_lose_commits_in_asynchronous_mode_alone(kind: str) -> None:
    assert "incompatible-order" in legal(kind)["list-append"]
    assert "bank" not in legal(kind), "whole transactions are lost, and no money"
    assert legal(kind, replication=Replication.SYNCHRONOUS) == {}
    assert legal(kind, replication=Replication.STRICTLY_SYNCHRONOUS) == {}


def test_what_does_not_wait_for_the_standby_may_be_lost_in_synchronous_mode_too() -> None:
    assert "list-append" in legal("partition", replication=Replication.SYNCHRONOUS, synchronous_commit=False)


def test_clocks_bring_no_failover() -> None:
    assert legal("clock") == {}


def test_judged_strictly_nothing_may_be_lost() -> None:
    assert legal("partition", strict=True) == {}


def test_read_committed_allows_under_patroni_what_it_allows_alone() -> None:
    assert "bank" in legal("partition", replication=Replication.SYNCHRONOUS, isolation=Isolation.READ_COMMITTED)
