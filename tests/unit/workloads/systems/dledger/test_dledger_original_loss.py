"""What a group may lose of which nobody knows who held what."""

from __future__ import annotations

from typing import Any

import pytest

from harness.record.fault_log import FaultWindow
from harness.record.node_events import TableOfReports
from harness.system import LegalLoss
from workloads.systems.dledger.adapter import SYSTEM
from workloads.systems.dledger.settings import DledgerSettings, Store

SECOND = 1_000_000_000


def loss(kind: str, at_s: int = 5, **settings: Any) -> LegalLoss:
    struck = FaultWindow(kind=kind, nodes=("n2",), start_ns=at_s * SECOND, stop_ns=(at_s + 3) * SECOND)
    return SYSTEM.legal_loss(DledgerSettings(release="0.3.1", **settings), (struck,), TableOfReports())


def spans(found: LegalLoss, anomaly: str) -> list[tuple[int, int]]:
    return [(one.from_ns, one.until_ns) for one in found.excuses if anomaly in one.anomalies]


@pytest.mark.parametrize("kind", ["partition", "kill", "pause", "restart-loop", "clock"])
def test_nothing_is_lost_but_with_a_disk(kind: str) -> None:
    assert loss(kind) == LegalLoss()


def test_a_loss_of_power_takes_what_was_written_just_before() -> None:
    ((begin, end),) = spans(loss("power"), "lost-write")
    assert 4 * SECOND <= begin < 5 * SECOND < end <= 6 * SECOND
    assert spans(loss("power"), "two-leaders") == []
    assert loss("power").anything == ""


@pytest.mark.parametrize("kind", ["kill", "power", "restart-loop"])
def test_a_store_in_memory_is_lost_with_its_process(kind: str) -> None:
    ((begin, end),) = spans(loss(kind, store=Store.MEMORY), "lost-write")
    assert begin == 0
    assert 5 * SECOND < end <= 6 * SECOND
    assert loss("partition", store=Store.MEMORY) == LegalLoss()


@pytest.mark.parametrize("kind", ["lost-disk", "old-disk", "bit-rot", "short-files"])
def test_nothing_is_promised_once_a_disk_lost_what_was_synced(kind: str) -> None:
    found = loss(kind)
    assert kind in found.anything
    assert found.anything_from_ns == 5 * SECOND
    assert spans(found, "lost-write")[0][0] == 0


def test_strictly_nothing_is_lost() -> None:
    assert loss("lost-disk", strict=True) == LegalLoss()
