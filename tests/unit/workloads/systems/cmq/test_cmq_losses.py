"""What CMQ may do under faults: it loses nothing, and a new leader gives out what another consumer still holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness.membership import SHRINK, WIPE
from harness.record.fault_log import FaultWindow
from harness.record.node_reports import NoReports
from harness.record.steady_spans import SteadySpan
from harness.system import LegalLoss
from workloads.systems.cmq.adapter import CANNOT_WRITE, SYSTEM
from workloads.systems.cmq.legal_loss import DAMAGE
from workloads.systems.cmq.settings import CmqSettings

SECOND_NS = 1_000_000_000


def struck(kind: str, *nodes: str, at_s: float = 1) -> FaultWindow:
    return FaultWindow(kind=kind, nodes=nodes, start_ns=round(at_s * SECOND_NS), stop_ns=9 * SECOND_NS)


class Elections:
    """`NodeReports` of who led which group from when on."""

    def __init__(self, *leaders: tuple[float, str, str]) -> None:
        self.leaders = leaders

    def of(self, *events: str) -> dict[str, list[Mapping[str, Any]]]:
        assert events == ("leader",)
        found: dict[str, list[Mapping[str, Any]]] = {}
        for at_s, node, group in self.leaders:
            found.setdefault(node, []).append({"time": round(at_s * SECOND_NS), "group": group})
        return found


@pytest.mark.parametrize("kind", ["kill", "power", "partition", "clock", "pause", *CANNOT_WRITE, SHRINK, WIPE])
def test_nothing_is_excused_by_faults_that_take_nothing_that_was_synced(kind: str) -> None:
    assert SYSTEM.legal_loss(CmqSettings(), (struck(kind, "n1", "n2", "n3"),), NoReports()) == LegalLoss()


@pytest.mark.parametrize("kind", DAMAGE)
def test_nothing_is_promised_from_when_a_disk_lost_what_was_synced(kind: str) -> None:
    damaged = (struck("kill", "n1"), struck(kind, "n2", at_s=2.5), struck("bit-rot", "n1", at_s=4))
    loss = SYSTEM.legal_loss(CmqSettings(), damaged, NoReports())
    assert loss.anything == f"{kind} at 2.5 s took what n2 had synced" and loss.anything_from_ns == 2.5 * SECOND_NS
    (written_earlier,) = loss.excuses
    assert written_earlier.anomalies == ("rewritten-log", "diverging-logs") and written_earlier.from_ns == 0
    assert SYSTEM.legal_loss(CmqSettings(strict=True), damaged, NoReports()) == LegalLoss()


def test_a_new_leader_may_give_messages_of_its_group_out_too_early_at_that_moment() -> None:
    reports = Elections((3.2, "n2", "g1"), (0.4, "n1", "g1"), (5.0, "n1", "g3"))
    first, second, other = SYSTEM.legal_loss(CmqSettings(), (), reports).excuses
    assert all(
        one.anomalies == ("redelivered-early",) and one.from_ns == one.until_ns for one in (first, second, other)
    )
    assert [one.from_ns / SECOND_NS for one in (first, second, other)] == [0.4, 3.2, 5.0]
    assert second.reason == "n2 led group g1 from 3.2 s on, and did not know who held what"
    assert first.keys == second.keys and set(first.keys).isdisjoint(other.keys)
    assert {*first.keys, *other.keys} == {f"storm/{number}" for number in range(4)}


def test_a_group_without_queues_of_the_workload_excuses_nothing() -> None:
    settings = CmqSettings(groups=16, queues=1)
    reports = Elections(*((1.0, "n1", f"g{number}") for number in range(1, 17)))
    (only,) = SYSTEM.legal_loss(settings, (), reports).excuses
    assert only.keys == ("storm/0",)


@pytest.mark.parametrize(
    ("healthy", "reached", "serves"),
    [
        (("n1", "n2", "n3"), {}, True),
        (("n1", "n3"), {}, True),
        (("n1", "n3"), {"n2": frozenset({"n1"})}, False),
        (("n1", "n3"), {"n2": frozenset({"client"})}, True),
        (("n2",), {}, False),
    ],
)
def test_a_majority_has_to_serve_that_nobody_else_reaches(
    healthy: tuple[str, ...], reached: dict[str, frozenset[str]], serves: bool
) -> None:
    span = SteadySpan(from_ns=0, until_ns=1, healthy=frozenset(healthy), down=frozenset(), reached=reached)
    assert SYSTEM.must_serve(CmqSettings(), "queue", span, NoReports()) is serves
