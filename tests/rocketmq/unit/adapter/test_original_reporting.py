"""What nodes of a release answer, reported where it changes and where it is certain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.reporting import Account
from system_under_test.rocketmq.client.admin_client import BrokerEpochs, EpochEntry
from system_under_test.rocketmq.controller.protocol import GroupState, ReplicaInfo, ReplicaState, SyncStateSet
from workloads.systems.rocketmq.original_reporting import OriginalReporting, _Asking
from workloads.systems.rocketmq.roles import newest_master
from workloads.systems.rocketmq.settings import RocketmqSettings


def epochs(*numbers: int) -> BrokerEpochs:
    entries = tuple(EpochEntry(master_epoch=one, start_offset=one * 100, end_offset=one * 100 + 100) for one in numbers)
    return BrokerEpochs(cluster="x", group="broker-a", broker_id=0, entries=entries, confirm_offset=None)


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
    reports.asking._report_broker("b2:10911", True, epochs(1, 2))
    assert reports.named("role") == []
    reports.asking.elected.add(("b2:10911", 2))
    reports.asking._report_broker("b2:10911", True, epochs(1, 2))
    reports.asking._report_broker("b2:10911", True, epochs(1, 2))
    assert [role["master_epoch"] for role in reports.named("role")] == [2]


def test_of_several_who_take_themselves_for_master_the_newest_epoch_counts() -> None:
    answers = [("b1:1", True, epochs(1, 2)), ("b2:1", True, epochs(1, 2, 3)), ("b3:1", False, epochs(1, 2, 3, 4))]
    assert newest_master([*answers, ("b4:1", None, None)]) == "b2:1"
    assert newest_master([("b1:1", False, epochs(1)), ("b2:1", None, None)]) is None


def group_state(master_id: int, address: str, epoch: int, others: Mapping[int, str]) -> GroupState:
    in_sync = [ReplicaState(broker_id=master_id, address=address, is_alive=True)]
    in_sync += [ReplicaState(broker_id=one, address=other, is_alive=True) for one, other in others.items()]
    members = SyncStateSet.of((replica.broker_id for replica in in_sync), epoch)
    info = ReplicaInfo(master_id=master_id, master_address=address, master_epoch=epoch, sync_state_set=members)
    return GroupState(group="broker-a", info=info, in_sync=tuple(in_sync), not_in_sync=())


def test_a_master_that_is_called_0_goes_by_the_id_it_had_before() -> None:
    reports = _Reports()
    reports.asking._report_group("c1", group_state(0, "b1:1", 1, {2: "b2:1"}))
    assert reports.named("elected") == []
    assert "members" not in reports.named("set_agreed")[0]
    reports.asking._report_group("c1", group_state(0, "b2:1", 2, {1: "b1:1"}))
    assert [(one["master"], one["master_epoch"]) for one in reports.named("elected")] == [(2, 2)]
    assert reports.named("set_agreed")[1]["members"] == [1, 2]
    assert [one["broker_id"] for one in reports.named("identity")] == [2, 1]


def test_a_node_that_ran_out_of_its_memory_casts_doubt_on_its_run() -> None:
    reporting = OriginalReporting(RocketmqSettings(release="5.4.0"))
    line = 'Exception in thread "NettyServerNIOSelector" java.lang.OutOfMemoryError: Direct buffer memory'
    said = Account(observed=(), logs={"broker.log": ["started"]}, console=["started", line], wall_at_zero_ns=None)
    logged = Account(observed=(), logs={"broker.log": [line]}, console=(), wall_at_zero_ns=None)
    quiet = Account(observed=(), logs={"broker.log": ["started"]}, console=["started"], wall_at_zero_ns=None)
    assert len(reporting.doubts(said)) == 1
    assert "broker.log: Exception" in reporting.doubts(logged)[0]
    assert reporting.doubts(quiet) == []
