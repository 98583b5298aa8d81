"""How members of a group divide queues: RocketMQ's own examples, and that nobody is left out or served twice."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5

import pytest

from system_under_test.rocketmq.allocation import (
    Allocation,
    averagely,
    averagely_by_circle,
    by_config,
    by_machine_room,
    consistent_hash,
    nearby,
)
from system_under_test.rocketmq.consumer_protocol import MessageQueue


def queues(count: int, broker: str = "broker-a") -> list[MessageQueue]:
    return [MessageQueue("T", broker, number) for number in range(count)]


def members(count: int) -> list[str]:
    return [f"CID-{number}" for number in range(count)]


def parts(allocation: Allocation, of: Sequence[MessageQueue], among: Sequence[str]) -> list[list[int]]:
    return [[queue.queue_id for queue in allocation(member, of, among)] for member in among]


@pytest.mark.parametrize(
    ("count", "among", "expected"),
    [
        (6, 2, [[0, 1, 2], [3, 4, 5]]),
        (4, 3, [[0, 1], [2], [3]]),
        (8, 3, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (2, 4, [[0], [1], [], []]),
        (1, 1, [[0]]),
        (0, 2, [[], []]),
    ],
)
def test_averagely_gives_neighbours_and_the_first_members_one_more(
    count: int, among: int, expected: list[list[int]]
) -> None:
    assert parts(averagely, queues(count), members(among)) == expected


@pytest.mark.parametrize(
    ("count", "among", "expected"),
    [(6, 2, [[0, 2, 4], [1, 3, 5]]), (4, 3, [[0, 3], [1], [2]]), (2, 3, [[0], [1], []])],
)
def test_by_circle_deals_queues_out(count: int, among: int, expected: list[list[int]]) -> None:
    assert parts(averagely_by_circle, queues(count), members(among)) == expected


def test_by_config_gives_what_was_configured_whoever_is_there() -> None:
    assert by_config(queues(2))("me", queues(9), ["others"]) == tuple(queues(2))


@pytest.mark.parametrize(
    ("count", "among", "expected"),
    [(10, 2, [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]), (5, 3, [[0, 3], [1, 4], [2]]), (3, 5, [[0], [1], [2], [], []])],
)
def test_by_machine_room_leaves_other_rooms_out_and_deals_what_is_left_over(
    count: int, among: int, expected: list[list[int]]
) -> None:
    everywhere = [*queues(4, "broker-a"), *queues(count, "room1@a"), *queues(4, "room2@a")]
    assert parts(by_machine_room(["room1", "room3"]), everywhere, members(among)) == expected


def test_nearby_divides_rooms_among_their_own_members_and_rooms_without_any_among_all() -> None:
    allocation = nearby(averagely, lambda queue: queue.broker_name[:2], lambda member: member[:2])
    of = [*queues(4, "r1-a"), *queues(4, "r2-a"), *queues(3, "r3-a")]
    taken = {member: allocation(member, of, ["r1-x", "r1-y", "r2-x"]) for member in ("r1-x", "r1-y", "r2-x")}
    assert [(queue.broker_name[:2], queue.queue_id) for queue in taken["r1-x"]] == [("r1", 0), ("r1", 1), ("r3", 0)]
    assert [(queue.broker_name[:2], queue.queue_id) for queue in taken["r1-y"]] == [("r1", 2), ("r1", 3), ("r3", 1)]
    assert [queue.broker_name[:2] for queue in taken["r2-x"]] == ["r2"] * 4 + ["r3"]


ALL = [averagely, averagely_by_circle, consistent_hash(3), consistent_hash()]


@pytest.mark.parametrize("allocation", ALL)
@pytest.mark.parametrize(("count", "among"), [(20, 10), (10, 20), (7, 3), (16, 16), (1, 5)])
def test_every_queue_is_exactly_one_members(allocation: Allocation, count: int, among: int) -> None:
    given = [queue for member in members(among) for queue in allocation(member, queues(count), members(among))]
    assert sorted(given) == queues(count)


@pytest.mark.parametrize("allocation", ALL)
def test_who_is_not_among_the_members_has_no_queue(allocation: Allocation) -> None:
    assert allocation("stranger", queues(6), members(2)) == ()
    assert allocation("stranger", queues(6), []) == ()


def test_on_the_ring_a_queue_is_the_next_places_member() -> None:
    def place(text: str) -> int:
        return int.from_bytes(md5(text.encode()).digest()[:4], "big")

    ring = sorted((place(f"{member}-{number}"), member) for member in members(4) for number in range(10))
    for queue in queues(40):
        own = place(f"MessageQueue [topic=T, brokerName=broker-a, queueId={queue.queue_id}]")
        expected = next((member for at, member in ring if at >= own), ring[0][1])
        assert [member for member in members(4) if queue in consistent_hash()(member, queues(40), members(4))] == [
            expected
        ]


def test_on_the_ring_a_member_that_leaves_moves_only_its_own_queues() -> None:
    before = {queue: m for m in members(5) for queue in consistent_hash()(m, queues(60), members(5))}
    after = {queue: m for m in members(4) for queue in consistent_hash()(m, queues(60), members(4))}
    assert all(after[queue] == member for queue, member in before.items() if member != "CID-4")
