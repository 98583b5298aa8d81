"""Raft groups whose state is in files, whose logs are many small segments and hardly in memory, in storms of deaths and
cut links: what was acknowledged is there in the end, once, and the same everywhere."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter

import pytest

from harness.environments.environment import Link
from system_under_test.raft.driver import LeadershipLost, NotLeader
from tests.unit.system_under_test.raft.raft_cluster import NAMES, FilingMember, RaftCluster, play

STORM_S = 25.0
SETTINGS = {
    "log_memory_bytes": 1_500,
    "segment_bytes": 600,
    "heartbeat_s": 0.05,
    "min_election_timeout_s": 0.3,
    "max_election_timeout_s": 0.6,
}


class Storm:
    def __init__(self, cluster: RaftCluster, draw: random.Random) -> None:
        self.cluster = cluster
        self.env = cluster.env
        self.draw = draw
        self.acknowledged: list[bytes] = []
        self.seen: Counter[str] = Counter()

    async def start(self, name: str) -> None:
        member = await self.cluster.start(name)
        assert isinstance(member, FilingMember)
        self.seen["starts from a snapshot"] += member.restored > 0
        member.host.spawn(self.compact_now_and_then(member), "compactions")

    async def compact_now_and_then(self, member: FilingMember) -> None:
        restored = member.restored
        while True:
            await member.host.clock.sleep(self.draw.uniform(0.1, 1.5))
            self.seen["came from a leader"] += member.restored != restored
            restored = member.restored
            self.seen["compactions"] += await member.compact()

    async def propose(self, client: int) -> None:
        for number in itertools.count():
            value = b"%d.%d" % (client, number)
            for member in self.cluster.members.values():
                if member.node.is_active:
                    try:
                        await self.env.timeline.within(1.0, member.node.propose(value))
                        self.acknowledged.append(value)
                    except (NotLeader, LeadershipLost, TimeoutError):
                        self.seen["not acknowledged"] += 1
                    break
            await self.env.timeline.sleep(self.draw.uniform(0.001, 0.05))

    async def propose_the_last(self) -> bytes:
        """What is acknowledged, of as many as it takes."""
        for number in itertools.count():
            value = b"last %d" % number
            try:
                await (await self.cluster.leader()).node.propose(value)
                return value
            except (NotLeader, LeadershipLost):
                continue
        raise AssertionError("there is always a next number")

    async def strike(self) -> None:
        """One node or two die for a while, or cannot reach the others."""
        names = self.draw.sample(NAMES, self.draw.choice((1, 1, 2, 3)))
        if self.draw.random() < 0.35:
            links = [Link(names[0], other) for other in NAMES if other != names[0]]
            links += [Link(other, names[0]) for other in NAMES if other != names[0] and self.draw.random() < 0.7]
            await self.env.cut(links)
            await self.env.timeline.sleep(self.draw.uniform(0.2, 3.0))
            await self.env.heal(links)
            return
        await (self.env.power_off(names) if self.draw.random() < 0.7 else self.env.kill(names))
        await self.env.timeline.sleep(self.draw.uniform(0.01, 2.0))
        await self.env.boot(names)
        await self.env.timeline.sleep(0)
        for name in names:
            await self.start(name)


def storm(seed: int, kept_bytes: int) -> Counter[str]:
    seen: Counter[str] = Counter()

    async def story(cluster: RaftCluster) -> None:
        draw, env = random.Random(seed), cluster.env
        storm = Storm(cluster, draw)
        for name in NAMES:
            await storm.start(name)
        clients = [asyncio.create_task(storm.propose(client)) for client in range(3)]
        until_ns = env.timeline.now_ns() + STORM_S * 1e9
        while env.timeline.now_ns() < until_ns:
            await env.timeline.sleep(draw.uniform(0.1, 1.5))
            await storm.strike()
        for client in clients:
            client.cancel()
        last = await storm.propose_the_last()
        members, leader = cluster.members.values(), await cluster.leader()
        await cluster.until(lambda: all(member.applied[-1:] == [last] for member in members))
        for member in members:
            assert isinstance(member, FilingMember)
            assert member.applied == leader.applied
            assert member.file.read_at(0, member.file.size).splitlines() == leader.applied
        assert len({*leader.applied}) == len(leader.applied), "an entry is there twice"
        lost = {*storm.acknowledged} - {*leader.applied}
        assert not lost, f"acknowledged and gone: {lost}"
        seen.update(storm.seen, acknowledged=len(storm.acknowledged))

    play(story, kind=FilingMember, seed=seed, fsync_ms=2.0, log_kept_bytes=kept_bytes, **SETTINGS)
    return seen


@pytest.mark.parametrize(
    ("first", "kept_bytes"),
    [(0, 0), (4, 2_000), *(pytest.param(first, 0, marks=pytest.mark.gate) for first in range(8, 40, 4))],
)
def test_no_storm_loses_what_was_acknowledged(first: int, kept_bytes: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(first, first + 4):
        try:
            seen += storm(seed, kept_bytes)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    assert seen["acknowledged"] > 500
    assert min(seen["compactions"], seen["starts from a snapshot"]) > 20
    assert kept_bytes or seen["came from a leader"] > 2
