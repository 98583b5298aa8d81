"""Cleaning: what an administrator may make the controllers forget."""

from __future__ import annotations

from dataclasses import replace

import pytest

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.controller import events
from system_under_test.rocketmq.controller.events import (
    BrokerDataCleaned,
    BrokerIdApplied,
    BrokerRegistered,
    MasterElected,
    SyncStateSetAltered,
)
from system_under_test.rocketmq.controller.protocol import BrokerReport, MalformedRequest
from system_under_test.rocketmq.controller.requests import parse_request
from system_under_test.rocketmq.controller.state_machine import (
    CleanBrokerData,
    ControllerStateMachine,
    DesignateMaster,
    Refusal,
)

HISTORY = (
    *(BrokerIdApplied(cluster="c", group="g", broker_id=n, check_code=f"code {n}") for n in (1, 2, 3)),
    *(BrokerRegistered(group="g", broker_id=n, address=f"b{n}:10911", incarnation="i") for n in (1, 2, 3)),
    MasterElected(group="g", master=1),
    SyncStateSetAltered(group="g", members=(1, 2, 3)),
)


class Living:
    def __init__(self, *broker_ids: int) -> None:
        self.broker_ids = broker_ids

    def living(self, group: str, broker_id: int, incarnation: str) -> BrokerReport | None:
        if broker_id not in self.broker_ids:
            return None
        return BrokerReport(cluster="c", group=group, broker_id=broker_id, address="", incarnation=incarnation)

    def is_silent(self, group: str, broker_id: int, incarnation: str) -> bool:
        return self.living(group, broker_id, incarnation) is None

    def may_judge(self, group: str, broker_id: int, incarnation: str) -> bool:
        return True

    def has_reported_since_birth(self, group: str, broker_id: int, newborn: int) -> bool:
        return True


def machine() -> ControllerStateMachine:
    machine = ControllerStateMachine()
    for event in HISTORY:
        machine.apply(events.decode(events.encode(event)))
    return machine


def clean(*broker_ids: int, protects_living: bool = True) -> CleanBrokerData:
    return CleanBrokerData(group="g", broker_ids=broker_ids or None, protects_living=protects_living)


@pytest.mark.parametrize("request_", [clean(1), clean(9), clean()])
def test_replicas_that_live_or_are_unknown_are_not_cleaned(request_):
    decision = machine().evaluate(request_, Living(1, 2), unclean=False)
    assert isinstance(decision, Refusal)
    assert decision.code == ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA


def test_a_dead_replica_is_forgotten_and_its_id_is_never_given_again():
    state = machine()
    decision = state.evaluate(clean(3), Living(1, 2), unclean=False)
    assert decision == BrokerDataCleaned(group="g", broker_ids=(3,))
    group = state.apply(decision)
    assert group is not None
    assert (group.master, group.sync_state_set, group.sync_state_set_epoch) == (1, (1, 2), 3)
    assert state.next_broker_id("g") == 4


def test_a_master_cleaned_by_force_is_master_no_more_and_epochs_do_not_fall():
    state = machine()
    group = state.apply(state.evaluate(clean(1, protects_living=False), Living(1, 2, 3), unclean=False))
    assert group is not None
    assert (group.master, group.master_epoch, group.sync_state_set) == (None, 1, (2, 3))


def test_the_last_member_of_the_set_is_cleaned_by_force_alone_or_with_the_whole_group():
    state = machine()
    state.apply(SyncStateSetAltered(group="g", members=(1,)))
    refusal = state.evaluate(clean(1), Living(2), unclean=False)
    assert isinstance(refusal, Refusal)
    assert "no member of the SyncStateSet would be left" in refusal.remark
    assert isinstance(state.evaluate(clean(1, protects_living=False), Living(2), unclean=False), BrokerDataCleaned)
    assert isinstance(state.evaluate(clean(), Living(), unclean=False), BrokerDataCleaned)
    assert isinstance(state.evaluate(clean(1, 2, 3), Living(), unclean=False), BrokerDataCleaned)
    assert isinstance(state.evaluate(clean(2, 3), Living(), unclean=False), BrokerDataCleaned)


@pytest.mark.parametrize("request_", [clean(3), DesignateMaster(group="g", broker_id=2)])
def test_a_group_of_another_cluster_is_left_alone(request_):
    refusal = machine().evaluate(replace(request_, cluster="other"), Living(1, 2), unclean=False)
    assert isinstance(refusal, Refusal)
    assert refusal.code == ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST
    assert "'other'" in refusal.remark
    assert not isinstance(machine().evaluate(replace(request_, cluster="c"), Living(1, 2), unclean=False), Refusal)


@pytest.mark.parametrize("ids", ["1;x", "1;;2", ";", "1;" + "9" * 5_000, "1;2.0"])
def test_ids_that_are_none_are_refused(ids):
    command = RemotingCommand.request(
        RequestCode.CLEAN_BROKER_DATA, {"brokerName": "g", "brokerControllerIdsToClean": ids}
    )
    with pytest.raises(MalformedRequest, match="expected ids with semicolons"):
        parse_request(command)


def test_the_public_header_is_understood():
    fields = {
        "clusterName": "c",
        "brokerName": "g",
        "brokerControllerIdsToClean": "3; 1",
        "isCleanLivingBroker": "true",
        "invokeTime": "1700000000000",
    }
    assert parse_request(RemotingCommand.request(1011, fields)) == CleanBrokerData(
        group="g", broker_ids=(1, 3), protects_living=False, cluster="c"
    )


def test_a_whole_group_can_be_forgotten():
    state = machine()
    assert state.apply(state.evaluate(clean(), Living(), unclean=False)) is None
    assert state.groups == {}
