"""Planted bugs of the controller and the NameServer do the wrong thing where the healthy part does the right one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, cast

import pytest

from system_under_test.raft.core import Raft as RaftCore
from system_under_test.raft.core import Role, Timing
from system_under_test.raft.driver import LeadershipLost, NotLeader
from system_under_test.raft.event import Read, Receive, Tick
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import AppendRefused, Entry, HardState, PreVoteReply, VoteReply
from system_under_test.raft.snapshot import NOTHING
from system_under_test.remoting.codes import ResponseCode
from system_under_test.replicated import key_value
from system_under_test.rocketmq.broker.parts import Acted, BrokerParts
from system_under_test.rocketmq.controller.events import (
    BrokerIdApplied,
    BrokerRegistered,
    Event,
    MasterElected,
    SyncStateSetAltered,
)
from system_under_test.rocketmq.controller.heartbeat import LivenessTable, pulse_text
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.protocol import BrokerReport, SyncStateSet
from system_under_test.rocketmq.controller.replicated_state import ReplicatedState, command_entry, event_entry
from system_under_test.rocketmq.controller.state_machine import (
    AlterSyncStateSet,
    ApplyBrokerId,
    ControllerStateMachine,
    Decision,
    GiveUpMastership,
    Group,
    Nothing,
    Refusal,
    ReplaceDeadMaster,
    Rules,
)
from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.rocketmq.nameserver.parts import NameServerParts
from system_under_test.rocketmq.nameserver.registration import Registration
from system_under_test.rocketmq.nameserver.route_table import RouteTable
from tests.rocketmq.mutants.planted_parts import parts_of, planted_in, planted_parts

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

    def is_silent(self, group: str, broker_id: int, incarnation: str) -> bool:
        return self.living(group, broker_id, incarnation) is None

    def may_judge(self, group: str, broker_id: int, incarnation: str) -> bool:
        return True

    def has_reported_since_birth(self, group: str, broker_id: int, newborn: int) -> bool:
        return True


def parts(name: str) -> ControllerParts:
    return planted_parts(ControllerParts, name)


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


@pytest.mark.parametrize("name", planted_in(ControllerParts))
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
    healthy, planted = BrokerParts(), parts_of("no-epoch-bump")
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


class Raft:
    """A leader whose appends come to nothing; it counts them."""

    leader = "c2"

    def __init__(self, *, believes_itself_leader: bool = True) -> None:
        self.believes_itself_leader = believes_itself_leader
        self.entries: list[bytes] = []
        self.barriers = 0

    def propose(self, entry: bytes) -> asyncio.Future[Any]:
        self.entries.append(entry)
        return self._lost()

    def read_barrier(self) -> asyncio.Future[None]:
        self.barriers += 1
        return self._lost()

    def _lost(self) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        future.set_exception(LeadershipLost())
        return future


class Host:
    """All of a host that a proposal needs."""

    def __init__(self) -> None:
        self.clock = self

    async def within(self, seconds: float, awaitable: Awaitable[Any]) -> Any:
        return await awaitable


def proposed(parts: ControllerParts, state: ReplicatedState, entry: bytes, raft: Raft) -> Any:
    async def propose() -> Any:
        return await parts.propose(cast(Any, Host()), cast(Any, raft), state, entry)

    return asyncio.run(propose())


def replicated() -> ReplicatedState:
    state = ReplicatedState(Rules())
    for event in WHOLE:
        state.apply(event_entry(event))
    state.apply(command_entry(key_value.put("key", "old")))
    return state


def test_ignore_append_result_answers_what_was_never_applied_as_though_it_were():
    state, planted = replicated(), parts("ignore-append-result")
    election = event_entry(MasterElected(group="g", master=2))
    with pytest.raises(LeadershipLost):
        proposed(ControllerParts(), state, election, Raft())
    group = proposed(planted, state, election, Raft())
    assert (group.master, group.master_epoch) == (2, 2)
    put = command_entry(key_value.put("key", "new"))
    assert proposed(planted, state, put, Raft()).succeeded
    assert group_of(state.brokers).master == 1 and state.values.get("key") == "old", "nothing was applied"


def test_empty_write_skips_log_answers_a_compare_and_set_that_finds_another_value_from_its_own_state():
    state, planted, raft = replicated(), parts("empty-write-skips-log"), Raft()
    other = command_entry(key_value.compare_and_set("key", "another", "new"))
    with pytest.raises(LeadershipLost):
        proposed(ControllerParts(), state, other, raft)
    assert raft.entries == [other]
    result = proposed(planted, state, other, raft)
    assert (result.succeeded, result.value) == (False, "old")
    assert raft.entries == [other], "not appended a second time"
    with pytest.raises(LeadershipLost):
        proposed(planted, state, command_entry(key_value.compare_and_set("key", "old", "new")), raft)


def test_empty_write_skips_log_asks_nobody_before_it_answers_what_changes_nothing():
    async def answered(parts: ControllerParts, raft: Raft) -> int:
        await parts.unchanged_barrier(cast(Any, raft))
        await parts.values.transaction_barrier(cast(Any, raft))
        return raft.barriers

    with pytest.raises(LeadershipLost):
        asyncio.run(answered(ControllerParts(), Raft()))
    assert asyncio.run(answered(parts("empty-write-skips-log"), Raft())) == 0
    with pytest.raises(NotLeader):
        asyncio.run(answered(parts("empty-write-skips-log"), Raft(believes_itself_leader=False)))


def elected_with_an_uncommitted_log(core: type[RaftCore]) -> RaftCore:
    timing = Timing(heartbeat_ns=1, min_election_timeout_ns=10, quorum_timeout_ns=100)
    raft = core(
        node="c1",
        membership=Membership(voters={"c1": "", "c2": "", "c3": ""}),
        timing=timing,
        hard_state=HardState(1, None),
        snapshot=NOTHING,
        entries=(Entry(1, 1, b"acknowledged by the leader before"),),
        now_ns=0,
        election_timeout_ns=10,
    )
    raft.step(Tick(10), 10)
    raft.step(Receive(PreVoteReply("c2", "c1", 2, True)), 11)
    raft.step(Receive(VoteReply("c2", "c1", 2, True)), 12)
    assert raft.role is Role.LEADER
    return raft


def test_serve_before_noop_reads_while_what_was_acknowledged_is_not_applied():
    def served(core: type[RaftCore]) -> list[int]:
        raft = elected_with_an_uncommitted_log(core)
        raft.step(Read((7,)), 13)
        # A follower whose log is shorter: it knows its leader, and has not got the entry yet.
        effects = raft.step(Receive(AppendRefused("c2", "c1", 2, 1, 1, 0, 0)), 14)
        assert raft.commit == 0
        return effects.reads

    assert served(RaftCore) == []
    assert served(parts("serve-before-noop").raft_core) == [7]


def test_serve_before_noop_takes_itself_for_active_at_once():
    assert not elected_with_an_uncommitted_log(RaftCore).is_active
    assert elected_with_an_uncommitted_log(parts("serve-before-noop").raft_core).is_active


def test_keep_old_set_keeps_members_that_the_new_master_does_not_wait_for():
    healthy, planted = machines("keep-old-set", *WHOLE, MasterElected(group="g", master=2))
    assert group_of(healthy).sync_state_set == (2,)
    assert group_of(planted).sync_state_set == (1, 2, 3)
    announced = group_of(planted).info.sync_state_set
    assert BrokerParts().first_view(2, announced).must_ack == (1, 2, 3)
    assert parts_of("keep-old-set").first_view(2, announced).must_ack == (2,)


def report(max_offset: int, incarnation: str, *, broker_id: int = 1, master_epoch: int = 1) -> BrokerReport:
    return BrokerReport(
        cluster="c",
        group="g",
        broker_id=broker_id,
        address=f"b{broker_id}:10911",
        incarnation=incarnation,
        master_epoch=master_epoch,
        max_offset=max_offset,
    )


def test_offset_never_lowers_ranks_a_broker_by_what_its_former_life_held():
    def noted(parts: ControllerParts, master_epoch: int) -> int:
        liveness = LivenessTable(timeout_ns=10, started_ns=0, noted_report=parts.noted_report)
        for incarnation, offset, epoch in (("1st", 1000, 1), ("2nd", 900, master_epoch)):
            liveness.record(
                report(offset, incarnation, master_epoch=epoch),
                registered="2nd",
                channel=object(),
                seen_pulse=0,
                now_ns=0,
            )
        living = liveness.living("g", 1, "2nd")
        assert living is not None
        return living.max_offset

    assert noted(ControllerParts(), 1) == 900
    assert noted(parts("offset-never-lowers"), 1) == 1000
    assert noted(parts("offset-never-lowers"), 2) == 900, "a newer epoch counts more than any offset"


class Watched:
    """Master 1 and slaves 2 and 3 as one controller hears them; times in seconds, silence of 10 is death."""

    def __init__(self, parts: ControllerParts) -> None:
        self._parts = parts
        self._liveness = LivenessTable(timeout_ns=10, started_ns=0)
        machine = ControllerStateMachine()
        for event in WHOLE:
            machine.apply(event)
        self.group = group_of(machine)

    def heard(self, broker_id: int, at_s: int, pulse: int = 0, incarnation: str = "i") -> int:
        if incarnation != "i":
            replicas = {**self.group.replicas}
            replicas[broker_id] = replace(replicas[broker_id], incarnation=incarnation)
            self.group = replace(self.group, replicas=replicas)
        return self._liveness.record(
            report(100, incarnation, broker_id=broker_id),
            registered=incarnation,
            channel=object(),
            seen_pulse=pulse,
            now_ns=at_s,
        )

    def needs_master(self, at_s: int, leading_since_s: int = 0) -> bool:
        self._liveness.expire(at_s)
        return self._parts.needs_master(self.group, self._liveness, leading_since_s)

    def answer(self) -> int | None:
        return self._parts.registration_answer(self.group, self._liveness).master_id


@pytest.mark.parametrize("name", [None, "dead-master-returned"])
def test_dead_master_returned_is_not_replaced_once_a_broker_was_sent_to_it(name):
    watched = Watched(ControllerParts() if name is None else parts(name))
    pulse = watched.heard(2, 0)
    watched.heard(1, 1, pulse)
    watched.heard(2, 12)
    assert watched.needs_master(12), "nobody has registered since the master was heard of"
    watched.heard(3, 13, incarnation="restarted")
    assert watched.answer() == (1 if name else None)
    assert watched.needs_master(13) is (name is None)


@pytest.mark.parametrize("name", [None, "no-scan-after-switch"])
def test_no_scan_after_switch_leaves_masters_alone_that_died_before_this_leader(name):
    watched = Watched(ControllerParts() if name is None else parts(name))
    watched.heard(1, 5)
    watched.heard(2, 15)
    assert watched.needs_master(16, leading_since_s=4), "it died under this leader"
    assert watched.needs_master(16, leading_since_s=6) is (name is None)


@pytest.mark.parametrize("name", [None, "unheard-is-dead"])
def test_unheard_is_dead_passes_over_who_was_not_heard_of_yet(name):
    rules = (ControllerParts() if name is None else parts(name)).rules
    machine = ControllerStateMachine(rules)
    for event in WHOLE:
        machine.apply(event)
    liveness = LivenessTable(timeout_ns=10, started_ns=0)
    liveness.record(report(900, "i"), registered="i", channel=object(), seen_pulse=0, now_ns=1)
    gives_up = GiveUpMastership(group="g", broker_id=1, master_epoch=1)
    elected = MasterElected(group="g", master=1)
    decided = machine.evaluate(gives_up, liveness, unclean=False)
    assert (refused(decided) if name is None else decided) == (
        ResponseCode.CONTROLLER_ELECT_MASTER_FAILED if name is None else elected
    )
    liveness.expire(11)
    assert machine.evaluate(gives_up, liveness, unclean=False) == elected, "the others are silent"


@pytest.mark.parametrize("name", [None, "pulse-outlives-controller"])
def test_pulse_outlives_controller_takes_a_number_of_another_life_for_one_of_this(name):
    seen = (ControllerParts() if name is None else parts(name)).seen_pulse
    assert seen("this", pulse_text("this", 3)) == 3
    assert seen("this", pulse_text("another", 12)) == (0 if name is None else 12)
    assert seen("this", "") == 0


def test_nameserver_lower_epoch_takes_the_route_back_to_a_deposed_master():
    def master_after(parts: NameServerParts) -> str:
        table = RouteTable(120, parts.outranks)
        for address, master_epoch in (("b1:10911", 1), ("b2:10911", 2), ("b1:10911", 1)):
            table.register(
                Registration(
                    cluster="c",
                    broker_name="g",
                    broker_id=0,
                    address=address,
                    ha_address="",
                    version=DataVersion(state_version=master_epoch),
                    topics={},
                ),
                object(),
                0,
            )
        master = table.master("g")
        assert master is not None
        return master.address

    assert master_after(NameServerParts()) == "b2:10911"
    assert master_after(planted_parts(NameServerParts, "nameserver-lower-epoch")) == "b1:10911"
