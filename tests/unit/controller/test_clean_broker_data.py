"""Cleaning: what an administrator may make the controllers forget."""

from __future__ import annotations

import pytest

from system_under_test.remoting.codes import ResponseCode
from system_under_test.rocketmq.controller import events
from system_under_test.rocketmq.controller.events import (
    BrokerDataCleaned,
    BrokerIdApplied,
    BrokerRegistered,
    MasterElected,
    SyncStateSetAltered,
)
from system_under_test.rocketmq.controller.protocol import BrokerReport
from system_under_test.rocketmq.controller.state_machine import CleanBrokerData, ControllerStateMachine, Refusal

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


def test_a_whole_group_can_be_forgotten():
    state = machine()
    assert state.apply(state.evaluate(clean(), Living(), unclean=False)) is None
    assert state.groups == {}
