"""Who answers consumers, as transcripts: the master while it lives, slaves as they are configured, and without it.

b1 is the first master, of epoch 1. Letters stand for messages.
"""

from __future__ import annotations

import json

import pytest

from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.message_protocol import PullAnswer, PullRequest
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play

OK = "SUCCESS"
WAITED_IN_VAIN = "FLUSH_SLAVE_TIMEOUT"


async def suggestion(cluster: Cluster, node: str, start: int = 0, group: str = "readers") -> tuple[int, int]:
    """How many letters a pull of one gives there, and whom to ask next."""
    request = PullRequest(topic=TOPIC, queue_id=0, queue_offset=start, max_count=1, consumer_group=group)
    answer = PullAnswer.decode(await cluster.answer(f"{node}:10911", request.encode()))
    return len(answer.data) and 1, answer.suggested_broker_id


def test_by_default_a_slave_answers_only_while_it_does_not_hear_its_master():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.sleep(1)
        pull = PullRequest(topic=TOPIC, queue_id=0, queue_offset=0, max_count=1, consumer_group="readers").encode()
        assert await cluster.ask("b1", pull) == OK
        assert await cluster.ask("b2", pull) == "SYSTEM_BUSY"
        # Without controllers nobody takes the master's place.
        await cluster.kill("c1", "c2", "c3")
        await cluster.kill("b1")
        await cluster.sleep(2)
        assert await suggestion(cluster, "b2") == (1, 2)
        assert await cluster.read("b2") == ["a"]

    play(story, slaveReadEnable=False)


def test_consumers_go_on_from_the_slave_while_the_master_is_away_and_come_back_to_it():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a", "b") == [OK, OK]
        await cluster.sleep(1)
        client = cluster.client()
        assert (await client.consume(TOPIC, 0, 0, 1, "readers")).broker == "b1:10911"
        await cluster.kill("c1", "c2")
        await cluster.kill("b1")
        await cluster.sleep(2)
        with pytest.raises(ClientError):
            await client.consume(TOPIC, 0, 1, 1, "readers")
        pulled = await client.consume(TOPIC, 0, 1, 1, "readers")
        assert (pulled.broker, pulled.messages) == ("b2:10911", ((1, b"b"),))

        await cluster.boot("c1", "c2", "b1")
        await cluster.until_members(1, 2)

        async def back_at_the_master() -> bool:
            return (await client.consume(TOPIC, 0, 2, 1, "readers")).broker == f"{await cluster.master()}:10911"

        await cluster.until(back_at_the_master, 10)

    play(story, slaveReadEnable=False)


def test_a_slave_that_has_nothing_sends_readers_to_the_master_at_once():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        await cluster.until_equal("b1", "b2")
        fields = {"consumerGroup": "c", "topic": TOPIC, "queueId": "0", "queueOffset": "1", "maxMsgNums": "1"}
        waiting = {**fields, "sysFlag": "2", "suspendTimeoutMillis": "20000"}
        started_s = cluster.now_s
        answer = await cluster.ask("b2", RemotingCommand.request(RequestCode.PULL_MESSAGE, waiting))
        assert answer == "PULL_RETRY_IMMEDIATELY"
        assert cluster.now_s - started_s < 1
        assert await suggestion(cluster, "b2") == (1, 0)

    play(story)


def test_who_is_far_behind_is_sent_to_the_slave_that_its_group_names():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", *("x" * 500 for _ in range(4))) == [OK] * 4
        group = ConsumerGroup(name="slow", broker_id_when_slow=2)
        body = json.dumps(group.as_json()).encode()
        make = RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
        assert await cluster.ask("b1", make) == OK
        # After the first letter three more follow, of 600 bytes or so each, after the third one.
        assert await suggestion(cluster, "b1", 0, "slow") == (1, 2)
        assert await suggestion(cluster, "b1", 0, "readers") == (1, 1)
        assert await suggestion(cluster, "b1", 2, "slow") == (1, 0)
        client = cluster.client()
        brokers = [(await client.consume(TOPIC, 0, offset, 1, "slow")).broker for offset in (0, 1)]
        assert brokers == ["b1:10911", "b2:10911"]

    play(story, physicalMemorySize=1000, accessMessageInMemoryMaxRatio=100)


@pytest.mark.parametrize(("uncommitted", "seen"), [(False, []), (True, ["a"])])
def test_10_without_all_acks_readers_see_a_tail_that_may_be_lost_only_where_that_is_wanted(uncommitted, seen):
    async def story(cluster: Cluster) -> None:
        await cluster.cut(("b1", "b2"))
        assert await cluster.send("b1", "a") == [OK]
        assert await cluster.read("b1") == seen
        assert all(event["offset"] == 0 for event in cluster.reported("b1", "confirmed"))
        await cluster.kill("b1")
        await cluster.heal()
        await cluster.until_master("b2")
        assert await cluster.send("b2", "b") == [OK]
        await cluster.boot("b1")
        await cluster.until_equal("b1", "b2")
        assert await cluster.read("b1") == ["b"]

    play(story, allAckInSyncStateSet=False, inSyncReplicas=1, readUnCommitted=uncommitted)
