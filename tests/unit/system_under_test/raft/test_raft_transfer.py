"""Snapshots with files on their way to a follower: what arrives, what is kept for it, and who may die meanwhile."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest

from system_under_test.raft.core import Role
from system_under_test.raft.event import Compact, Effects, Persisted, Propose, Receive, Tick
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import (
    Append,
    AppendAccepted,
    AppendRefused,
    ChunkTaken,
    HardState,
    Message,
    SnapshotChunk,
)
from system_under_test.raft.snapshot import NOTHING, FileGone, SnapshotFile
from system_under_test.storage.errors import StorageCorrupt
from tests.unit.system_under_test.raft.raft_cluster import NAMES, FilingMember, InChunks, Member, RaftCluster, play
from tests.unit.system_under_test.raft.raft_stage import SECOND, TIMING


async def with_a_late_follower(cluster: RaftCluster) -> tuple[FilingMember, Member]:
    """The leader, whose log begins behind 25 entries, and a follower that has just started and lacks them."""
    for name in NAMES[:2]:
        await cluster.start(name)
    leader = await cluster.leader()
    assert isinstance(leader, FilingMember)
    for number in range(25):
        await leader.node.propose(b"entry %d" % number)
    assert await leader.compact()
    await leader.node.propose(b"behind the snapshot")
    return leader, await cluster.start("c")


def received(member: Member) -> int:
    """How many bytes of a snapshot a node has."""
    raft = member.node._raft
    return 0 if raft is None else raft._incoming.received


def test_a_late_follower_gets_the_files_and_then_the_entries_behind_them() -> None:
    async def story(cluster: RaftCluster) -> None:
        leader, late = await with_a_late_follower(cluster)
        before = late.node.place
        await cluster.until(lambda: late.applied == leader.applied)
        assert late.restored == 25
        assert late.node.place != before
        await cluster.until(lambda: not late.host.disk.list(before))
        assert [path.rpartition("/")[2] for path in late.host.disk.list(late.node.place)] == ["lines"]
        assert late.file.read_at(0, 10_000) == leader.file.read_at(0, 10_000)
        # It makes snapshots of its own there, and begins with them.
        assert await late.compact()
        await cluster.env.power_off(["c"])
        await cluster.env.boot(["c"])
        await cluster.env.timeline.sleep(0)
        again = await cluster.start("c")
        assert again.restored == 26
        assert again.node.place == late.node.place

    play(story, kind=FilingMember)


CHUNKS = 9
"""So many of 40 bytes a snapshot of these stories takes at least."""


@pytest.mark.parametrize("dies", ["the follower", "the leader", "all"])
@pytest.mark.parametrize("with_power", [False, True], ids=["killed", "without power"])
def test_whoever_dies_after_any_chunk_the_follower_gets_all_in_the_end(dies: str, with_power: bool) -> None:
    async def story(cluster: RaftCluster) -> None:
        leader, late = await with_a_late_follower(cluster)
        wanted = list(leader.applied)
        begun_ns = cluster.env.timeline.now_ns()
        while received(late) < chunk * 40 - 39 and late.restored == 0:
            assert cluster.env.timeline.now_ns() - begun_ns < 30e9
            await cluster.env.timeline.sleep(0.0001)
        interrupted.append(late.restored == 0)
        leading = next(name for name, member in cluster.members.items() if member is leader)
        names = {"the follower": ["c"], "the leader": [leading], "all": [*NAMES]}[dies]
        await (cluster.env.power_off(names) if with_power else cluster.env.kill(names))
        await cluster.env.boot(names)
        await cluster.env.timeline.sleep(0)
        for name in names:
            again = await cluster.start(name)
            assert again.restored in (0, 25)
        await cluster.until(lambda: all(member.applied == wanted for member in cluster.members.values()))

    interrupted: list[bool] = []
    for chunk in range(1, CHUNKS + 2):
        play(story, kind=FilingMember, seed=chunk)
    assert interrupted[: CHUNKS - 1] == [True] * (CHUNKS - 1)


@pytest.mark.parametrize("milliseconds", [1, 20, 60, 99, 150, 220, 900])
def test_a_follower_that_loses_power_while_a_snapshot_becomes_durable_has_the_old_or_the_new_one(
    milliseconds: int,
) -> None:
    async def story(cluster: RaftCluster) -> None:
        leader, late = await with_a_late_follower(cluster)
        await cluster.until(lambda: late.restored == 25)
        await cluster.env.timeline.sleep(milliseconds / 1000)
        await cluster.env.power_off(["c"])
        await cluster.env.boot(["c"])
        await cluster.env.timeline.sleep(0)
        again = await cluster.start("c")
        assert again.restored in (0, 25)
        outcomes.add(again.restored)
        await cluster.until(lambda: again.applied == leader.applied)

    outcomes: set[int] = set()
    for seed in range(3):
        play(story, kind=FilingMember, seed=seed, fsync_ms=100.0, heartbeat_s=0.2)
    if milliseconds in (1, 900):
        assert outcomes == {0 if milliseconds == 1 else 25}


def test_a_file_of_a_snapshot_that_is_gone_keeps_a_node_from_starting_and_says_what_to_do() -> None:
    async def story(cluster: RaftCluster) -> None:
        _, late = await with_a_late_follower(cluster)
        await cluster.until(lambda: late.restored == 25 and late.node._storage.snapshot_index > 0)
        late.file.truncate(20)
        await cluster.env.kill(["c"])
        await cluster.env.boot(["c"])
        await cluster.env.timeline.sleep(0)
        with pytest.raises(
            StorageCorrupt, match=r"files-1/lines is harmed: expected at least \d+ bytes, found 20; remove this"
        ):
            await cluster.start("c")

    play(story, kind=FilingMember)


# The core alone


class Leader:
    """s1 of three, with nine entries of which s2 has all and s3 nothing."""

    def __init__(self) -> None:
        self.now_ns = 2 * SECOND
        self.contents: dict[str, bytes] = {}
        self.sent: list[Message] = []
        self.raft = InChunks(
            node="s1",
            membership=Membership(voters=dict.fromkeys(("s1", "s2", "s3"), "")),
            timing=TIMING,
            hard_state=HardState(1, None),
            snapshot=NOTHING,
            entries=[],
            now_ns=0,
            election_timeout_ns=SECOND,
            read_file=self.read,
        )
        self.raft._become_candidate(0)
        self.raft._votes.add("s2")
        self.raft._count_votes(0)
        assert self.raft.role is Role.LEADER
        self.step(lambda: Propose((b"x",) * 8))
        self.sync()
        self.step(lambda: Receive(AppendAccepted("s2", "s1", 2, 0, 9)))
        assert self.raft.commit == 9

    def read(self, name: str, offset: int, length: int) -> bytes:
        if name not in self.contents:
            raise FileGone(f"{name} is gone")
        return self.contents[name][offset : offset + length]

    def step(self, event: Callable[[], object]) -> Effects:
        effects = self.raft.step(event(), self.now_ns)  # type: ignore[arg-type]
        self.sent = [*effects.appends]
        return effects

    def sync(self) -> None:
        self.step(lambda: Persisted(1 << 40))

    def compact(self, index: int) -> None:
        name, content = f"up to {index}", b"%d" % index * 90
        self.contents[name] = content
        self.step(lambda: Compact(index, b"", (SnapshotFile(name, len(content), zlib.crc32(content)),)))
        self.sync()

    def refused_by_s3(self) -> None:
        """Its log is empty, so it needs the snapshot."""
        self.step(lambda: Receive(AppendRefused("s3", "s1", 2, 0, 9, 0, 0)))
        self.step(lambda: Receive(AppendRefused("s3", "s1", 2, 0, 0, 0, 0)))
        self.beat()

    def beat(self) -> list[SnapshotChunk]:
        self.now_ns += SECOND // 10
        self.step(lambda: Tick(SECOND))
        chunks = [message for message in self.sent if isinstance(message, SnapshotChunk)]
        self.step(lambda: Receive(AppendAccepted("s2", "s1", 2, self.raft._replication.round, 9)))
        return chunks

    def taken(self, index: int, received: int) -> list[SnapshotChunk]:
        """What s3 is sent once it has so much."""
        self.step(lambda: Receive(ChunkTaken("s3", "s1", 2, 0, index, received)))
        return [message for message in self.sent if isinstance(message, SnapshotChunk)]


def test_files_of_an_older_snapshot_are_in_use_until_it_has_arrived() -> None:
    leader = Leader()
    leader.compact(4)
    leader.refused_by_s3()
    assert leader.raft.files_in_use == frozenset()
    leader.compact(8)
    assert leader.raft.files_in_use == {"up to 4"}
    (chunk,) = leader.taken(4, 40)
    (chunk,) = leader.taken(4, chunk.size - 28)
    assert (chunk.index, chunk.data) == (4, b"4" * 28), "the rest of the older one"
    leader.step(lambda: Receive(AppendAccepted("s3", "s1", 2, 0, 4)))
    # What follows it is gone too.
    assert [(message.index, message.offset) for message in leader.sent if isinstance(message, SnapshotChunk)] == [
        (8, 0)
    ]
    assert leader.raft.files_in_use == frozenset()


def test_a_transfer_of_an_older_snapshot_to_a_silent_follower_begins_anew_with_the_newest() -> None:
    leader = Leader()
    leader.compact(4)
    leader.refused_by_s3()
    leader.taken(4, 80)
    leader.compact(8)
    beats = 0
    while leader.raft.files_in_use:
        chunks = leader.beat()
        beats += 1
        assert beats <= 20
    assert beats == 20, "after the quorum timeout"
    assert [(chunk.index, chunk.offset) for chunk in chunks] == [(8, 0)]


def test_a_transfer_of_the_newest_snapshot_goes_on_however_long_its_follower_is_silent() -> None:
    leader = Leader()
    leader.compact(4)
    leader.refused_by_s3()
    leader.taken(4, 80)
    assert [[(chunk.index, chunk.offset) for chunk in leader.beat()] for _ in range(30)] == [[(4, 80)]] * 30


def test_a_transfer_whose_file_is_gone_begins_anew_with_the_newest_snapshot_which_must_be_there() -> None:
    leader = Leader()
    leader.compact(4)
    leader.refused_by_s3()
    leader.taken(4, 80)
    leader.compact(8)
    del leader.contents["up to 4"]
    assert [(chunk.index, chunk.offset) for chunk in leader.taken(4, 90)] == [(8, 0)]
    del leader.contents["up to 8"]
    with pytest.raises(FileGone, match="up to 8 is gone"):
        leader.taken(8, 90)


def test_whoever_leads_no_more_keeps_no_files_for_followers() -> None:
    leader = Leader()
    leader.compact(4)
    leader.refused_by_s3()
    leader.compact(8)
    assert leader.raft.files_in_use
    leader.step(lambda: Receive(Append("s2", "s1", 3, 1, 9, 2, 9, ())))
    assert leader.raft.files_in_use == frozenset()


def test_no_chunk_is_taken_while_a_snapshot_that_was_taken_over_is_not_durable() -> None:
    leader, later = Leader(), Leader()
    leader.compact(4)
    later.compact(8)
    leader.refused_by_s3()
    later.refused_by_s3()
    follower = InChunks(
        node="s3",
        membership=Membership(voters=dict.fromkeys(("s1", "s2", "s3"), "")),
        timing=TIMING,
        hard_state=HardState(2, None),
        snapshot=NOTHING,
        entries=[],
        now_ns=0,
        election_timeout_ns=SECOND,
    )
    effects, chunks, at = Effects(0), leader.beat(), 0
    while effects.restored is None:
        (chunk,) = chunks
        effects = follower.step(Receive(chunk), 0)
        at += len(chunk.data)
        chunks = leader.taken(4, at)
    (first,) = later.beat()
    waiting = follower.step(Receive(first), 0)
    assert not waiting.begins_receiving
    assert waiting.messages == [ChunkTaken("s3", "s1", 2, first.round, 8, 0)]
    follower.step(Persisted(effects.sequence), 0)
    assert follower.step(Receive(first), 0).messages == [ChunkTaken("s3", "s1", 2, first.round, 8, len(first.data))]
