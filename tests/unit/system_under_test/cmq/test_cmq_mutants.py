"""Each planted bug of CMQ does the wrong thing where the healthy part does the right one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from harness.environments.simulated.regime import Regime
from system_under_test.cmq import mutants, wire
from system_under_test.cmq.entry import Ack, Create, Produce, encode
from system_under_test.cmq.parts import CmqParts
from system_under_test.cmq.snapshot import files as files_of
from system_under_test.cmq.state_machine import QueueGroupState
from system_under_test.cmq.wire import Code
from system_under_test.node.mutant import find_mutant, mutant_names
from system_under_test.raft.core import Raft
from system_under_test.raft.event import ChangeMembership, Persisted, Receive, Tick
from system_under_test.raft.membership import AddLearner, Membership
from system_under_test.raft.message import Append, Entry, HardState
from system_under_test.raft.snapshot import Snapshot
from system_under_test.storage.errors import StorageCorrupt
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.cmq.cmq_cluster import NODES, Cluster, play
from tests.unit.system_under_test.cmq.message_machine import (
    MessageMachine,
)
from tests.unit.system_under_test.raft.raft_stage import SECOND, TIMING, entries

SLOW = dataclasses.replace(Regime.calm(), fsync_ms=100.0)


def parts_of(mutant: str | None) -> CmqParts:
    return CmqParts() if mutant is None else find_mutant(mutants, mutant).parts_of(CmqParts)


# Raft's core


def follower(parts: CmqParts, log: str, snapshot: Snapshot | None = None, voters: str = "abc") -> Raft:
    return parts.raft_core(
        node="b",
        membership=Membership(voters=dict.fromkeys(voters, "")),
        timing=TIMING,
        hard_state=HardState(int(log[-1]), None),
        snapshot=snapshot or Snapshot(0, 0, b""),
        entries=entries(log),
        now_ns=0,
        election_timeout_ns=SECOND,
    )


def appended(raft: Raft, previous: int, new: str, commit: int = 0) -> list[Any]:
    """What `raft` answers to an append of its leader's in term 2."""
    term = int(raft.log.term_at(previous)) if previous <= raft.last_index else 2
    made = tuple(Entry(previous + 1 + place, int(digit), b"x") for place, digit in enumerate(new))
    return raft.step(Receive(Append("a", "b", 2, 1, previous, term, commit, made)), 1).messages


def end_after_a_late_append(parts: CmqParts) -> object:
    raft = follower(parts, "1222")
    appended(raft, 1, "2")
    return raft.last_index


def commit_after_a_short_append(parts: CmqParts) -> object:
    raft = follower(parts, "1111")
    appended(raft, 1, "1", commit=4)
    return raft.commit


def answer_to_an_append_beyond_a_gap(parts: CmqParts) -> object:
    raft = follower(parts, "12")
    (answer,) = appended(raft, 3, "2")
    return type(answer).__name__


def asked_of_others_at_the_time_out(parts: CmqParts) -> object:
    raft = follower(parts, "1")
    return sorted({type(message).__name__ for message in raft.step(Tick(SECOND), SECOND).messages})


def second_change_before_the_first_is_committed(parts: CmqParts) -> object:
    raft = follower(parts, "1", voters="b")
    elected = raft.step(Tick(SECOND), SECOND)
    raft.step(Persisted(elected.sequence), SECOND)
    raft.step(ChangeMembership(AddLearner("d", "")), SECOND)
    return raft.refusal_of(AddLearner("e", "")) is None


# Its storage


def membership_after_a_restart(parts: CmqParts) -> object:
    async def story(loop: Any) -> object:
        machine = MessageMachine(loop)
        storage = parts.raft_storage(machine.disk(), "raft")
        await storage.open()
        storage.begin_anew(Snapshot(3, 1, b"", Membership(voters={"a": "", "d": ""})))
        await storage.sync()
        storage.close()
        recovered = await parts.raft_storage(machine.disk(), "raft").open()
        members = recovered.snapshot.membership
        return None if members is None else sorted(members.voters)

    return simulate(story)


# The state and its files


def copy_of_which_a_message_is_acknowledged_later(parts: CmqParts) -> object:
    state = parts.state(1_000, 4)
    for command in (Create("q"), Produce("q", (b"a", b"b")), Ack("q", (0,))):
        state.apply(encode(command))
    copied = state.copy()
    state.apply(encode(Ack("q", (1,))))
    return QueueGroupState(1_000, 4, copied).queues["q"].bitmap.is_set(1)


def messages_once_the_log_is_applied_again(parts: CmqParts) -> object:
    async def story(loop: Any) -> object:
        machine = MessageMachine(loop)
        commands = (Create("q"), Produce("q", (b"a", b"b")), Produce("q", (b"c",)), Ack("q", (0,)))
        process = machine.boot(files=parts.files)
        for _ in range(2):
            for command in commands:
                process.apply(command)
            last, process = process, machine.boot(files=parts.files)
        for command in commands:
            process.apply(command)
        assert last.disk is not process.disk
        return [*process.messages()["q"].values()]

    return simulate(story)


def snapshots_after_losses_of_power(parts: CmqParts) -> object:
    """Whether in any of ten a file has not what it should have."""

    async def story(loop: Any, seed: int) -> bool:
        machine = MessageMachine(loop, seed)
        process = machine.boot(files=parts.files)
        process.apply(Create("q"))
        process.apply(Produce("q", (b"a", b"b")))
        copied = process.state.copy()
        await process.files.sync(files_of(copied))
        machine.lose_power()
        try:
            machine.boot(copied, files=parts.files)
        except StorageCorrupt:
            return True
        return False

    return any(simulate(partial(story, seed=seed)) for seed in range(10))


@pytest.mark.parametrize(
    ("mutant", "probe", "healthy", "planted"),
    [
        ("late-rpc-cuts", end_after_a_late_append, 4, 2),
        ("commit-beyond-verified", commit_after_a_short_append, 2, 4),
        ("window-max-ack", answer_to_an_append_beyond_a_gap, "AppendRefused", "AppendAccepted"),
        ("no-stickiness", asked_of_others_at_the_time_out, ["PreVoteRequest"], ["VoteRequest"]),
        ("two-changes", second_change_before_the_first_is_committed, False, True),
        ("snapshot-without-config", membership_after_a_restart, ["a", "d"], None),
        ("snapshot-torn", copy_of_which_a_message_is_acknowledged_later, False, True),
        ("apply-twice", messages_once_the_log_is_applied_again, [b"b", b"c"], [b"b", b"c"] + [b"a", b"b", b"c"] * 2),
        ("snapshot-before-data", snapshots_after_losses_of_power, False, True),
    ],
)
def test_a_part_does_the_wrong_thing(
    mutant: str, probe: Callable[[CmqParts], object], healthy: object, planted: object
) -> None:
    assert probe(parts_of(None)) == healthy
    assert probe(parts_of(mutant)) == planted


# Nodes together


async def confirmed_without_the_others(cluster: Cluster) -> object:
    leader = await cluster.leader()
    await cluster.environment.kill([node for node in NODES if node != leader])
    return await answered(cluster, leader, wire.produce("q", [b"alone"]))


async def left_at_the_next_leader(cluster: Cluster) -> object:
    await cluster.ack("q", 0)
    leader = await cluster.leader()
    await cluster.environment.kill([leader])
    return (await cluster.pull("q", among=tuple(node for node in NODES if node != leader))).left


async def given_out_without_the_others(cluster: Cluster) -> object:
    leader = await cluster.leader()
    await cluster.isolate(leader)
    return await answered(cluster, leader, wire.pull("q", 1, 0))


async def answered(cluster: Cluster, node: str, command: Any) -> bool:
    try:
        return (await cluster.ask(node, command, 0.2)).code == Code.SUCCESS
    except TimeoutError:
        return False


async def confirmed_within_an_fsync_of_the_leader(cluster: Cluster) -> object:
    """Which takes much longer than to ask the others."""
    begun_ns = cluster.environment.timeline.now_ns()
    await cluster.produce("q", b"soon")
    return cluster.environment.timeline.now_ns() - begun_ns < SLOW.fsync_ms * 1e6


@pytest.mark.parametrize(
    ("mutant", "probe", "healthy", "planted"),
    [
        ("confirm-on-append", confirmed_without_the_others, False, True),
        ("ack-local", left_at_the_next_leader, 1, 2),
        ("fake-leader-read", given_out_without_the_others, False, True),
        ("group-ack-early", confirmed_within_an_fsync_of_the_leader, False, True),
    ],
)
def test_nodes_do_the_wrong_thing(
    mutant: str, probe: Callable[[Cluster], Any], healthy: object, planted: object
) -> None:
    found: list[object] = []

    async def story(cluster: Cluster) -> None:
        await cluster.create("q")
        await cluster.produce("q", b"a", b"b")
        found.append(await probe(cluster))

    for name in (None, mutant):
        named = {} if name is None else {"mutant": name}
        play(story, regime=SLOW, minElectionTimeout=1_000, maxElectionTimeout=2_000, **named)
    assert found == [healthy, planted]


def test_each_planted_bug_is_looked_at() -> None:
    names = {
        each.args[1][place][0]
        for test in (test_a_part_does_the_wrong_thing, test_nodes_do_the_wrong_thing)
        for each in test.pytestmark
        for place in range(len(each.args[1]))
    }
    assert names == {*mutant_names(mutants)}
