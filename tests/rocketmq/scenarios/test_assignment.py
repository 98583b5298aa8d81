"""Brokers divide queues among members that ask them, and say whether a queue is pulled or popped."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.client.consumer.config import DividedBy
from system_under_test.rocketmq.consumer_protocol import (
    AssignmentRequest,
    MessageModel,
    RequestMode,
    RequestModeSetting,
    assignments,
    retry_topic,
)
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play
from tests.rocketmq.scenarios.group_member import OK, Member, send, until_got

FOUR_QUEUES = {"topics": {TOPIC: 4}}
POP = RequestModeSetting(topic=TOPIC, group="readers", mode=RequestMode.POP)


def member(cluster: Cluster, name: str, **config: Any) -> Member:
    return Member(cluster, name, divided_by=DividedBy.BROKERS, **config)


async def assigned_to(cluster: Cluster, node: str, client_id: str, **request: Any) -> list[str] | None:
    """`mode queue` of each assignment of this member, None for no answer to that."""
    asked = AssignmentRequest(**{"topic": TOPIC, "group": "readers", "client_id": client_id, **request})
    found = assignments(await cluster.answer(f"{node}:10911", asked.encode()))
    return None if found is None else [f"{one.mode.value} {one.queue.queue_id}" for one in found]


def knows(cluster: Cluster, node: str, *members: str) -> Callable[[], Coroutine[Any, Any, bool]]:
    async def is_known() -> bool:
        command = RemotingCommand.request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "readers"})
        answer = await cluster.answer(f"{node}:10911", command)
        return answer.code == 0 and sorted(json.loads(answer.body)["consumerIdList"]) == sorted(members)

    return is_known


async def parts(cluster: Cluster, names: Sequence[str], **request: Any) -> list[list[str] | None]:
    return [await assigned_to(cluster, "b1", name, **request) for name in names]


def test_a_broker_divides_by_the_strategy_that_is_asked_for():
    async def story(cluster: Cluster) -> None:
        names = ["m1", "m2", "m3"]
        members = [member(cluster, name) for name in names]
        await cluster.until(knows(cluster, "b1", *names), 5)
        assert await parts(cluster, names) == [["PULL 0", "PULL 1"], ["PULL 2"], ["PULL 3"]]
        dealt = await parts(cluster, names, strategy="AVG_BY_CIRCLE")
        assert dealt == [["PULL 0", "PULL 3"], ["PULL 1"], ["PULL 2"]]
        assert await parts(cluster, names, strategy="BY_LUCK") == [None] * 3
        assert await assigned_to(cluster, "b1", "stranger") == []
        assert await assigned_to(cluster, "b1", "m1", group="nobody") is None
        assert await assigned_to(cluster, "b1", "m1", topic="no such topic") is None
        every = [f"PULL {number}" for number in range(4)]
        assert await assigned_to(cluster, "b1", "m1", model=MessageModel.BROADCASTING) == every
        await cluster.until(lambda: members[1].has(2), 25)
        await send(cluster, "b1", 2, "a")
        await until_got(cluster, ["a"], members[1])

    play(story, brokers=1, **FOUR_QUEUES)


def test_members_that_pop_share_queues_as_an_administrator_has_set_it():
    async def story(cluster: Cluster) -> None:
        names = ["m1", "m2", "m3", "m4"]
        members = [member(cluster, name) for name in names]
        await cluster.until(knows(cluster, "b1", *names), 5)
        for shared, expected in (
            (-1, [["POP -1"]] * 4),
            (3, [["POP -1"]] * 4),
            (1, [["POP 0", "POP 1"], ["POP 1", "POP 2"], ["POP 2", "POP 3"], ["POP 3", "POP 0"]]),
        ):
            setting = RequestModeSetting(topic=TOPIC, group="readers", mode=RequestMode.POP, shared_queues=shared)
            assert await cluster.ask("b1", setting.encode()) == OK
            assert await parts(cluster, names) == expected
        assert await assigned_to(cluster, "b1", "m1", topic=retry_topic("readers")) == ["PULL 0"]
        more = [member(cluster, "m5")]
        await cluster.until(knows(cluster, "b1", *names, "m5"), 5)
        # More members than queues: each has one.
        assert await assigned_to(cluster, "b1", "m5") == ["POP 0"]
        assert len(members + more) == 5

    play(story, brokers=1, **FOUR_QUEUES)


def test_what_was_popped_and_failed_or_belonged_to_a_member_that_died_comes_again_with_its_count():
    async def story(cluster: Cluster) -> None:
        assert await cluster.ask("b1", POP.encode()) == OK
        first = member(cluster, "m1", pop_invisible_s=5.0, pop_again_s=1.0, consume_tasks=1)
        first.fails = lambda message: message.body == b"a" and message.reconsume_times == 0
        await send(cluster, "b1", 0, "a", "b")
        await until_got(cluster, ["a", "a+1", "b"], first)
        first.takes_s = 60
        await send(cluster, "b1", 1, "c")
        await until_got(cluster, ["a", "a+1", "b", "c"], first)
        first.consumer.close()
        second = member(cluster, "m2", pop_invisible_s=5.0)
        await until_got(cluster, ["c+1"], second, within_s=60)
        await cluster.sleep(20)
        assert second.got == ["c+1"]

    play(story, brokers=1, **FOUR_QUEUES)


def test_a_request_mode_outlives_a_restart_and_a_change_of_master():
    async def story(cluster: Cluster) -> None:
        assert await cluster.ask("b1", POP.encode()) == OK
        await cluster.sleep(2)  # until it is copied
        await cluster.stop_cleanly("b1")
        await cluster.until_master("b2")
        reader = member(cluster, "m1")
        await cluster.until(knows(cluster, "b2", "m1"), 60)
        assert await assigned_to(cluster, "b2", "m1") == ["POP -1"]
        await cluster.boot("b1")
        await cluster.until(knows(cluster, "b1", "m1"), 60)
        assert await assigned_to(cluster, "b1", "m1") == ["POP -1"]
        reader.consumer.close()

    play(story, slaveSynchronizePeriod=500, **FOUR_QUEUES)


def test_what_no_request_mode_can_be_is_refused_with_public_codes():
    async def story(cluster: Cluster) -> None:
        for value, code in (
            ({"topic": retry_topic("readers"), "consumerGroup": "readers", "mode": "POP"}, "NO_PERMISSION"),
            ({"topic": "no such topic", "consumerGroup": "readers", "mode": "POP"}, "TOPIC_NOT_EXIST"),
            ({"topic": TOPIC, "consumerGroup": "nobody", "mode": "POP"}, "SUBSCRIPTION_GROUP_NOT_EXIST"),
            ({"topic": TOPIC, "consumerGroup": "nobody", "mode": "PUSH"}, "INVALID_PARAMETER"),
            ({"topic": TOPIC, "consumerGroup": "nobody", "mode": ["POP"]}, "INVALID_PARAMETER"),
            ({"topic": TOPIC, "mode": "POP"}, "INVALID_PARAMETER"),
            ([], "INVALID_PARAMETER"),
        ):
            for command in (RequestCode.SET_MESSAGE_REQUEST_MODE,):
                body = json.dumps(value).encode()
                assert await cluster.ask("b1", RemotingCommand.request(command, body=body)) == code
        assert await cluster.ask("b2", POP.encode()) == "NOT_MASTER"
        for body in (b"", b"{", b"[]", b'{"topic": "letters"}', json.dumps({"strategyName": 3}).encode()):
            query = RemotingCommand.request(RequestCode.QUERY_ASSIGNMENT, body=body)
            assert await cluster.ask("b1", query) == "INVALID_PARAMETER"
        assert cluster.dead() == {}

    play(story, autoCreateSubscriptionGroup=False)


@pytest.mark.parametrize("mutant", [None, "retry-unassigned"])
def test_a_broker_divides_topics_that_messages_come_again_from_unless_that_is_forgotten(mutant: str | None):
    async def story(cluster: Cluster) -> None:
        reader = member(cluster, "m1")
        await cluster.until(knows(cluster, "b1", "m1"), 5)
        await cluster.sleep(1)
        expected = ["PULL 0"] if mutant is None else []
        assert await assigned_to(cluster, "b1", "m1", topic=retry_topic("readers")) == expected
        reader.consumer.close()

    play(story, brokers=1, mutant=mutant)
