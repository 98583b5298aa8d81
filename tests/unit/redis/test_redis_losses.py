"""What Redis may lose: nothing without a fault, and never what no failover explains."""

from __future__ import annotations

import pytest

from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss
from workloads.systems.redis.adapter import SYSTEM, RedisSettings
from workloads.systems.redis.losses import legal_loss


def struck(kind: str) -> tuple[FaultWindow, ...]:
    return (FaultWindow(kind=kind, nodes=("r1",), start_ns=0, stop_ns=1),)


@pytest.mark.parametrize("windows", [(), struck("clock"), struck("clock+strobe")])
def test_where_no_failover_can_come_of_it_nothing_may_be_lost(windows: tuple[FaultWindow, ...]) -> None:
    assert legal_loss(windows) == LegalLoss()


def test_what_an_old_primary_took_may_be_lost_but_nothing_may_be_there_that_was_refused() -> None:
    loss = legal_loss(struck("partition"))
    assert "lost" in loss.in_workloads["set"] and "unexpected" not in loss.in_workloads["set"]
    assert "incompatible-order" in loss.in_workloads["list-append"]
    assert not {"G1a", "G1b", "garbage-read", "internal"} & set(loss.in_workloads["list-append"])


def test_judged_strictly_nothing_is_legal() -> None:
    assert SYSTEM.legal_loss(RedisSettings(strict=True), struck("partition"), None) == LegalLoss()
