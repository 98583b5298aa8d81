"""Planted bugs of the controller and the NameServer do the wrong thing where the healthy part does the right one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from system_under_test.remoting.codes import ResponseCode
from system_under_test.rocketmq.broker.parts import Acted, BrokerParts
from system_under_test.rocketmq.controller.events import (
    BrokerIdApplied,
    BrokerRegistered,
    Event,
    MasterElected,
    SyncStateSetAltered,
)
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.protocol import BrokerReport, SyncStateSet
from system_under_test.rocketmq.controller.state_machine import (
    AlterSyncStateSet,
    ApplyBrokerId,
    ControllerStateMachine,
    Decision,
    Group,
    Nothing,
    Refusal,
    ReplaceDeadMaster,
)
from system_under_test.rocketmq.mutants import mutant, mutant_names

JOINED = (
    *(BrokerIdApplied(cluster="c", group="g", broker_id=n, check_code=f"code {n}") for n in (1, 2, 3)),
    *(BrokerRegistered(group="g", broker_id=n, address=f"b{n}:10911", incarnation="i") for n in (1, 2, 3)),
    MasterElected(group="g", master=1),
)
WHOLE = (*JOINED, SyncStateSetAltered(group="g", members=(1, 2, 3)))
"""Master 1 in epoch 1, set 1 2 3 in epoch 2."""


class Living:
    """Those who live, by id, with what they report: offset 100 unless it is given."""

    def __init__(self, *broker_ids: int, learners: tuple[int, ...] = (), offsets: dict[int, int] | None = None) -> None:
        self._broker_ids = broker_ids
        self._learners = learners
        self._offsets = offsets or {}

    def living(self, group: str, broker_id: int, incarnation: str) -> BrokerReport | None:
        if broker_id not in self._broker_ids:
            return None
        return BrokerReport(
            cluster="c",
            group=group,
            broker_id=broker_id,
            address="",
            incarnation=incarnation,
            max_offset=self._offsets.get(broker_id, 100),
            is_learner=broker_id in self._learners,
        )

    def has_reported_since_birth(self, group: str, broker_id: int, newborn: int) -> bool:
        return True


def parts(name: str) -> ControllerParts:
    change = mutant(name).controller
    assert change is not None
    return change(ControllerParts())


def machines(name: str, *history: Event) -> tuple[ControllerStateMachine, ControllerStateMachine]:
    """(healthy, planted) after the same events."""
    healthy, planted = ControllerStateMachine(), ControllerStateMachine(parts(name).rules)
    for event in history:
        healthy.apply(event)
        planted.apply(event)
    return healthy, planted


def alter(*members: int, master: int = 1, master_epoch: int = 1, set_epoch: int = 2) -> AlterSyncStateSet:
    return AlterSyncStateSet(
        group="g", master_id=master, master_epoch=master_epoch, proposed=SyncStateSet.of(members, set_epoch)
    )


def group_of(machine: ControllerStateMachine) -> Group:
    return machine.groups["g"]


def refused(decision: Decision) -> ResponseCode | None:
    return decision.code if isinstance(decision, Refusal) else None


def altered_to(*members: int) -> SyncStateSetAltered:
    return SyncStateSetAltered(group="g", members=members)


@pytest.mark.parametrize("name", [name for name in mutant_names() if mutant(name).controller is not None])
def test_a_planted_bug_changes_a_controllers_parts_and_nothing_else(name):
    assert parts(name) != ControllerParts()
    assert ControllerParts() == ControllerParts(), "the healthy parts are a value"


def test_no_set_epoch_check_lets_an_overtaken_alter_undo_a_newer_one():
    overtaken, living = alter(1, 2, set_epoch=1), Living(1, 2, 3)
    healthy, planted = machines("no-set-epoch-check", *WHOLE)
    assert refused(healthy.evaluate(overtaken, living, unclean=False)) == (
        ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH
    )
    assert planted.evaluate(overtaken, living, unclean=False) == altered_to(1, 2)


def test_no_master_epoch_check_lets_a_deposed_master_alter_the_set():
    deposed, living = alter(1, 2), Living(1, 2, 3)
    healthy, planted = machines("no-master-epoch-check", *WHOLE, MasterElected(group="g", master=2))
    assert refused(healthy.evaluate(deposed, living, unclean=False)) == ResponseCode.CONTROLLER_INVALID_MASTER
    assert planted.evaluate(deposed, living, unclean=False) == altered_to(1, 2)


def test_no_master_epoch_check_fences_within_the_current_epoch():
    _, planted = machines("no-master-epoch-check", *WHOLE)
    living = Living(1, 2, 3)
    assert refused(planted.evaluate(alter(2, 3, master=2), living, unclean=False)) is not None
    assert refused(planted.evaluate(alter(1, 2, set_epoch=1), living, unclean=False)) is not None
    assert planted.evaluate(alter(1, 2), living, unclean=False) == altered_to(1, 2)


def test_alter_without_liveness_admits_the_dead_and_not_the_unknown():
    healthy, planted = machines("alter-without-liveness", *JOINED)
    joining = alter(1, 2, set_epoch=1)
    assert refused(healthy.evaluate(joining, Living(1), unclean=False)) == ResponseCode.CONTROLLER_BROKER_NOT_ALIVE
    assert planted.evaluate(joining, Living(1), unclean=False) == altered_to(1, 2)
    unknown = planted.evaluate(alter(1, 9, set_epoch=1), Living(1), unclean=False)
    assert refused(unknown) == ResponseCode.CONTROLLER_INVALID_REPLICAS


def test_no_epoch_bump_gives_two_masters_one_epoch():
    healthy, planted = machines("no-epoch-bump", *WHOLE, MasterElected(group="g", master=2))
    assert (group_of(healthy).master, group_of(healthy).master_epoch) == (2, 2)
    assert (group_of(planted).master, group_of(planted).master_epoch) == (2, 1)
    planted.apply(MasterElected(group="g", master=2))
    assert group_of(planted).master_epoch == 2, "a master that gave up is elected under a new one"


def test_no_epoch_bump_lets_brokers_act_on_another_master_of_the_epoch_they_know():
    change = mutant("no-epoch-bump").broker
    assert change is not None
    healthy, planted = BrokerParts(), change(BrokerParts())
    _, machine = machines("no-epoch-bump", *WHOLE)
    first = group_of(machine).info
    machine.apply(MasterElected(group="g", master=2))
    second, acted = group_of(machine).info, Acted(1, 1)
    assert not healthy.role_is_due(acted, second, True)
    assert planted.role_is_due(acted, second, True)
    assert not planted.role_is_due(acted, first, True)
    assert planted.supersedes(second, first) and not healthy.supersedes(second, first)


def test_learner_elected_elects_a_learner_where_nobody_else_lives():
    history = (*WHOLE[:-1], SyncStateSetAltered(group="g", members=(1, 2)))
    healthy, planted = machines("learner-elected", *history)
    living = Living(3, learners=(3,))
    nobody = MasterElected(group="g", master=None)
    assert healthy.evaluate(ReplaceDeadMaster(group="g"), living, unclean=True) == nobody
    assert planted.evaluate(ReplaceDeadMaster(group="g"), living, unclean=True) == replace(nobody, master=3)
    assert planted.evaluate(ReplaceDeadMaster(group="g"), living, unclean=False) == nobody


def test_unclean_though_clean_lives_elects_an_outsider_that_looks_as_good_as_a_member():
    history = (*JOINED, SyncStateSetAltered(group="g", members=(1, 3)))
    healthy, planted = machines("unclean-though-clean-lives", *history)
    living = Living(2, 3)
    clean = MasterElected(group="g", master=3)
    assert healthy.evaluate(ReplaceDeadMaster(group="g"), living, unclean=True) == clean
    assert planted.evaluate(ReplaceDeadMaster(group="g"), living, unclean=True) == replace(clean, master=2)
    assert planted.evaluate(ReplaceDeadMaster(group="g"), living, unclean=False) == clean


def test_id_without_check_code_gives_one_id_to_two_brokers_once_the_group_stands():
    first = BrokerIdApplied(cluster="c", group="g", broker_id=4, check_code="one")
    second = ApplyBrokerId(cluster="c", group="g", broker_id=4, check_code="another")
    healthy, planted = machines("id-without-check-code", *WHOLE, first)
    assert refused(healthy.evaluate(second, Living(1), unclean=False)) == ResponseCode.CONTROLLER_BROKER_ID_INVALID
    assert planted.evaluate(second, Living(1), unclean=False) == Nothing()
    _, forming = machines("id-without-check-code", *JOINED, first)
    assert refused(forming.evaluate(second, Living(1), unclean=False)) == ResponseCode.CONTROLLER_BROKER_ID_INVALID
