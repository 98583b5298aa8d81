"""Raft's driver: what waits for the disk waits no longer than the disk takes."""

from __future__ import annotations

from tests.unit.raft.raft_cluster import NAMES, RaftCluster, play


def test_a_read_beside_a_write_waits_for_the_disks_and_not_for_the_next_heartbeat():
    async def story(cluster: RaftCluster) -> None:
        for name in NAMES:
            await cluster.start(name)
        leader = (await cluster.leader()).node
        write = leader.propose(b"x")
        await cluster.env.timeline.sleep(0.02)
        # The followers' disks are busy with the entry when they are asked to confirm the leader.
        took_s = await cluster.seconds_of(leader.read_barrier())
        assert write.done()
        assert took_s < 0.2

    play(story, fsync_ms=100.0, heartbeat_s=1.0, min_election_timeout_s=5.0, max_election_timeout_s=6.0)
