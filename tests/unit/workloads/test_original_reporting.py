"""What nodes of a release answer, reported where it changes and where it is certain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from system_under_test.rocketmq.client.admin_client import BrokerEpochs, EpochEntry
from workloads.systems.rocketmq.original_reporting import _Asking
from workloads.systems.rocketmq.roles import newest_master
from workloads.systems.rocketmq.settings import RocketmqSettings


def epochs(*numbers: int, confirmed: int | None = None) -> BrokerEpochs:
    entries = tuple(EpochEntry(master_epoch=one, start_offset=one * 100, end_offset=one * 100 + 100) for one in numbers)
    return BrokerEpochs(cluster="x", group="broker-a", broker_id=0, entries=entries, confirm_offset=confirmed)


class _Reports:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, Mapping[str, Any]]] = []
        self.asking = _Asking(RocketmqSettings(release="5.4.0"), object(), self.take)

    def take(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        self.events.append((node, event, fields))

    def named(self, name: str) -> list[Mapping[str, Any]]:
        return [fields for _, event, fields in self.events if event == name]


def test_a_broker_that_only_starts_as_master_has_no_role_yet() -> None:
    reports = _Reports()
    reports.asking._report_broker("b2:10911", True, epochs(1, 2, confirmed=150))
    assert reports.named("role") == []
    reports.asking.elected.add(("b2:10911", 2))
    reports.asking._report_broker("b2:10911", True, epochs(1, 2, confirmed=150))
    reports.asking._report_broker("b2:10911", True, epochs(1, 2, confirmed=150))
    assert [role["master_epoch"] for role in reports.named("role")] == [2]


def test_a_confirm_offset_counts_under_the_epoch_that_was_newest_before_and_after() -> None:
    reports = _Reports()
    reports.asking.elected.update({("b2:10911", 2), ("b2:10911", 3)})
    for newest, confirmed in (((1, 2), 150), ((1, 2), 160), ((1, 2, 3), 310), ((1, 2, 3), 320)):
        reports.asking._report_broker("b2:10911", True, epochs(*newest, confirmed=confirmed))
    assert [(one["master_epoch"], one["offset"]) for one in reports.named("confirmed")] == [(2, 150), (3, 310)]


def test_of_several_who_take_themselves_for_master_the_newest_epoch_counts() -> None:
    answers = [("b1:1", True, epochs(1, 2)), ("b2:1", True, epochs(1, 2, 3)), ("b3:1", False, epochs(1, 2, 3, 4))]
    assert newest_master([*answers, ("b4:1", None, None)]) == "b2:1"
    assert newest_master([("b1:1", False, epochs(1)), ("b2:1", None, None)]) is None
