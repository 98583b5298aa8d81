"""Topics and groups of consumers that are made, changed and deleted while brokers run, and what a failover leaves."""

from __future__ import annotations

import json

import pytest

from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.message_protocol import PullRequest, SendRequest
from system_under_test.rocketmq.topic import READ, TopicConfig
from tests.rocketmq.scenarios.broker_cluster import CONTROLLERS, TOPIC, Cluster, play

OK = "SUCCESS"
NEWS = TopicConfig(name="news", read_queues=4, write_queues=2)


async def until_route(cluster: Cluster, topic: str, **expected: int) -> None:
    """All NameServers show the topic so, or, if nothing is expected, not at all."""

    async def is_shown() -> bool:
        routes = [await cluster.route(topic, name) for name in CONTROLLERS]
        if not expected:
            return routes == [None] * len(CONTROLLERS)
        return all(
            route is not None and all(getattr(route, name) == value for name, value in expected.items())
            for route in routes
        )

    await cluster.until(is_shown, 5)


def test_a_topic_made_at_run_time_is_shown_by_the_nameservers_and_takes_messages_in_its_queues():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "too soon", topic="news") == ["TOPIC_NOT_EXIST"]
        assert await cluster.make_topic("b1", NEWS) == OK
        await until_route(cluster, "news", read_queues=4, write_queues=2, permission=6)
        assert await cluster.send("b1", "a", topic="news") == [OK]
        assert await cluster.read("b1", "news") == ["a"]
        send = {"producerGroup": "p", "topic": "news", "bornTimestamp": "0"}
        for queue, code in (("1", OK), ("2", "INVALID_PARAMETER")):
            command = RemotingCommand.request(RequestCode.SEND_MESSAGE, {**send, "queueId": queue})
            assert await cluster.ask("b1", command) == code
        pull = {"consumerGroup": "c", "topic": "news", "queueOffset": "0", "maxMsgNums": "1"}
        for queue, code in (("3", "PULL_NOT_FOUND"), ("4", "INVALID_PARAMETER")):
            command = RemotingCommand.request(RequestCode.PULL_MESSAGE, {**pull, "queueId": queue})
            assert await cluster.ask("b1", command) == code
        listed = await cluster.answer(
            "c2:9876", RemotingCommand.request(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        )
        assert json.loads(listed.body)["topicList"] == [TOPIC, "news"]

    play(story, brokers=1)


def test_a_topic_outlives_a_loss_of_power_and_so_does_its_deletion():
    async def story(cluster: Cluster) -> None:
        assert await cluster.make_topic("b1", NEWS) == OK
        assert await cluster.delete_topic("b1", TOPIC) == OK
        await cluster.power_off("b1")
        await cluster.boot("b1")
        await cluster.until_master("b1")
        assert await cluster.topics("b1") == {"news": NEWS}
        await until_route(cluster, "news", write_queues=2)
        await until_route(cluster, TOPIC)

    play(story, brokers=1)


def test_a_topic_may_be_closed_to_writers_and_opened_again():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a") == [OK]
        assert (
            await cluster.make_topic("b1", TopicConfig(name=TOPIC, read_queues=1, write_queues=1, permission=READ))
            == OK
        )
        await until_route(cluster, TOPIC, permission=READ)
        assert await cluster.send("b1", "b") == ["NO_PERMISSION"]
        assert await cluster.read("b1") == ["a"]
        assert (
            await cluster.make_topic("b1", TopicConfig(name=TOPIC, read_queues=1, write_queues=1, permission=0)) == OK
        )
        assert await cluster.read("b1") == []
        assert await cluster.make_topic("b1", TopicConfig.of(TOPIC, 3)) == OK
        assert await cluster.send("b1", "c") == [OK]
        assert await cluster.read("b1") == ["a", "c"]
        await until_route(cluster, TOPIC, permission=6, write_queues=3)

    play(story, brokers=1)


def test_a_deleted_topic_takes_its_messages_and_its_groups_offsets_with_it_for_good():
    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", "a", "b") == [OK, OK]
        await cluster.commit("b1", "readers", 2)
        assert await cluster.delete_topic("b1", TOPIC) == OK
        assert await cluster.delete_topic("b1", TOPIC) == OK
        await until_route(cluster, TOPIC)
        assert await cluster.send("b1", "c") == ["TOPIC_NOT_EXIST"]
        for _ in range(2):
            assert await cluster.make_topic("b1", TopicConfig.of(TOPIC, 1)) == OK
            assert await cluster.committed("b1", "readers") is None
            assert await cluster.read("b1") == []
            assert await cluster.read("b1", start=2) == []
            await cluster.power_off("b1")
            await cluster.boot("b1")
            await cluster.until_master("b1")
        assert await cluster.send("b1", "new") == [OK]
        assert await cluster.read("b1", start=2) == ["new"]

    play(story, brokers=1)


def test_a_pull_that_waits_hears_that_its_topic_is_gone():
    async def story(cluster: Cluster) -> None:
        await cluster.make_topic("b1", NEWS)
        request = PullRequest(
            topic="news", queue_id=0, queue_offset=0, max_count=1, consumer_group="g", suspend_timeout_ms=30_000
        )
        waiting = cluster.begin(cluster.ask("b1", request.encode()))
        await cluster.sleep(1)
        started_s = cluster.now_s
        assert await cluster.delete_topic("b1", "news") == OK
        assert await waiting == "TOPIC_NOT_EXIST"
        assert cluster.now_s - started_s < 1

    play(story, brokers=1)


def test_a_failover_keeps_topics_their_messages_groups_and_how_far_these_have_read():
    async def story(cluster: Cluster) -> None:
        assert await cluster.make_topic("b1", NEWS) == OK
        assert await cluster.make_topic("b1", TopicConfig.of("old", 1)) == OK
        assert await cluster.delete_topic("b1", "old") == OK
        assert await make_group(cluster, "b1", {"groupName": "silent", "consumeEnable": False}) == OK
        assert await cluster.send("b1", "a", "b", "c", topic="news") == [OK] * 3
        await cluster.commit("b1", "readers", 2, "news")
        await cluster.until_equal("b1", "b2")
        await cluster.sleep(21)
        assert await cluster.topics("b2") == await cluster.topics("b1")
        assert await cluster.committed("b2", "readers", "news") == 2
        await cluster.power_off("b1")
        await cluster.until_master("b2")
        await until_route(cluster, "news", read_queues=4, write_queues=2)
        await until_route(cluster, "old")
        assert await cluster.committed("b2", "readers", "news") == 2
        assert await cluster.read("b2", "news", start=2) == ["c"]
        assert await cluster.send("b2", "d", topic="news") == [OK]
        assert await pull(cluster, "b2", "silent") == "NO_PERMISSION"
        await cluster.boot("b1")
        await cluster.until_members(1, 2)
        assert await cluster.delete_topic("b2", "news") == OK
        await cluster.sleep(21)
        assert sorted(await cluster.topics("b1")) == [TOPIC]
        assert await cluster.committed("b1", "readers", "news") is None

    play(story)


def test_a_topic_that_no_slave_copied_stays_if_it_has_messages():
    async def story(cluster: Cluster) -> None:
        assert await cluster.make_topic("b1", NEWS) == OK
        assert await cluster.send("b1", "a", "b", topic="news") == [OK, OK]
        assert sorted(await cluster.topics("b2")) == [TOPIC]
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await cluster.read("b2", "news") == ["a", "b"]
        await until_route(cluster, "news", read_queues=1)

    play(story, slaveSynchronizePeriod=3_600_000)


def test_a_deletion_that_a_new_master_did_not_hear_of_passes_over_nothing_that_it_takes():
    """The old master forgot a topic up to an offset that the new one then writes at."""

    async def story(cluster: Cluster) -> None:
        assert await cluster.make_topic("b1", NEWS) == OK
        assert await cluster.send("b1", "a", topic="news") == [OK]
        await cluster.sleep(2)
        await cluster.isolate("b1")
        assert await cluster.send("b1", *"xyz", topic="news") == ["FLUSH_SLAVE_TIMEOUT"] * 3
        assert await cluster.delete_topic("b1", "news") == OK
        await cluster.until_master("b2")
        assert await cluster.send("b2", "b", "c", topic="news") == [OK, OK]
        await cluster.heal()
        await cluster.until_members(1, 2)
        await cluster.sleep(2)
        assert await cluster.read("b1", "news") == await cluster.read("b2", "news") == ["a", "b", "c"]
        await cluster.kill("b2")
        await cluster.until_master("b1")
        assert await cluster.read("b1", "news") == ["a", "b", "c"]

    play(story, slaveSynchronizePeriod=1_000)


def test_only_the_master_of_the_epoch_that_a_slave_follows_answers_it():
    async def story(cluster: Cluster) -> None:
        asked = {
            code: [
                await cluster.ask(node, RemotingCommand.request(code, {"masterEpoch": epoch}))
                for node, epoch in (("b1", "1"), ("b1", "2"), ("b1", "0"), ("b2", "1"))
            ]
            for code in (
                RequestCode.GET_ALL_TOPIC_CONFIG,
                RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
                RequestCode.GET_ALL_CONSUMER_OFFSET,
            )
        }
        assert list(asked.values()) == [[OK, "NOT_MASTER", "NOT_MASTER", "NOT_MASTER"]] * 3

    play(story)


def test_while_a_topic_is_being_deleted_it_takes_nothing_and_is_not_made_again():
    async def story(cluster: Cluster) -> None:
        deleting = cluster.begin(cluster.delete_topic("b1", TOPIC))
        meanwhile = [
            cluster.begin(question)
            for question in (
                cluster.ask("b1", SendRequest(topic=TOPIC, queue_id=0, body=b"", born_timestamp_ms=0).encode()),
                cluster.make_topic("b1", TopicConfig.of(TOPIC, 1)),
                cluster.delete_topic("b1", TOPIC),
            )
        ]
        assert [await answer for answer in meanwhile] == ["TOPIC_NOT_EXIST", "SYSTEM_BUSY", "SYSTEM_BUSY"]
        assert await deleting == OK
        assert await cluster.make_topic("b1", TopicConfig.of(TOPIC, 1)) == OK

    play(story, brokers=1)


def test_only_the_master_changes_topics_groups_and_offsets():
    async def story(cluster: Cluster) -> None:
        assert await cluster.make_topic("b2", NEWS) == "NOT_MASTER"
        assert await cluster.delete_topic("b2", TOPIC) == "NOT_MASTER"
        assert await make_group(cluster, "b2", {"groupName": "g"}) == "NOT_MASTER"
        delete = RemotingCommand.request(RequestCode.DELETE_SUBSCRIPTIONGROUP, {"groupName": "g"})
        assert await cluster.ask("b2", delete) == "NOT_MASTER"
        commit = {"consumerGroup": "g", "topic": TOPIC, "queueId": "0", "commitOffset": "0"}
        assert (
            await cluster.ask("b2", RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, commit)) == "NOT_MASTER"
        )
        assert sorted(await cluster.topics("b2")) == [TOPIC]

    play(story)


@pytest.mark.parametrize(
    "changes",
    [
        {"topic": ""},
        {"topic": "with space"},
        {"topic": "plus+1"},
        {"topic": "ü"},
        {"topic": "../config"},
        {"topic": "x" * 128},
        {"topic": "TBW102"},
        {"topic": "SCHEDULE_TOPIC_XXXX"},
        {"topic": "rmq_sys_mine"},
        {"readQueueNums": "0"},
        {"writeQueueNums": "65537"},
        {"writeQueueNums": "-1"},
        {"writeQueueNums": "9" * 400},
        {"readQueueNums": "two"},
        {"perm": "8"},
        {"perm": "-1"},
        {"topicSysFlag": str(2**31)},
        {"attributes": "+message.type=DELAY"},
        {"topicFilterType": "MULTI_TAG"},
    ],
    ids=str,
)
def test_a_topic_that_cannot_be_is_refused(changes):
    async def story(cluster: Cluster) -> None:
        fields = {**TopicConfig.of("fine", 1).as_fields(), **changes}
        command = RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_TOPIC, fields)
        assert await cluster.ask("b1", command) == "INVALID_PARAMETER"
        assert sorted(await cluster.topics("b1")) == [TOPIC]

    play(story, brokers=1)


def test_a_send_makes_its_topic_where_brokers_may():
    async def story(cluster: Cluster) -> None:
        fields = {"producerGroup": "p", "queueId": "0", "bornTimestamp": "0", "defaultTopic": "TBW102"}
        for name, wanted, code in (
            ("few", "3", OK),
            ("many", "100", OK),
            ("none", "0", OK),
            ("not this one", "4", "INVALID_PARAMETER"),
            ("rmq_sys_x", "4", "INVALID_PARAMETER"),
        ):
            send = {**fields, "topic": name, "defaultTopicQueueNums": wanted}
            assert await cluster.ask("b1", RemotingCommand.request(RequestCode.SEND_MESSAGE, send, b"a")) == code
        other = {**fields, "topic": "other", "defaultTopic": TOPIC}
        assert await cluster.ask("b1", RemotingCommand.request(RequestCode.SEND_MESSAGE, other)) == "TOPIC_NOT_EXIST"
        made = await cluster.topics("b1")
        assert {name: topic.write_queues for name, topic in made.items()} == {
            TOPIC: 1,
            "TBW102": 8,
            "few": 3,
            "many": 8,
            "none": 1,
        }
        assert made["few"].permission == 6
        assert await cluster.read("b1", "few") == ["a"]
        await until_route(cluster, "few", write_queues=3)
        await until_route(cluster, "TBW102", permission=7)
        await cluster.power_off("b1")
        await cluster.boot("b1")
        await cluster.until_master("b1")
        assert await cluster.read("b1", "few") == ["a"]

    play(story, brokers=1, autoCreateTopicEnable=True)


def test_messages_at_once_make_their_topic_once():
    async def story(cluster: Cluster) -> None:
        request = SendRequest(topic="wished", queue_id=0, body=b"", born_timestamp_ms=0)
        sends = [cluster.begin(cluster.ask("b1", request.encode())) for _ in range(20)]
        assert [await send for send in sends] == [OK] * 20
        listed = await cluster.answer("b1:10911", RemotingCommand.request(RequestCode.GET_ALL_TOPIC_CONFIG))
        assert json.loads(listed.body)["dataVersion"]["counter"] == 1

    play(story, brokers=1, autoCreateTopicEnable=True)


def test_a_client_finds_a_broker_that_makes_its_topic():
    async def story(cluster: Cluster) -> None:
        hopeful, strict = cluster.client(default_topic="TBW102"), cluster.client()
        sent = await hopeful.send("wished", 2, b"a")
        assert (sent.queue_id, sent.queue_offset) == (2, 0)
        await until_route(cluster, "wished", write_queues=4)
        pulled = await strict.pull("wished", 2, 0, 10, "g")
        assert pulled.messages == ((0, b"a"),)
        with pytest.raises(ClientError) as refusal:
            await strict.send("not wished", 0, b"a")
        assert (refusal.value.code, refusal.value.definite) == ("no-route", True)

    play(story, autoCreateTopicEnable=True)


def test_groups_are_made_listed_closed_and_deleted():
    async def story(cluster: Cluster) -> None:
        assert await pull(cluster, "b1", "readers") == "SUBSCRIPTION_GROUP_NOT_EXIST"
        assert await make_group(cluster, "b1", {"groupName": "readers", "retryMaxTimes": 3}) == OK
        assert await cluster.send("b1", "a") == [OK]
        assert await pull(cluster, "b1", "readers") == OK
        await cluster.commit("b1", "readers", 1)
        await cluster.power_off("b1")
        await cluster.boot("b1")
        await cluster.until_master("b1")
        listed = await cluster.answer("b1:10911", RemotingCommand.request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG))
        assert json.loads(listed.body)["subscriptionGroupTable"]["readers"]["retryMaxTimes"] == 3
        assert await make_group(cluster, "b1", {"groupName": "readers", "consumeEnable": False}) == OK
        assert await pull(cluster, "b1", "readers") == "NO_PERMISSION"
        fields = {"groupName": "readers", "cleanOffset": "true"}
        assert await cluster.ask("b1", RemotingCommand.request(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields)) == OK
        assert await cluster.committed("b1", "readers") is None
        assert await pull(cluster, "b1", "readers") == "SUBSCRIPTION_GROUP_NOT_EXIST"

    play(story, brokers=1, autoCreateSubscriptionGroup=False)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"groupName":7}', b'{"groupName":"a b"}', b'{"groupName":"g","retryMaxTimes":"x"}', b"NaN"],
)
def test_a_group_that_cannot_be_is_refused(body):
    async def story(cluster: Cluster) -> None:
        command = RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)
        assert await cluster.ask("b1", command) == "INVALID_PARAMETER"

    play(story, brokers=1)


async def make_group(cluster: Cluster, node: str, group: dict[str, object]) -> str:
    body = json.dumps(group).encode()
    return await cluster.ask(node, RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body))


async def pull(cluster: Cluster, node: str, group: str) -> str:
    request = PullRequest(topic=TOPIC, queue_id=0, queue_offset=0, max_count=1, consumer_group=group)
    return await cluster.ask(node, request.encode())
