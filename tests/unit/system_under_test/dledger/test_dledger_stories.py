"""What becomes of a group of DLedger on simulated hosts when members die, lose their disks, or cannot start."""

from __future__ import annotations

import pytest

from harness.environments.impairment import LostDisk
from system_under_test.dledger.core import Member
from system_under_test.dledger.entry import NOTHING
from system_under_test.dledger.event import HardState
from system_under_test.dledger.message import Code
from system_under_test.dledger.state import GroupConfig
from system_under_test.dledger.vote_file import VoteFile
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.dledger.disk_machine import (
    DiskMachine,
)
from tests.unit.system_under_test.dledger.dledger_group import NAMES, Group, play


async def filled(group: Group, count: int = 20) -> tuple[str, list[bytes]]:
    """The leader, and what it has acknowledged."""
    leader = await group.leader()
    bodies = [b"%050d" % number for number in range(count)]
    for body in bodies:
        assert (await group.append(leader, body)).code is Code.SUCCESS
    return leader, bodies


def others(leader: str) -> list[str]:
    return [name for name in NAMES if name != leader]


def test_the_death_of_a_follower_goes_unnoticed_and_without_two_nothing_is_acknowledged() -> None:
    async def story(group: Group) -> None:
        leader, bodies = await filled(group)
        first, second = others(leader)
        await group.environment.kill([first])
        began_ns = group.environment.timeline.now_ns()
        for body in (b"a", b"b"):
            assert (await group.append(leader, body)).code is Code.SUCCESS
        assert group.environment.timeline.now_ns() - began_ns < 500_000_000
        assert await group.leader() == leader
        await group.environment.kill([second])
        answer = await group.append(leader, b"c")
        assert answer.code in (Code.WAIT_QUORUM_ACK_TIMEOUT, Code.TERM_CHANGED)
        await group.sleep(10)
        assert (await group.append(leader, b"d")).code is Code.NOT_LEADER
        await group.environment.boot([first])
        leader = await group.leader()
        assert (await group.append(leader, b"e")).code is Code.SUCCESS
        shown = await group.pulled(leader)
        assert shown[: len(bodies) + 2] == [*bodies, b"a", b"b"] and shown[-1] == b"e" and b"d" not in shown

    play(story)


@pytest.mark.parametrize("mutant", [None, "wiped-not-pushed"])
def test_who_loses_its_disk_while_nobody_writes_gets_all_of_it_again(mutant: str | None) -> None:
    async def story(group: Group) -> None:
        leader, bodies = await filled(group)
        wiped = others(leader)[0]
        await group.environment.impair([wiped], LostDisk())
        await group.environment.relieve([wiped], LostDisk())
        await group.environment.boot([wiped])
        await group.sleep(5)
        assert await group.pulled(wiped) == ([] if mutant else bodies)
        assert (await group.append(leader, b"more")).code is Code.SUCCESS
        await group.sleep(5)
        assert await group.pulled(wiped) == [*bodies, b"more"]

    play(story, **({} if mutant is None else {"mutant": mutant}))


def test_without_the_file_with_which_its_log_begins_a_member_stops_and_says_what_to_do() -> None:
    async def story(group: Group) -> None:
        leader, _ = await filled(group, 100)
        (harmed, _) = others(leader)
        await group.sleep(5)
        await group.environment.kill([harmed])
        disk = group.environment.disk_of(harmed)
        first = min(path for path in disk.paths() if "/data/" in path)
        disk.remove(first)
        await group.environment.boot([harmed])
        await group.sleep(1)
        assert (
            f"{first}, with which the log begins, is gone: bring the file back, or wipe"
            in (group.environment.panics()[harmed])
        )
        assert (await group.append(leader, b"on")).code is Code.SUCCESS

    play(story)


def test_a_log_of_a_later_term_than_the_one_kept_stops_its_member_which_says_what_to_do() -> None:
    async def story(group: Group) -> None:
        leader, _ = await filled(group)
        (harmed, _) = others(leader)
        await group.environment.kill([harmed])
        disk = group.environment.disk_of(harmed)
        for path in [path for path in disk.paths() if "vote" in path]:
            disk.remove(path)
        await group.environment.boot([harmed])
        await group.sleep(1)
        says = group.environment.panics()[harmed]
        assert (
            "and the record of term and vote is of term 0" in says and "wipe this member and let it join empty" in says
        )
        assert (await group.append(leader, b"on")).code is Code.SUCCESS

    play(story)


def test_a_lone_member_that_died_before_its_first_term_was_durable_goes_on() -> None:
    async def story(group: Group) -> None:
        assert await group.leader() == "n0"
        assert (await group.append("n0", b"a")).code is Code.SUCCESS
        await group.environment.kill(["n0"])
        disk = group.environment.disk_of("n0")
        for path in [path for path in disk.paths() if "vote" in path]:
            disk.remove(path)
        await group.environment.boot(["n0"])
        await group.sleep(3)
        assert (await group.append("n0", b"b")).code is Code.SUCCESS
        assert await group.pulled("n0") == [b"a", b"b"]

    play(story, names=("n0",))


@pytest.mark.parametrize("seed", range(8))
def test_no_kill_leaves_a_log_of_a_later_term_than_the_one_kept(seed: int) -> None:
    """Entries of a term are written once that is durable, and a slow disk takes its time for that."""

    async def story(group: Group) -> None:
        for number in range(6):
            leader = await group.leader()
            await group.append(leader, b"%d" % number)
            await group.environment.kill([leader])
            await group.sleep(6.6 + 0.01 * (seed * 6 + number))
            victims = others(leader)
            await group.environment.kill(victims)
            await group.environment.boot(list(NAMES))
            await group.sleep(0.1)
            assert not group.environment.panics()

    play(story, seed=seed, fsync_ms=60.0)


def test_a_stop_keeps_what_was_committed_and_a_restart_hides_the_rest() -> None:
    async def with_machine(machine: DiskMachine) -> None:
        store = await machine.boot()
        store.append_own(1, [b"%d" % number for number in range(11)])
        await store.save_committed(7)
        again = await machine.boot()
        votes = VoteFile(machine.disk(), "vote")
        assert (again.end, again.committed) == (10, 7)
        config = GroupConfig(node="a", members=("a", "b", "c"))
        member = Member(config, again, HardState(*await votes.read()), committed=again.committed)
        assert member.state.committed == 7 and member.state.log.end == 10
        assert member.quorum.marks.get("a", NOTHING) == NOTHING

    async def whole(loop: object) -> None:
        await with_machine(DiskMachine(loop))  # type: ignore[arg-type]

    simulate(whole)
