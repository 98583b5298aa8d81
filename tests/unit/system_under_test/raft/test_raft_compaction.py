"""Applications that make their snapshots by themselves: which files are kept where, and what becomes of a snapshot."""

from __future__ import annotations

import pytest

from system_under_test.raft.driver import RaftConfig
from tests.unit.system_under_test.raft.raft_cluster import NAMES, FilingMember, RaftCluster, play


async def leading(cluster: RaftCluster, entries: int) -> FilingMember:
    """All nodes are there, and the active leader has applied so many entries."""
    for name in NAMES:
        await cluster.start(name)
    leader = await cluster.leader()
    assert isinstance(leader, FilingMember)
    for number in range(entries):
        await leader.node.propose(b"%d" % number)
    return leader


def test_a_snapshot_of_files_is_what_a_node_begins_with_after_a_loss_of_power() -> None:
    async def story(cluster: RaftCluster) -> None:
        leader = await leading(cluster, 20)
        assert leader.node.log_bytes > 0
        await cluster.until(lambda: all(member.applied == leader.applied for member in cluster.members.values()))
        for member in cluster.members.values():
            assert isinstance(member, FilingMember)
            assert await member.compact()
        assert leader.node.log_bytes == 0
        await leader.node.propose(b"behind it")
        before = list(leader.applied)
        await cluster.env.power_off(NAMES)
        await cluster.env.boot(NAMES)
        await cluster.env.timeline.sleep(0)
        again = [await cluster.start(name) for name in NAMES]
        assert [member.restored for member in again] == [20] * 3
        leader_again = await cluster.leader()
        assert leader_again.applied == before

    play(story, kind=FilingMember)


def test_nothing_is_compacted_but_by_the_application() -> None:
    async def story(cluster: RaftCluster) -> None:
        leader = await leading(cluster, 20)
        size = leader.node.log_bytes
        await leader.node.propose(b"more")
        assert leader.node.log_bytes > size

    play(story, kind=FilingMember, snapshot_threshold=5)


def test_only_the_newest_of_two_snapshots_is_kept_and_an_older_one_is_none() -> None:
    async def story(cluster: RaftCluster) -> None:
        leader = await leading(cluster, 20)
        older, newer = leader.node.compact(7, b"older"), leader.node.compact(9, b"newer")
        assert not await leader.node.compact(8, b"between")
        assert await newer
        assert not await older
        assert not await leader.node.compact(9, b"the same again")
        with pytest.raises(AssertionError, match="not applied"):
            leader.node.compact(leader.node.applied + 1, b"of the future")

    play(story, kind=FilingMember)


def test_a_snapshot_that_is_not_durable_when_the_node_stops_is_none() -> None:
    async def story(cluster: RaftCluster) -> None:
        leader = await leading(cluster, 5)
        unfinished = leader.node.compact(5, b"")
        await leader.node.stop()
        assert not await unfinished
        assert not await leader.node.compact(6, b"")

    play(story, kind=FilingMember, fsync_ms=50.0)


@pytest.mark.parametrize(("gathered", "applied"), [(0, 12), (3, 3)])
def test_proposals_beyond_a_bound_wait_until_those_before_are_durable(gathered: int, applied: int) -> None:
    async def story(cluster: RaftCluster) -> None:
        leader = await cluster.start("a")
        await cluster.until(lambda: leader.node.is_active)
        proposals = [leader.node.propose(b"x") for _ in range(12)]
        await proposals[0]
        assert leader.applied == [b"x"] * applied
        await proposals[-1]
        assert leader.applied == [b"x"] * 12

    play(story, members={"a": "a:9879"}, gathered_entries=gathered)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("window_entries", 1),
        ("batch_entries", 1),
        ("batch_bytes", 1),
        ("log_memory_bytes", 1),
        ("segment_bytes", 1),
        ("log_kept_bytes", 0),
        ("gathered_entries", 0),
        ("promotion_lag", 0),
    ],
)
def test_a_setting_out_of_bounds_is_refused(setting: str, expected: int) -> None:
    RaftConfig(node="a", **{setting: expected})
    with pytest.raises(ValueError, match=f"{setting}: expected at least {expected}, got {expected - 1}"):
        RaftConfig(node="a", **{setting: expected - 1})
