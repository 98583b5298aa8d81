"""What Redis may lose: nothing without a fault, never what no failover explains, alone no more than its disk may."""

from __future__ import annotations

from typing import Any

import pytest

from harness.errors import UsageError
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss
from workloads.systems.redis.adapter import SYSTEM, Deployment, RedisSettings
from workloads.systems.redis.losses import AT_RISK_NS, SECOND_NS, Fsync, of_disk, of_failover

NO_REPORTS: Any = None


def struck(kind: str, *, at_s: int = 60) -> tuple[FaultWindow, ...]:
    start_ns = at_s * SECOND_NS
    return (FaultWindow(kind=kind, nodes=("r1",), start_ns=start_ns, stop_ns=start_ns + 3 * SECOND_NS),)


@pytest.mark.parametrize("windows", [(), struck("clock"), struck("clock+strobe")])
def test_where_no_failover_can_come_of_it_nothing_may_be_lost(windows: tuple[FaultWindow, ...]) -> None:
    assert of_failover(windows) == LegalLoss()


def test_what_an_old_primary_took_may_be_lost_but_nothing_may_be_there_that_was_refused() -> None:
    loss = of_failover(struck("partition"))
    assert "lost" in loss.in_workloads["set"] and "unexpected" not in loss.in_workloads["set"]
    assert "incompatible-order" in loss.in_workloads["list-append"]
    assert not {"G1a", "G1b", "garbage-read", "internal"} & set(loss.in_workloads["list-append"])


@pytest.mark.parametrize("deployment", list(Deployment))
def test_judged_strictly_nothing_is_legal(deployment: Deployment) -> None:
    settings = RedisSettings(strict=True, deployment=deployment, appendfsync=Fsync.NO)
    assert SYSTEM.legal_loss(settings, (*struck("partition"), *struck("power")), NO_REPORTS) == LegalLoss()


@pytest.mark.parametrize(
    ("appendfsync", "kind"),
    [
        (Fsync.ALWAYS, "power"),
        (Fsync.ALWAYS, "kill"),
        (Fsync.EVERYSEC, "partition"),
        (Fsync.EVERYSEC, "pause"),
        (Fsync.NO, "kill"),
    ],
)
def test_alone_nothing_is_legal_that_the_setting_keeps(appendfsync: Fsync, kind: str) -> None:
    assert of_disk(struck(kind), appendfsync) == LegalLoss()


def test_every_second_excuses_what_was_added_seconds_before_the_power_went() -> None:
    (excuse,) = of_disk(struck("power"), Fsync.EVERYSEC).excuses
    assert (excuse.from_ns, excuse.until_ns) == (60 * SECOND_NS - AT_RISK_NS, 63 * SECOND_NS)
    assert excuse.anomalies == ("lost",)


def test_every_second_is_later_where_the_disk_was_slow() -> None:
    (excuse,) = of_disk((*struck("slow-disk", at_s=20), *struck("power")), Fsync.EVERYSEC).excuses
    assert excuse.from_ns == 20 * SECOND_NS - AT_RISK_NS
    (excuse,) = of_disk((*struck("slow-disk", at_s=90), *struck("power")), Fsync.EVERYSEC).excuses
    assert excuse.from_ns == 60 * SECOND_NS - AT_RISK_NS


def test_without_fsync_all_may_go_that_was_added_before_the_power() -> None:
    (excuse,) = of_disk(struck("power"), Fsync.NO).excuses
    assert (excuse.from_ns, excuse.until_ns) == (0, 63 * SECOND_NS)


def test_where_the_only_disk_is_gone_nothing_is_promised() -> None:
    assert of_disk(struck("lost-disk"), Fsync.ALWAYS).anything


def test_a_server_alone_has_no_replicas_to_wait_for() -> None:
    with pytest.raises(UsageError, match="deployment=alone, which has no replicas, got 1"):
        RedisSettings(deployment=Deployment.ALONE, min_replicas_to_write=1)


def test_alone_there_is_one_node_which_is_the_primary() -> None:
    settings = RedisSettings(deployment=Deployment.ALONE)
    assert [node.name for node in SYSTEM.nodes(settings, None)] == ["r1"]
    assert SYSTEM.cluster(settings).groups == ("servers",)
    assert len(SYSTEM.nodes(RedisSettings(), None)) == 6


def test_a_log_is_repaired_before_each_start_unless_it_is_said_otherwise() -> None:
    def start(settings: RedisSettings) -> str:
        return " ".join(getattr(SYSTEM.nodes(settings, None)[0].program, "argv", ()))

    assert "redis-check-aof --fix" in start(RedisSettings())
    assert "redis-check-aof" not in start(RedisSettings(repair=False))
    assert SYSTEM.cluster(RedisSettings(repair=False)).may_panic == ("power",)
    assert SYSTEM.cluster(RedisSettings()).may_panic == ()
