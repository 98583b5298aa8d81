"""Messages delayed by a level: when they come out, and that a change of master, or a crash, loses none."""

from __future__ import annotations

import pytest

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.broker.runtime_info import DELAY_PROGRESS
from system_under_test.rocketmq.client.admin_client import AdminClient
from system_under_test.rocketmq.message_protocol import SendRequest
from system_under_test.rocketmq.topic import TopicConfig
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play

OK = "SUCCESS"
LEVELS = {"messageDelayLevel": "1s 5s 20s", "slaveSynchronizePeriod": 1_000, "flushDiskType": "SYNC_FLUSH"}


async def send_later(cluster: Cluster, node: str, level: object, *letters: str, topic: str = TOPIC) -> list[str]:
    properties = f"KEYS\x01k\x02DELAY\x01{level}\x02"
    return [
        await cluster.ask(
            node,
            SendRequest(
                topic=topic, queue_id=0, body=letter.encode(), born_timestamp_ms=0, properties=properties
            ).encode(),
        )
        for letter in letters
    ]


async def until_read(cluster: Cluster, node: str, letters: list[str], within_s: float = 30) -> None:
    async def are_there() -> bool:
        return set(await cluster.read(node)) >= set(letters)

    await cluster.until(are_there, within_s)


@pytest.mark.parametrize("mode", ["SINGLE", "LEVEL", "ASYNC"])
def test_a_message_comes_out_after_the_delay_of_its_level_and_not_before(mode):
    async def story(cluster: Cluster) -> None:
        assert await send_later(cluster, "b1", 2, "five") == [OK]
        assert await send_later(cluster, "b1", 1, "one", "one more") == [OK, OK]
        assert await send_later(cluster, "b1", 0, "now") == [OK]
        assert await cluster.read("b1") == ["now"]
        await cluster.sleep(0.9)
        assert await cluster.read("b1") == ["now"]
        await cluster.sleep(0.3)
        assert await cluster.read("b1") == ["now", "one", "one more"]
        await cluster.sleep(3.5)
        assert await cluster.read("b1") == ["now", "one", "one more"]
        await cluster.sleep(0.5)
        assert await cluster.read("b1") == ["now", "one", "one more", "five"]

    play(story, brokers=2, scheduleDeliveryMode=mode, **LEVELS)


def test_administrators_see_how_far_each_level_has_come():
    async def story(cluster: Cluster) -> None:
        assert await send_later(cluster, "b1", 1, "one", "one more") == [OK, OK]
        assert await send_later(cluster, "b1", 3, "twenty") == [OK]
        await cluster.sleep(3)
        info = await AdminClient(cluster.host("administrator")).runtime_info("b1:10911")
        levels = {name: shown for name, shown in info.items() if name.startswith(DELAY_PROGRESS)}
        assert levels == {"scheduleMessageOffset_1": "2,2", "scheduleMessageOffset_3": "0,1"}

    play(story, brokers=1, **LEVELS)


def test_a_level_that_is_too_high_means_the_highest():
    async def story(cluster: Cluster) -> None:
        assert await send_later(cluster, "b1", 99, "late") == [OK]
        await cluster.sleep(19)
        assert await cluster.read("b1") == []
        await cluster.sleep(1.5)
        assert await cluster.read("b1") == ["late"]

    play(story, brokers=1, **LEVELS)


def test_clients_see_nothing_of_where_messages_wait():
    async def story(cluster: Cluster) -> None:
        assert await send_later(cluster, "b1", 1, "a") == [OK]
        assert await cluster.send("b1", "x", topic="SCHEDULE_TOPIC_XXXX") == ["TOPIC_NOT_EXIST"]
        assert "SCHEDULE_TOPIC_XXXX" not in await cluster.topics("b1")
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert "SCHEDULE_TOPIC_XXXX" not in await cluster.topics("b2")

    play(story, **LEVELS)


@pytest.mark.parametrize("mode", ["SINGLE", "LEVEL", "ASYNC"])
def test_the_next_master_delivers_what_waits_and_passes_over_what_was_delivered(mode):
    async def story(cluster: Cluster) -> None:
        early, late = ["a", "b", "c"], ["d", "e"]
        assert await send_later(cluster, "b1", 1, *early) == [OK] * 3
        assert await send_later(cluster, "b1", 3, *late) == [OK] * 2
        await until_read(cluster, "b1", early)
        await cluster.sleep(3)  # the slave copies how far delivery has come
        await cluster.kill("b1")
        await cluster.until_master("b2")
        await until_read(cluster, "b2", late)
        assert await cluster.read("b2") == [*early, *late]

    play(story, scheduleDeliveryMode=mode, **LEVELS)


def test_progress_that_was_not_copied_means_that_messages_come_again_and_none_is_lost():
    async def story(cluster: Cluster) -> None:
        assert await send_later(cluster, "b1", 1, "a", "b") == [OK, OK]
        await until_read(cluster, "b1", ["a", "b"])
        await cluster.kill("b1")
        await cluster.until_master("b2")
        await cluster.sleep(2)
        assert sorted(await cluster.read("b2")) == ["a", "a", "b", "b"]

    play(story, messageDelayLevel="1s", slaveSynchronizePeriod=60_000)


@pytest.mark.parametrize("mode", ["LEVEL", "ASYNC"])
def test_what_is_due_while_too_few_are_in_sync_comes_out_when_there_are_enough(mode):
    async def story(cluster: Cluster) -> None:
        assert await send_later(cluster, "b1", 1, "a", "b", "c") == [OK] * 3
        await cluster.kill("b2")
        await cluster.until_members(1)
        await cluster.sleep(2)
        assert await cluster.read("b1") == []
        await cluster.boot("b2")
        await until_read(cluster, "b1", ["a", "b", "c"])
        assert sorted(await cluster.read("b1")) == ["a", "b", "c"]

    play(story, minInSyncReplicas=2, scheduleDeliveryMode=mode, **LEVELS)


def test_a_message_whose_topic_the_next_master_has_never_heard_of_comes_out_there():
    async def story(cluster: Cluster) -> None:
        assert await cluster.make_topic("b1", TopicConfig.of("young", 1)) == OK
        assert await send_later(cluster, "b1", 2, "a", topic="young") == [OK]
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert "young" not in await cluster.topics("b2")

        async def is_there() -> bool:
            return await cluster.read("b2", "young") == ["a"]

        await cluster.until(is_there, 10)

    play(story, messageDelayLevel="1s 5s", slaveSynchronizePeriod=60_000)


def test_a_message_whose_topic_is_deleted_meanwhile_does_not_bring_it_back():
    async def story(cluster: Cluster) -> None:
        assert await cluster.make_topic("b1", TopicConfig.of("short", 1)) == OK
        assert await send_later(cluster, "b1", 1, "a", topic="short") == [OK]
        assert await cluster.delete_topic("b1", "short") == OK
        await cluster.sleep(2)
        assert "short" not in await cluster.topics("b1")
        assert await send_later(cluster, "b1", 1, "b") == [OK]
        await until_read(cluster, "b1", ["b"])

    play(story, brokers=1, **LEVELS)


def test_a_message_whose_queue_is_taken_from_its_topic_meanwhile_comes_out_in_another():
    async def story(cluster: Cluster) -> None:
        assert await cluster.make_topic("b1", TopicConfig.of("wide", 4)) == OK
        request = SendRequest(topic="wide", queue_id=3, body=b"a", born_timestamp_ms=0, properties="DELAY\x011\x02")
        assert await cluster.ask("b1", request.encode()) == OK
        assert await cluster.make_topic("b1", TopicConfig.of("wide", 1)) == OK
        await cluster.sleep(2)
        assert await cluster.read("b1", "wide") == ["a"]

    play(story, brokers=1, **LEVELS)


def test_progress_is_asked_for_and_told_as_rocketmq_does():
    async def story(cluster: Cluster) -> None:
        assert await send_later(cluster, "b1", 1, "a", "b") == [OK, OK]
        await until_read(cluster, "b1", ["a", "b"])
        await cluster.sleep(1)
        answer = await cluster.answer("b1:10911", RemotingCommand.request(RequestCode.GET_ALL_DELAY_OFFSET))
        assert answer.code == ResponseCode.SUCCESS
        assert answer.body == b'{"offsetTable": {"1": 2}}'

    play(story, brokers=1, **LEVELS)
