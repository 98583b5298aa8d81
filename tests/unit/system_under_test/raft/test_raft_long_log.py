"""Logs that are longer than a node's memory, and commits that are more than a node applies in one go."""

from __future__ import annotations

import pytest

from system_under_test.raft.bounds import Bounds
from system_under_test.raft.core import Raft, Role
from system_under_test.raft.event import Apply, Effects, Event, Persisted, Propose, Read, Receive, Tick
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import Append, AppendAccepted, Entry, HardState
from system_under_test.raft.snapshot import NOTHING
from tests.unit.system_under_test.raft.raft_cluster import NAMES, RaftCluster, play
from tests.unit.system_under_test.raft.raft_stage import SECOND, TIMING, entries


def node(members: list[str], log: str, **bounds: int) -> Raft:
    return Raft(
        node="s1",
        membership=Membership(voters=dict.fromkeys(members, "")),
        timing=TIMING,
        hard_state=HardState(1, None),
        snapshot=NOTHING,
        entries=entries(log),
        now_ns=0,
        election_timeout_ns=SECOND,
        bounds=Bounds(**bounds),
    )


def indices(effects: Effects) -> list[int]:
    return [entry.index for entry in effects.committed]


def test_what_is_committed_is_handed_out_in_pieces_and_messages_are_answered_in_between() -> None:
    raft = node(["s1", "s2", "s3"], "1111111", applied_entries=3)
    assert indices(raft.step(Receive(Append("s2", "s1", 1, 1, 7, 1, 7, ())), 0)) == [1, 2, 3]
    assert (raft.commit, raft.applied) == (7, 3)
    beat = raft.step(Receive(Append("s2", "s1", 1, 2, 7, 1, 7, ())), 0)
    assert beat.messages == [AppendAccepted("s1", "s2", 1, 2, 7)]
    assert not beat.committed
    assert [indices(raft.step(Apply(), 0)) for _ in range(3)] == [[4, 5, 6], [7], []]
    assert raft.applied == 7


def test_a_piece_has_no_more_data_than_fits_but_one_entry_at_least() -> None:
    raft = node(["s1", "s2", "s3"], "", applied_bytes=10)
    sent = tuple(Entry(n, 1, b"x" * size) for n, size in enumerate((4, 4, 4, 50, 1), 1))
    assert indices(raft.step(Receive(Append("s2", "s1", 1, 1, 0, 0, 5, sent)), 0)) == [1, 2]
    assert [indices(raft.step(Apply(), 0)) for _ in range(3)] == [[3], [4], [5]]


def test_a_leader_is_active_and_serves_reads_only_once_all_they_may_show_is_applied() -> None:
    raft = node(["s1"], "11111", applied_entries=2)
    effects = raft.step(Tick(SECOND), 2 * SECOND)
    assert raft.role is Role.LEADER
    early = raft.step(Read((7,)), 2 * SECOND)
    assert indices(raft.step(Persisted(effects.sequence), 2 * SECOND)) == [1, 2]
    assert raft.commit == 6
    assert not raft.is_active
    assert not early.reads
    assert not raft.step(Apply(), 2 * SECOND).reads
    last = raft.step(Apply(), 2 * SECOND)
    assert (indices(last), last.reads, raft.is_active) == ([5, 6], [7], True)
    written = raft.step(Propose((b"x",) * 3), 2 * SECOND)
    assert indices(raft.step(Persisted(written.sequence), 2 * SECOND)) == [7, 8]
    assert not raft.step(Read((8,)), 2 * SECOND).reads, "the ninth entry is committed and not applied"
    last = raft.step(Apply(), 2 * SECOND)
    assert (indices(last), last.reads) == ([9], [8])


SMALL = {"log_memory_bytes": 2_000, "segment_bytes": 500}


def test_memory_stays_as_it_is_while_the_log_grows() -> None:
    async def story(cluster: RaftCluster) -> None:
        for name in NAMES:
            await cluster.start(name)
        leader = await cluster.leader()
        for number in range(200):
            await leader.node.propose(b"%d" % number * 20)
        assert leader.node.log_bytes > 10_000
        await cluster.until(lambda: all(member.applied == leader.applied for member in cluster.members.values()))
        for member in cluster.members.values():
            raft = member.node._raft
            assert raft is not None
            assert len(raft.log.entries) < 15
            assert raft.log.base_index == 0

    play(story, **SMALL)


@pytest.mark.parametrize(("kept_bytes", "restores"), [(0, True), (100_000, False)])
def test_a_follower_that_lags_by_less_than_what_is_kept_gets_entries_from_the_files(
    kept_bytes: int, restores: bool
) -> None:
    async def story(cluster: RaftCluster) -> None:
        for name in NAMES[:2]:
            await cluster.start(name)
        leader = await cluster.leader()
        for number in range(105):
            await leader.node.propose(b"%d" % number)
        raft = leader.node._raft
        assert raft is not None
        assert raft.log.snapshot.index >= 100
        assert (raft.log.base_index == 0) is not restores
        late = await cluster.start("c")
        await cluster.until(lambda: late.applied == leader.applied)
        assert (late.restored > 0) is restores

    play(story, snapshot_threshold=20, log_kept_bytes=kept_bytes, **SMALL)


def test_segments_before_what_is_kept_are_gone_once_the_snapshot_is_durable() -> None:
    async def story(cluster: RaftCluster) -> None:
        leader = await cluster.start("a")
        await cluster.until(lambda: leader.node.is_active)
        for number in range(105):
            await leader.node.propose(b"%d" % number * 20)
        assert leader.node.log_bytes < 2_000
        segments = leader.host.disk.list("raft/log")
        assert 1_000 < sum(leader.host.disk.open(path).size for path in segments) < 4_000

    play(story, members={"a": "a:9879"}, snapshot_threshold=10, log_kept_bytes=1_000, **SMALL)


def test_a_node_that_starts_again_with_a_long_log_applies_it_in_pieces() -> None:
    async def story(cluster: RaftCluster) -> None:
        leader = await cluster.start("a")
        await cluster.until(lambda: leader.node.is_active)
        for _ in range(3):
            for proposal in [leader.node.propose(b"x") for _ in range(1000)]:
                await proposal
        await cluster.env.kill(["a"])
        await cluster.env.boot(["a"])
        await cluster.env.timeline.sleep(0)
        again = await cluster.start("a")
        raft = again.node._raft
        assert raft is not None
        step, stepped = raft.step, []

        def noted(event: Event, now_ns: int) -> Effects:
            effects = step(event, now_ns)
            stepped.append(len(effects.committed))
            return effects

        raft.step = noted
        await cluster.until(lambda: again.node.is_active)
        assert max(stepped) <= 1024
        assert sum(count > 0 for count in stepped) >= 3
        assert len(again.applied) == 3000

    play(story, members={"a": "a:9879"}, snapshot_threshold=10_000, **SMALL)
