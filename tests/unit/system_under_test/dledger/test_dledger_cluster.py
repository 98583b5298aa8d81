"""Groups of DLedger's cores in random storms: what was acknowledged stays, and all come to one log again."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.election import Election
from system_under_test.dledger.handler import Handler
from system_under_test.dledger.message import Code, VoteRequest
from system_under_test.dledger.quorum import Quorum
from tests.unit.system_under_test.dledger.dledger_cluster import Cluster

STORMS = 12


def storm(seed: int, parts: CoreParts | None = None) -> Cluster:
    """Raises AssertionError where a promise was broken."""
    draw = random.Random(seed)
    cluster = Cluster(
        seed,
        draw.choice((3, 3, 5)),
        parts,
        ack_durable=draw.random() < 0.6,
        batch_bytes=draw.choice((0, 0, 150, 1_000)),
        preferred=draw.choice(((), ("n1",), ("n0", "n2"))),
        slowest_ms=draw.choice((5, 20, 40)),
    )
    faults: list[Callable[[Cluster, random.Random], None]] = [cut, heal, isolate, kill, boot, boot]
    if cluster.options["ack_durable"]:
        faults.append(power_off)
    for _ in range(draw.randrange(5, 40)):
        cluster.loss = draw.choice((0.0, 0.0, 0.05, 0.3))
        draw.choice(faults)(cluster, draw)
        for _ in range(draw.randrange(12)):
            name = cluster.leader() if draw.random() < 0.8 else draw.choice(cluster.names)
            if name in cluster.up:
                cluster.append(name, draw.choice((1, 1, 1, 3)))
            cluster.run(draw.randrange(1, 60))
        cluster.run(draw.randrange(1_500))
        cluster.check()
    settle(cluster, draw)
    return cluster


def storms(parts: CoreParts | None = None) -> list[Cluster]:
    return [storm(seed, parts) for seed in range(STORMS)]


def cut(cluster: Cluster, draw: random.Random) -> None:
    """A link, most often both ways."""
    one, other = draw.sample(cluster.names, 2)
    cluster.cut.add((one, other))
    if draw.random() < 0.6:
        cluster.cut.add((other, one))


def isolate(cluster: Cluster, draw: random.Random) -> None:
    leader = cluster.leader()
    for other in cluster.names:
        if leader is not None and other != leader:
            cluster.cut |= {(leader, other), (other, leader)}


def heal(cluster: Cluster, draw: random.Random) -> None:
    cluster.cut.clear()


def kill(cluster: Cluster, draw: random.Random) -> None:
    name = draw.choice(cluster.names)
    if name in cluster.up:
        cluster.kill(name)


def power_off(cluster: Cluster, draw: random.Random) -> None:
    for name in draw.sample(cluster.names, draw.randint(1, len(cluster.names))):
        if name in cluster.up:
            cluster.power_off(name)


def boot(cluster: Cluster, draw: random.Random) -> None:
    for name in cluster.names:
        if name not in cluster.up:
            cluster.start(name)


def settle(cluster: Cluster, draw: random.Random) -> None:
    """Once all is healed the group serves again, and all members come to have one log, committed to its end."""
    cluster.loss = 0.0
    heal(cluster, draw)
    boot(cluster, draw)
    cluster.run(4_000)
    codes = [Code.NOT_LEADER]
    while codes[-1] is not Code.SUCCESS and len(codes) < 4:  # a preferred leader may just be taking over
        leader = cluster.leader()
        assert leader is not None, "nobody leads"
        token = cluster.append(leader)
        cluster.run(1_500)
        codes.append(cluster.results[token].code)
    assert codes[-1] is Code.SUCCESS, f"nothing is acknowledged: {codes}"
    cluster.check()
    logs = [process.log.entries for process in cluster.up.values()]
    assert all(log == logs[0] for log in logs), "logs differ"
    assert {process.member.state.committed for process in cluster.up.values()} == {logs[0][-1].index}


def test_what_was_acknowledged_outlasts_random_storms() -> None:
    clusters = storms()
    assert sum(len(cluster.acknowledged()) for cluster in clusters) > 20 * STORMS
    assert sum(len(cluster.leaders) for cluster in clusters) > 2 * STORMS


@pytest.mark.thorough
def test_what_was_acknowledged_outlasts_a_thousand_random_storms() -> None:
    for seed in range(STORMS, 1_000):
        storm(seed)


class MinorityQuorum(Quorum):
    def reached(self) -> int:
        return sorted(self.marks.values(), reverse=True)[self._state.config.majority - 2]


class VotesForAll(Election):
    def has_longer_log(self, request: VoteRequest) -> bool:
        return False


class CommitsBeyond(Handler):
    def commit(self, index: int) -> None:
        self._state.commit(index)


@pytest.mark.parametrize(
    "parts",
    [CoreParts(quorum=MinorityQuorum), CoreParts(election=VotesForAll), CoreParts(handler=CommitsBeyond)],
    ids=["minority", "votes for all", "commits beyond"],
)
def test_such_storms_find_what_is_wrong(parts: CoreParts) -> None:
    with pytest.raises(AssertionError):
        storms(parts)
