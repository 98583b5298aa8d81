"""Raft's driver: what waits for the disk waits no longer than the disk takes."""

from __future__ import annotations

import pytest

from system_under_test.raft.driver import NotLeader
from system_under_test.raft.membership import AddLearner, Promote, Remove, UnfitChange
from system_under_test.raft.transport import PeerTransport
from tests.unit.harness.environments.simulated.lending import LENT
from tests.unit.system_under_test.raft.raft_cluster import NAMES, PORT, Member, RaftCluster, play


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


def test_a_follower_that_was_away_for_long_gets_a_snapshot_and_then_the_entries_behind_it():
    async def story(cluster: RaftCluster) -> None:
        for name in NAMES[:2]:
            await cluster.start(name)
        leader = await cluster.leader()
        for number in range(25):
            await leader.node.propose(b"%d" % number)
        late = await cluster.start("c")
        await cluster.until(lambda: late.applied == leader.applied)
        assert 10 < late.restored < 25
        await leader.node.propose(b"more")
        await cluster.until(lambda: late.applied[-1:] == [b"more"])

    play(story, snapshot_threshold=10)


def test_a_node_that_starts_again_begins_with_its_snapshot_and_applies_only_what_is_behind_it():
    async def story(cluster: RaftCluster) -> None:
        for name in NAMES:
            await cluster.start(name)
        leader = await cluster.leader()
        for number in range(25):
            await leader.node.propose(b"%d" % number)
        before = list(leader.applied)
        await cluster.env.power_off(NAMES)
        await cluster.env.boot(NAMES)
        await cluster.env.timeline.sleep(0)
        again = [await cluster.start(name) for name in NAMES]
        assert all(member.restored >= 10 for member in again)
        leader = await cluster.leader()
        assert leader.applied == before
        assert await leader.node.propose(b"more") > 25
        await cluster.until(lambda: all(member.applied == [*before, b"more"] for member in again))

    play(story, snapshot_threshold=10)


def test_another_node_leads_when_asked_and_proposals_are_refused_only_meanwhile():
    async def story(cluster: RaftCluster) -> None:
        for name in NAMES:
            await cluster.start(name)
        leader = await cluster.leader()
        await leader.node.propose(b"before")
        to = next(name for name in NAMES if cluster.members[name] is not leader)
        transfer = leader.node.transfer_leadership(to)
        with pytest.raises(NotLeader) as refused:
            leader.node.propose(b"meanwhile")
        assert refused.value.leader == to
        assert await transfer
        await cluster.until(lambda: cluster.members[to].node.is_active, bound_s=0.5)
        await cluster.members[to].node.propose(b"after")
        assert cluster.members[to].applied == [b"before", b"after"]

    play(story)


def test_a_transfer_to_a_node_that_is_down_ends_and_the_leader_leads_on():
    async def story(cluster: RaftCluster) -> None:
        for name in NAMES[:2]:
            await cluster.start(name)
        leader = await cluster.leader()
        transfer = leader.node.transfer_leadership("c")
        assert not await leader.node.transfer_leadership("b"), "one at a time"
        assert not await cluster.env.timeline.within(1.3, transfer)
        await leader.node.propose(b"after")
        assert not await leader.node.transfer_leadership("nobody")

    play(story)


def test_a_node_joins_as_a_learner_gets_the_log_and_then_votes():
    async def story(cluster: RaftCluster) -> None:
        for name in NAMES:
            await cluster.start(name)
        leader = await cluster.leader()
        for number in range(25):
            await leader.node.propose(b"%d" % number)
        joining = await cluster.start("d")
        await cluster.env.timeline.sleep(5.0)
        assert not joining.applied
        assert joining.node.term == 0, "nobody has told it anything, and it does not stand for election"
        await leader.node.change_membership(AddLearner("d", f"d:{PORT}"))
        await cluster.until(lambda: joining.applied == leader.applied)
        assert joining.restored > 10
        with pytest.raises(UnfitChange, match="already"):
            leader.node.change_membership(AddLearner("d", f"d:{PORT}"))
        promotion = leader.node.change_membership(Promote("d"))
        with pytest.raises(UnfitChange, match="not committed"):
            leader.node.change_membership(Remove("a"))
        await promotion
        assert await leader.node.transfer_leadership("d")
        await cluster.until(lambda: joining.node.is_active)
        assert sorted(joining.node.membership.voters) == ["a", "b", "c", "d"]

    play(story, snapshot_threshold=10)


def test_a_leader_that_is_removed_leads_until_that_is_certain_and_the_others_go_on():
    async def story(cluster: RaftCluster) -> None:
        for name in NAMES:
            await cluster.start(name)
        leader = await cluster.leader()
        name = next(name for name in NAMES if cluster.members[name] is leader)
        await leader.node.change_membership(Remove(name))
        assert not leader.node.is_active
        await cluster.until(lambda: any(member.node.is_active for member in cluster.members.values()))
        successor = await cluster.leader()
        await successor.node.propose(b"after")
        assert name not in successor.node.membership.addresses
        term = successor.node.term
        await cluster.env.timeline.sleep(10.0)
        assert successor.node.is_active, "the one that is out does not disturb"
        assert successor.node.term == term

    play(story)


def test_who_was_away_while_a_member_joined_answers_it_all_the_same():
    async def story(cluster: RaftCluster) -> None:
        for name in NAMES:
            await cluster.start(name)
        leader = await cluster.leader()
        name = next(name for name in NAMES if cluster.members[name] is leader)
        away = next(other for other in NAMES if other != name)
        await cluster.env.kill([away])
        joining = await cluster.start("d")
        await leader.node.change_membership(AddLearner("d", f"d:{PORT}"))
        await cluster.until(lambda: joining.node.membership == leader.node.membership)
        await leader.node.change_membership(Promote("d"))
        assert await leader.node.transfer_leadership("d")
        await cluster.until(lambda: joining.node.is_active)
        await joining.node.propose(b"unheard of where it was away")
        await cluster.env.boot([away])
        await cluster.env.timeline.sleep(0)
        back = await cluster.start(away)
        await cluster.env.kill([name])
        await joining.node.propose(b"more")
        await cluster.until(lambda: back.applied == joining.applied)

    play(story)


def test_groups_that_share_a_transport_do_not_hear_each_other():
    async def story(cluster: RaftCluster) -> None:
        groups: dict[int, list[Member]] = {1: [], 2: []}
        for name in NAMES:
            transport = PeerTransport(LENT[name], node=name, address=f"{name}:{PORT}", silence_s=2.0)
            for number, members in groups.items():
                if (name, number) != ("c", 2):
                    members.append(await cluster.join(name, transport, group=number, directory=f"raft-{number}"))
            await transport.start(PORT)
        for number, members in groups.items():
            await cluster.until(lambda members=members: any(member.node.is_active for member in members))
            leader = next(member for member in members if member.node.is_active)
            await leader.node.propose(b"of group %d" % number)
            await cluster.until(lambda members=members: all(member.applied for member in members))
        assert [member.applied for member in groups[1]] == [[b"of group 1"]] * 3
        assert [member.applied for member in groups[2]] == [[b"of group 2"]] * 2
        await groups[1][0].node.stop()
        await cluster.env.timeline.sleep(5.0)
        leader = next(member for member in groups[2] if member.node.is_active)
        await leader.node.propose(b"the other group of that process lives on")

    play(story)
