"""POP: messages that are given out, acknowledged, kept, and come again, with and without a change of master."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable

import pytest

from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.pop_protocol import HandleRequest, InitMode, PopRequest, dead_letter_topic, retry_topic
from system_under_test.storage.message import decode_message
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play
from tests.rocketmq.scenarios.popping_consumer import INVISIBLE_MS, OK, Consumer


def test_what_is_not_acknowledged_comes_again_after_its_invisible_time_and_what_is_does_not():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        assert await consumer.pop() == []
        assert await cluster.send("b1", "a", "b", "c") == [OK] * 3
        assert await consumer.pop() == ["a", "b", "c"]
        assert await consumer.pop() == []
        assert await consumer.ack("b") == OK
        await cluster.sleep(4.5)
        assert await consumer.pop() == []
        await cluster.sleep(1)
        assert await consumer.pop() == ["a×1", "c×1"]
        assert [await consumer.ack(letter) for letter in "ac"] == [OK, OK]
        await cluster.sleep(60)
        assert await consumer.pop() == []
        assert await cluster.committed("b1", "readers") == 3
        assert await cluster.read("b1", retry_topic("readers", TOPIC)) == ["a", "c"]

    play(story)


def test_a_new_master_knows_who_has_what_and_what_was_acknowledged():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        assert await cluster.send("b1", "a", "b", "c", "d") == [OK] * 4
        assert await consumer.pop(count=3) == ["a", "b", "c"]
        assert await consumer.ack("a") == OK
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await consumer.pop() == ["d"]
        assert await consumer.ack("b") == OK
        assert await consumer.ack("d") == OK
        await cluster.sleep(4.5)
        assert await consumer.pop() == []
        await cluster.sleep(1)
        assert await consumer.pop() == ["c×1"]
        assert await consumer.ack("c") == OK
        await cluster.boot("b1")
        await cluster.until_members(1, 2)
        await cluster.kill("b2")
        await cluster.until_master("b1")
        await cluster.sleep(20)
        assert await consumer.pop() == []

    play(story)


def test_a_new_master_whose_log_ends_with_the_blank_of_a_segment_gives_messages_out_at_once():
    segment_bytes, letter = 64 * 1024, "x" * 16_000

    async def story(cluster: Cluster) -> None:
        assert await cluster.send("b1", *[letter] * 4) == [OK] * 4
        await cluster.until_equal("b1", "b2")
        await cluster.narrow_down(("b1", "b2"), bytes_per_s=1_000)
        sending = asyncio.ensure_future(cluster.send("b1", letter))

        async def blank_is_there() -> bool:
            return (await cluster.log("b2")).max_offset == segment_bytes

        await cluster.until(blank_is_there, 20)
        await cluster.cut(("b1", "b2"))
        await cluster.kill("b1")
        await sending
        await cluster.until_master("b2")
        assert (await cluster.log("b2")).max_offset == segment_bytes
        assert len(await Consumer(cluster).pop()) == 4

    play(story)


def test_all_is_as_it_was_after_all_lost_their_power():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        assert await cluster.send("b1", "a", "b", "c") == [OK] * 3
        assert await consumer.pop(count=2) == ["a", "b"]
        assert await consumer.ack("a") == OK
        await cluster.power_off("b1", "b2")
        await cluster.boot("b1", "b2")
        master = None

        async def has_master() -> bool:
            nonlocal master
            master = await cluster.master()
            return master is not None and await cluster._takes_sends(master)

        await cluster.until(has_master, 60)
        consumer = Consumer(cluster)
        found: list[str] = []

        async def is_found() -> bool:
            for shown in await consumer.pop():
                found.append(shown)
                assert await consumer.ack(shown[0]) == OK
            return len(found) >= 2

        await cluster.until(is_found, 60)
        assert sorted(found) == ["b×1", "c"]

    play(story, flushDiskType="SYNC_FLUSH")


def test_a_kept_message_comes_again_after_its_new_time_and_its_old_handle_is_worth_nothing():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        assert await cluster.send("b1", "a", "b") == [OK] * 2
        assert await consumer.pop() == ["a", "b"]
        old = dict(consumer.held)
        await cluster.sleep(2)
        assert await consumer.keep("a", 10_000) == OK
        consumer.held, new = old, consumer.held
        assert await consumer.ack("a") == "not-held"
        assert await consumer.keep("a", 10_000) == "not-held"
        await cluster.sleep(4)
        assert await consumer.pop() == ["b×1"]
        assert await consumer.ack("b") == OK
        await cluster.sleep(5)
        assert await consumer.pop() == []
        await cluster.sleep(1.5)
        consumer.held = new
        assert await consumer.ack("a") == "not-held"
        assert await consumer.pop() == ["a×1"]
        assert await consumer.ack("a") == OK
        assert await consumer.keep("a", 1) == "not-held"

    play(story)


def test_a_message_that_came_too_often_is_among_the_dead_letters():
    async def story(cluster: Cluster) -> None:
        group = {"groupName": "readers", "retryMaxTimes": 2}
        command = RemotingCommand.request(
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=json.dumps(group).encode()
        )
        assert await cluster.ask("b1", command) == OK
        consumer = Consumer(cluster)
        assert await cluster.send("b1", "a") == [OK]
        for shown in ("a", "a×1", "a×2"):
            assert await consumer.pop() == [shown]
            await cluster.sleep(6)
        assert await consumer.pop() == []
        assert await cluster.read("b1", dead_letter_topic("readers")) == ["a"]
        assert await cluster.committed("b1", "readers", retry_topic("readers", TOPIC)) == 2

    play(story)


def test_a_pop_waits_for_messages_new_ones_and_those_that_come_again():
    async def story(cluster: Cluster) -> None:
        consumer, other = Consumer(cluster), Consumer(cluster)
        waiting = cluster.begin(joined(consumer.pop(poll_ms=2_500)))
        await cluster.sleep(1)
        assert await cluster.send("b1", "a") == [OK]
        await cluster.sleep(0.1)
        assert waiting.done() and await waiting == "a"
        begun = cluster.now_s
        assert await other.pop(poll_ms=2_500) == []
        assert 2.4 < cluster.now_s - begun < 2.6
        assert await other.pop(poll_ms=2_500) == ["a×1"]
        assert 5 < cluster.now_s - begun + 0.2 < 5.4

    play(story)


def test_who_is_woken_by_what_is_not_wanted_waits_no_longer_for_that():
    async def story(cluster: Cluster) -> None:
        consumer, client = Consumer(cluster), cluster.client()
        begun_s = cluster.now_s
        pop = consumer.pops.pop(TOPIC, INVISIBLE_MS, poll_ms=2_000, expression="red")
        waiting = asyncio.get_running_loop().create_task(pop)
        for _ in range(3):
            await cluster.sleep(0.5)
            await client.send(TOPIC, 0, b"x", properties="TAGS\x01blue\x02")
            assert not waiting.done()
        assert (await waiting).messages == ()
        assert 1.9 < cluster.now_s - begun_s < 2.2

    play(story, brokers=1)


async def joined(letters: Awaitable[list[str]]) -> str:
    return " ".join(await letters)


def test_consumers_of_a_group_share_a_queue_and_two_groups_have_it_each():
    async def story(cluster: Cluster) -> None:
        first, second, alone = Consumer(cluster), Consumer(cluster), Consumer(cluster, "others")
        assert await cluster.send("b1", *"abcdef") == [OK] * 6
        assert await first.pop(count=2) == ["a", "b"]
        assert await second.pop(count=3) == ["c", "d", "e"]
        assert await alone.pop(count=4) == ["a", "b", "c", "d"]
        assert await first.pop() == ["f"]
        await second.pops.ack_all(list(second.held.values()))
        await first.pops.ack_all(list(first.held.values()))
        with pytest.raises(ClientError, match="0 of 3"):
            await first.pops.ack_all(list(first.held.values()))
        await cluster.sleep(20)
        assert await first.pop() == []
        assert await alone.pop() == ["e", "f", "a×1", "b×1", "c×1", "d×1"]

    play(story)


def test_a_group_may_change_between_pulling_and_popping():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        assert await cluster.send("b1", *"abcde") == [OK] * 5
        await cluster.commit("b1", "readers", 1)
        assert await consumer.pop(count=2) == ["b", "c"]
        assert await cluster.committed("b1", "readers") == 3
        await cluster.commit("b1", "readers", 4)
        assert await consumer.pop(count=1) == ["e"]
        await cluster.commit("b1", "readers", 0)
        assert await consumer.pop(count=1) == ["a"]
        assert await cluster.committed("b1", "readers") == 1

    play(story)


def test_a_new_group_may_begin_at_the_end_and_stays_there_through_a_change_of_master():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        assert await cluster.send("b1", *"abc") == [OK] * 3
        popped = await consumer.pops.pop(TOPIC, INVISIBLE_MS, max_count=1, init_mode=InitMode.MAX)
        assert [message.body for message in popped.messages] == [b"c"]
        assert await cluster.send("b1", "d") == [OK]
        await cluster.kill("b1")
        await cluster.until_master("b2")
        consumer = Consumer(cluster)
        popped = await consumer.pops.pop(TOPIC, INVISIBLE_MS, init_mode=InitMode.MAX)
        assert [message.body for message in popped.messages] == [b"d"]

    play(story)


def test_only_wanted_tags_are_given_out_and_the_others_are_passed_over():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        client = cluster.client()
        for letter, tag in (("a", "red"), ("b", "blue"), ("c", "red"), ("d", "green")):
            await client.send(TOPIC, 0, letter.encode(), properties=f"TAGS\x01{tag}\x02")
        popped = await consumer.pops.pop(TOPIC, INVISIBLE_MS, expression="red || green")
        assert [message.body for message in popped.messages] == [b"a", b"c", b"d"]
        assert await cluster.committed("b1", "readers") == 4
        await cluster.sleep(6)
        assert await consumer.pop() == ["a×1", "c×1", "d×1"]
        for number in range(70):
            await client.send(
                TOPIC, 0, b"%d" % number, properties=f"TAGS\x01{'red' if number in (40, 60) else 'blue'}\x02"
            )
        for number in (b"40", b"60"):
            popped = await consumer.pops.pop(TOPIC, INVISIBLE_MS, expression="red", max_count=1)
            assert [message.body for message in popped.messages] == [number]
            await consumer.pops.ack(popped.messages[0])

    play(story)


def test_only_what_an_sql_filter_lets_through_is_given_out():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        client = cluster.client()
        for letter, weight in (("a", "1"), ("b", "3"), ("c", "heavy"), ("d", "7")):
            await client.send(TOPIC, 0, letter.encode(), properties=f"weight\x01{weight}\x02")
        popped = await consumer.pops.pop(TOPIC, INVISIBLE_MS, expression="weight > 2", expression_type="SQL92")
        assert [message.body for message in popped.messages] == [b"b", b"d"]
        assert await cluster.committed("b1", "readers") == 4
        with pytest.raises(ClientError, match="the subscription is none"):
            raise await refused(cluster, expType="SQL92", exp="weight >")
        with pytest.raises(ClientError, match="expected an expression of type TAG or SQL92, got 'REGEX'"):
            raise await refused(cluster, expType="REGEX", exp="w")

    play(story)


def test_sql_filters_can_be_switched_off():
    async def story(cluster: Cluster) -> None:
        Consumer(cluster)
        with pytest.raises(ClientError, match="does not filter by SQL92"):
            raise await refused(cluster, expType="SQL92", exp="weight > 2")

    play(story, enablePropertyFilter=False)


async def refused(cluster: Cluster, **fields: str) -> ClientError:
    request = PopRequest(topic=TOPIC, consumer_group="readers", invisible_ms=1000).encode()
    command = RemotingCommand.request(request.code, {**request.ext_fields, **fields})
    answer = await cluster.answer("b1:10911", command)
    return ClientError(ResponseCode(answer.code).name, True, answer.remark or "")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "nowhere"}, "TOPIC_NOT_EXIST"),
        ({"queueId": "1"}, "INVALID_PARAMETER"),
        ({"queueId": "-2"}, "INVALID_PARAMETER"),
        ({"maxMsgNums": "33"}, "INVALID_PARAMETER"),
        ({"maxMsgNums": "0"}, "INVALID_PARAMETER"),
        ({"invisibleTime": "0"}, "INVALID_PARAMETER"),
        ({"invisibleTime": "9" * 30}, "INVALID_PARAMETER"),
        ({"initMode": "2"}, "INVALID_PARAMETER"),
        ({"consumerGroup": "a b"}, "INVALID_PARAMETER"),
        ({"consumerGroup": "g" * 120}, "INVALID_PARAMETER"),
        ({"exp": "||"}, "SUBSCRIPTION_PARSE_FAILED"),
    ],
)
def test_what_makes_no_sense_is_refused(fields: dict[str, str], code: str):
    async def story(cluster: Cluster) -> None:
        assert (await refused(cluster, **fields)).code == code

    play(story, brokers=1)


def test_slaves_give_nothing_out_and_handles_of_nobody_hold_nothing():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        request = PopRequest(topic=TOPIC, consumer_group="readers", invisible_ms=1000)
        assert await cluster.ask("b2", request.encode()) == "NOT_MASTER"
        assert await cluster.send("b1", "a") == [OK]
        assert await consumer.pop() == ["a"]
        handle = consumer.held["a"].handle
        for wrong in (
            handle._replace(offset=1),
            handle._replace(pop_time_ms=handle.pop_time_ms + 1),
            handle._replace(start_offset=7),
            handle._replace(queue_id=-5),
        ):
            for invisible_ms in (None, 1000):
                ask = HandleRequest(topic=TOPIC, consumer_group="readers", handle=wrong, invisible_ms=invisible_ms)
                assert await cluster.ask("b1", ask.encode()) == "NO_MESSAGE"
        assert await consumer.ack("a") == OK

    play(story)


def test_three_consumers_share_one_queue_and_one_that_dies_disturbs_nobody():
    """The seed's second scenario of balancing: no queue belongs to a consumer, so none waits for a rebalance."""

    async def story(cluster: Cluster) -> None:
        first, second, third = (Consumer(cluster) for _ in range(3))
        assert await cluster.send("b1", *"abcdef") == [OK] * 6
        # All receive, though there is one queue.
        assert await first.pop(count=2) == ["a", "b"]
        assert await second.pop(count=2) == ["c", "d"]
        assert await third.pop(count=2) == ["e", "f"]
        killed_s = cluster.now_s
        # The third dies with what it holds; the others are given what comes, at once.
        for consumer, letters in ((first, "ab"), (second, "cd")):
            assert [await consumer.ack(letter) for letter in letters] == [OK, OK]
        for number, letter in enumerate("ghij"):
            assert await cluster.send("b1", letter) == [OK]
            consumer = (first, second)[number % 2]
            begun_s = cluster.now_s
            assert await consumer.pop() == [letter]
            assert await consumer.ack(letter) == OK
            assert cluster.now_s - begun_s < 0.1
        # What the dead one held comes to the others once its invisible time is over, not before.
        assert await first.pop(poll_ms=4_000) == []
        assert await second.pop(poll_ms=4_000) == ["e×1", "f×1"]
        assert 5.0 <= cluster.now_s - killed_s < 5.2
        assert [await second.ack(letter) for letter in "ef"] == [OK, OK]
        await cluster.sleep(30)
        assert await first.pop() == []

    play(story)


def test_who_peeks_changes_nothing_and_who_asks_for_notice_hears_of_messages_to_pop():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        asked = {"topic": TOPIC, "consumerGroup": "readers", "queueId": "-1", "maxMsgNums": "2", "bornTime": "0"}

        async def answer(code: RequestCode, **fields: str) -> RemotingCommand:
            return await cluster.answer("b1:10911", RemotingCommand.request(code, {**asked, **fields}))

        assert (await answer(RequestCode.PEEK_MESSAGE)).code == ResponseCode.PULL_NOT_FOUND
        assert (await answer(RequestCode.NOTIFICATION, pollTime="0")).ext_fields["hasMsg"] == "false"
        begun_s = cluster.now_s
        waiting = asyncio.get_running_loop().create_task(answer(RequestCode.NOTIFICATION, pollTime="4000"))
        await cluster.sleep(1)
        assert (await answer(RequestCode.POLLING_INFO)).ext_fields["pollingNum"] == "1"
        assert await cluster.send("b1", "a", "b", "c") == [OK] * 3
        assert (await waiting).ext_fields == {"hasMsg": "true", "pollingFull": "false"}
        assert cluster.now_s - begun_s < 1.2
        assert (await answer(RequestCode.POLLING_INFO)).ext_fields["pollingNum"] == "0"
        for _ in range(2):
            peeked = await answer(RequestCode.PEEK_MESSAGE)
            assert (peeked.code, peeked.ext_fields["restNum"]) == (ResponseCode.SUCCESS, "1")
            assert decode_message(peeked.body, 0).body == b"a"
        assert await consumer.pop() == ["a", "b", "c"]
        assert (await answer(RequestCode.NOTIFICATION, pollTime="0")).ext_fields["hasMsg"] == "false"

    play(story)


def test_nothing_is_given_out_while_too_few_replicas_are_in_sync_and_nothing_is_lost_by_it():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        assert await cluster.send("b1", "a", "b") == [OK] * 2
        assert await consumer.pop(count=1) == ["a"]
        await cluster.kill("b2")
        await cluster.until_members(1, within_s=60)
        # The time of what was given out is over, and it cannot be put anywhere.
        for _ in range(3):
            assert await consumer.ack("a") == "in-sync-replicas-not-enough"
            with pytest.raises(ClientError, match="in-sync"):
                await consumer.pop()
            await cluster.sleep(3)
        await cluster.boot("b2")
        await cluster.until_members(1, 2)
        await cluster.sleep(2)
        assert sorted(await consumer.pop()) == ["a×1", "b"]

    play(story, minInSyncReplicas=2)


def test_what_a_new_broker_of_the_same_group_does_not_know_it_copies_with_the_log():
    async def story(cluster: Cluster) -> None:
        consumer = Consumer(cluster)
        assert await cluster.send("b1", "a", "b", "c") == [OK] * 3
        assert await consumer.pop(count=2) == ["a", "b"]
        assert await consumer.ack("a") == OK
        await cluster.add("b2")
        await cluster.until_members(1, 2, within_s=60)
        await cluster.kill("b1")
        await cluster.until_master("b2")
        await cluster.sleep(6)
        found = await Consumer(cluster).pop()
        assert "a" not in found and "a×1" not in found
        assert {letter[0] for letter in found} == {"b", "c"}

    play(story, brokers=1)
