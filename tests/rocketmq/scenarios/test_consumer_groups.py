"""Groups of consumers: members divide queues, take over from each other, try again what failed, pass nothing over."""

from __future__ import annotations

import json

import pytest

from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.client.consumer.config import Mode
from system_under_test.rocketmq.consumer_group import ConsumerGroup
from system_under_test.rocketmq.consumer_protocol import (
    ConsumeFromWhere,
    MessageModel,
    MessageQueue,
    QueueLockRequest,
    dead_letter_topic,
    locked_queues,
    retry_topic,
)
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play
from tests.rocketmq.scenarios.group_member import OK, Member, send, set_retry_queues, until_got

FOUR_QUEUES = {"topics": {TOPIC: 4}}


def test_members_that_come_and_go_divide_the_queues_at_once_and_go_on_where_the_others_were():
    async def story(cluster: Cluster) -> None:
        first = Member(cluster, "m1")
        await cluster.until(lambda: first.has(0, 1, 2, 3), 5)
        for queue in range(4):
            await send(cluster, "b1", queue, f"a{queue}")
        await until_got(cluster, ["a0", "a1", "a2", "a3"], first)
        await cluster.sleep(6)  # until it is written down; what is not comes again
        second = Member(cluster, "m2")
        await cluster.until(lambda: first.has(0, 1), 5)
        await cluster.until(lambda: second.has(2, 3), 5)
        for queue in range(4):
            await send(cluster, "b1", queue, f"b{queue}")
        await until_got(cluster, ["b2", "b3"], second)
        await cluster.sleep(6)
        await first.consumer.shutdown()
        await cluster.until(lambda: second.has(0, 1, 2, 3), 5)
        await send(cluster, "b1", 0, "c0")
        await until_got(cluster, ["b2", "b3", "c0"], second)
        assert sorted(first.got) == ["a0", "a1", "a2", "a3", "b0", "b1"]

    play(story, brokers=1, **FOUR_QUEUES)


def test_a_member_that_dies_is_replaced_when_its_connection_ends_and_what_it_had_comes_again():
    async def story(cluster: Cluster) -> None:
        first, second = Member(cluster, "m1"), Member(cluster, "m2")
        await cluster.until(lambda: first.has(0, 1), 5)
        first.takes_s = 60
        await send(cluster, "b1", 0, "a")
        await until_got(cluster, ["a"], first)
        first.consumer.close()
        await cluster.until(lambda: second.has(0, 1, 2, 3), 5)
        await until_got(cluster, ["a"], second)

    play(story, brokers=1, **FOUR_QUEUES)


def test_a_message_that_fails_comes_again_with_its_count_and_ends_as_a_dead_letter():
    async def story(cluster: Cluster) -> None:
        member = Member(cluster, "m1", max_reconsume_times=3, rebalance_s=1.0)
        member.fails = lambda message: message.body == b"bad"
        await send(cluster, "b1", 0, "good", "bad")
        # The levels of delay: 10 s, 30 s, a minute.
        await until_got(cluster, ["good", "bad", "bad+1", "bad+2", "bad+3"], member, within_s=120)
        await cluster.sleep(5)
        assert await cluster.read("b1", dead_letter_topic("readers")) == ["bad"]
        assert await cluster.read("b1", retry_topic("readers")) == ["bad"] * 3
        assert len(member.got) == 5

    play(story, brokers=1)


def test_a_group_of_its_own_patience_is_asked_how_often_it_tries():
    async def story(cluster: Cluster) -> None:
        group = ConsumerGroup(name="readers", retry_max_times=1).as_json()
        made = RemotingCommand.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=json.dumps(group).encode())
        assert await cluster.ask("b1", made) == OK
        member = Member(cluster, "m1", rebalance_s=1.0)
        member.fails = lambda message: True
        await send(cluster, "b1", 0, "bad")
        await until_got(cluster, ["bad", "bad+1"], member)
        await cluster.sleep(2)
        assert await cluster.read("b1", dead_letter_topic("readers")) == ["bad"]

    play(story, brokers=1)


@pytest.mark.parametrize(("before", "after"), [(1, 8), (8, 1)])
def test_a_group_that_gets_other_queues_to_retry_from_misses_nothing_that_it_sent_back(before: int, after: int):
    letters = [f"{number}" for number in range(40)]

    async def story(cluster: Cluster) -> None:
        await set_retry_queues(cluster, "b1", before)
        member = Member(cluster, "m1", rebalance_s=1.0)
        member.fails = lambda message: message.reconsume_times == 0
        await send(cluster, "b1", 0, "first")
        await until_got(cluster, ["first", "first+1"], member)
        await set_retry_queues(cluster, "b1", after)
        await send(cluster, "b1", 0, *letters)
        again = [f"{each}+1" for each in ("first", *letters)]
        await until_got(cluster, ["first", *letters, *again], member)
        assert (await cluster.topics("b1"))[retry_topic("readers")].read_queues == max(before, after)

    play(story, brokers=1)


def test_the_next_master_shows_what_was_sent_back_to_queues_that_nobody_copied():
    async def story(cluster: Cluster) -> None:
        member = Member(cluster, "m1", rebalance_s=1.0)
        member.fails = lambda message: True
        await send(cluster, "b1", 0, "first")
        await until_got(cluster, ["first", "first+1"], member)
        await cluster.sleep(25)  # topics are copied
        await set_retry_queues(cluster, "b1", 8)
        await send(cluster, "b1", 0, *"abcdefgh")
        await until_got(cluster, ["first", "first+1", *"abcdefgh"], member)
        member.consumer.close()
        await cluster.sleep(1)
        await cluster.kill("b1")
        await cluster.until_master("b2")
        other = Member(cluster, "m2", rebalance_s=1.0)
        await cluster.until(lambda: has_got(other, {f"{each}+1" for each in "abcdefgh"}), 60)

    play(story, slaveSynchronizePeriod=20_000)


async def has_got(member: Member, letters: set[str]) -> bool:
    return letters <= set(member.got)


def test_in_order_a_message_that_fails_keeps_those_behind_it_waiting():
    async def story(cluster: Cluster) -> None:
        member = Member(cluster, "m1", mode=Mode.ORDERLY, max_reconsume_times=2)
        member.fails = lambda message: message.body == b"bad"
        await send(cluster, "b1", 0, "a", "bad", "b")
        await until_got(cluster, ["a", "bad", "bad+1", "bad+2", "b"], member)
        assert member.got == ["a", "bad", "bad+1", "bad+2", "b"]
        assert await cluster.read("b1", dead_letter_topic("readers")) == ["bad"]

    play(story, brokers=1)


def test_in_order_nobody_else_gets_a_queue_while_its_listener_is_at_work():
    async def story(cluster: Cluster) -> None:
        first = Member(cluster, "m2", mode=Mode.ORDERLY)
        await cluster.until(lambda: first.has(0), 5)
        first.takes_s = 90
        await send(cluster, "b1", 0, "a", "b")
        await until_got(cluster, ["a"], first)
        second = Member(cluster, "m1", mode=Mode.ORDERLY)  # sorts before the other, so the queue is to be its own
        await cluster.sleep(80)
        assert second.got == []
        await until_got(cluster, ["b"], second)
        assert first.got == ["a"]

    play(story, brokers=1)


def test_in_order_the_queue_of_a_member_that_died_is_free_after_a_minute():
    async def story(cluster: Cluster) -> None:
        first = Member(cluster, "m2", mode=Mode.ORDERLY)
        await cluster.until(lambda: first.has(0), 5)
        first.consumer.close()
        second = Member(cluster, "m1", mode=Mode.ORDERLY)
        await send(cluster, "b1", 0, "a")
        await cluster.sleep(30)
        assert second.got == []
        await until_got(cluster, ["a"], second, within_s=40)

    play(story, brokers=1)


@pytest.mark.parametrize("mode", Mode)
def test_a_failover_brings_back_what_was_not_committed_and_passes_nothing_over(mode: Mode):
    async def story(cluster: Cluster) -> None:
        member = Member(cluster, "m1", mode=mode)
        await send(cluster, "b1", 0, "a", "b")
        await until_got(cluster, ["a", "b"], member)
        await cluster.sleep(20)  # offsets are written, and copied
        await cluster.kill("b1")
        await cluster.until_master("b2")
        other = Member(cluster, "m2", mode=mode)
        await send(cluster, "b2", 0, "c", "d")
        await until_got(cluster, ["a", "b", "c", "d"], member, other, within_s=120)

    play(story)


def test_a_group_that_begins_at_the_end_passes_nothing_over_when_its_offset_was_not_copied():
    async def story(cluster: Cluster) -> None:
        member = Member(cluster, "m1", from_where=ConsumeFromWhere.LAST_OFFSET)
        await cluster.until(lambda: member.has(0), 5)
        await send(cluster, "b1", 0, "a")
        await until_got(cluster, ["a"], member)
        member.takes_s = 60
        await send(cluster, "b1", 0, "b")
        await until_got(cluster, ["a", "b"], member)
        member.consumer.close()
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await cluster.committed("b2", "readers") is None
        other = Member(cluster, "m2", from_where=ConsumeFromWhere.LAST_OFFSET)
        await until_got(cluster, ["a", "b"], other)

    play(story, slaveSynchronizePeriod=600_000)


def test_where_queues_are_not_divided_each_member_gets_everything_once_and_keeps_its_own_place():
    async def story(cluster: Cluster) -> None:
        model = {"model": MessageModel.BROADCASTING}
        first, second = Member(cluster, "m1", **model), Member(cluster, "m2", **model)
        await send(cluster, "b1", 0, "a", "b")
        await until_got(cluster, ["a", "b"], first)
        await until_got(cluster, ["a", "b"], second)
        await first.consumer.shutdown()
        await send(cluster, "b1", 0, "c")
        again = Member(cluster, "m1", **model)
        await until_got(cluster, ["c"], again)
        await until_got(cluster, ["a", "b", "c"], second)

    play(story, brokers=1)


def test_an_administrator_sets_a_group_back():
    async def story(cluster: Cluster) -> None:
        member = Member(cluster, "m1")
        await send(cluster, "b1", 0, "a", "b", "c")
        await until_got(cluster, ["a", "b", "c"], member)
        fields = {"group": "readers", "topic": TOPIC, "timestamp": "0", "isForce": "true", "offset": "1"}
        assert await cluster.ask("b1", RemotingCommand.request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields)) == OK
        await until_got(cluster, ["a", "b", "c", "b", "c"], member)
        fields = {**fields, "offset": "", "timestamp": "-1"}
        assert await cluster.ask("b1", RemotingCommand.request(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields)) == OK
        assert await cluster.committed("b1", "readers") == 3

    play(story, brokers=1)


def test_what_was_sent_back_survives_the_master_that_took_it():
    async def story(cluster: Cluster) -> None:
        member = Member(cluster, "m1", rebalance_s=1.0)
        member.fails = lambda message: message.reconsume_times == 0
        await send(cluster, "b1", 0, "a")
        await until_got(cluster, ["a", "a+1"], member)
        member.consumer.close()
        await cluster.kill("b1")
        await cluster.until_master("b2")
        # How far delayed messages were delivered is copied to slaves now and then: it may be delivered once more.
        assert set(await cluster.read("b2", retry_topic("readers"))) == {"a"}
        other = Member(cluster, "m2", group="others", rebalance_s=1.0)
        await until_got(cluster, ["a"], other)

    play(story)


def test_all_brokers_know_the_members_and_say_how_they_consume():
    async def story(cluster: Cluster) -> None:
        members = Member(cluster, "m1"), Member(cluster, "m2")
        await cluster.until(lambda: members[0].has(0), 5)
        await cluster.sleep(1)
        asked = {"consumerGroup": "readers"}
        for node in ("b1", "b2"):
            listed = await cluster.answer(
                f"{node}:10911", RemotingCommand.request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, asked)
            )
            assert sorted(json.loads(listed.body)["consumerIdList"]) == ["m1", "m2"]
        connections = RemotingCommand.request(RequestCode.GET_CONSUMER_CONNECTION_LIST, asked)
        body = json.loads((await cluster.answer("b1:10911", connections)).body)
        assert sorted(one["clientId"] for one in body["connectionSet"]) == ["m1", "m2"]
        assert (body["consumeType"], body["messageModel"]) == ("CONSUME_PASSIVELY", "CLUSTERING")
        assert list(body["subscriptionTable"]) == ["%RETRY%readers", TOPIC]
        await members[0].consumer.shutdown()
        members[1].consumer.close()
        await cluster.sleep(1)
        assert await cluster.ask("b2", connections) == "CONSUMER_NOT_ONLINE"
        members_of = RemotingCommand.request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, asked)
        assert await cluster.ask("b1", members_of) == "SYSTEM_ERROR"

    play(story)


def test_locks_are_the_masters_alone_and_its_successor_begins_without_any():
    async def story(cluster: Cluster) -> None:
        async def locked(node: str, client_id: str) -> int:
            request = QueueLockRequest(
                group="readers", client_id=client_id, queues=(MessageQueue(TOPIC, "broker-a", 0),)
            )
            answer = await cluster.answer(f"{node}:10911", request.encode(RequestCode.LOCK_BATCH_MQ))
            return len(locked_queues(answer)) if answer.code == 0 else -1

        assert await locked("b1", "x") == 1
        assert await locked("b1", "y") == 0
        assert await locked("b2", "y") == -1
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await locked("b2", "y") == 1
        assert await locked("b2", "x") == 0

    play(story)


STRICT = {"lockInStrictMode": True, "totalReplicas": 3}


async def locked(cluster: Cluster, node: str, client_id: str) -> int:
    """How many queues this broker gives the member; -1 where it refuses to."""
    request = QueueLockRequest(group="readers", client_id=client_id, queues=(MessageQueue(TOPIC, "broker-a", 0),))
    answer = await cluster.answer(f"{node}:10911", request.encode(RequestCode.LOCK_BATCH_MQ))
    return len(locked_queues(answer)) if answer.code == 0 else -1


async def unlocked(cluster: Cluster, node: str, client_id: str) -> str:
    request = QueueLockRequest(group="readers", client_id=client_id, queues=(MessageQueue(TOPIC, "broker-a", 0),))
    return await cluster.ask(node, request.encode(RequestCode.UNLOCK_BATCH_MQ))


@pytest.mark.parametrize("mutant", [None, "strict-lock-unnoted"])
def test_a_strict_lock_outlives_its_master_until_it_is_given_up_unless_replicas_forget_it(mutant: str | None):
    async def story(cluster: Cluster) -> None:
        assert await locked(cluster, "b1", "x") == 1
        assert await locked(cluster, "b1", "y") == 0
        assert await locked(cluster, "b2", "y") == -1
        await cluster.kill("b1")
        await cluster.until(lambda: is_either_master(cluster), 30)
        master = await cluster.master()
        if mutant is not None:
            assert await locked(cluster, master, "y") == 1
            return
        assert await locked(cluster, master, "y") == 0
        assert await locked(cluster, master, "x") == 1
        assert await unlocked(cluster, master, "x") == OK
        assert await locked(cluster, master, "y") == 1
        await cluster.sleep(61)
        assert await locked(cluster, master, "x") == 1

    play(story, brokers=3, mutant=mutant, **STRICT)


async def is_either_master(cluster: Cluster) -> bool:
    master = await cluster.master()
    if master not in ("b2", "b3"):
        return False
    await cluster.until_master(master, 5)
    return True


def test_a_broker_that_gave_strict_locks_before_gives_none_until_they_are_over():
    async def story(cluster: Cluster) -> None:
        assert await locked(cluster, "b1", "x") == 1
        await cluster.kill("b1")
        await cluster.boot("b1")
        await cluster.until_master("b1", 60)
        assert await locked(cluster, "b1", "y") == 0
        await cluster.sleep(61)
        assert await locked(cluster, "b1", "y") == 1

    play(story, brokers=1, **{**STRICT, "totalReplicas": 1})


def test_without_most_of_the_replicas_nobody_gets_a_strict_lock():
    async def story(cluster: Cluster) -> None:
        await cluster.kill("b2", "b3")
        assert await locked(cluster, "b1", "x") == 0
        await cluster.boot("b2")
        await cluster.until_members(1, 2)
        assert await locked(cluster, "b1", "x") == 1

    play(story, brokers=3, **STRICT)
