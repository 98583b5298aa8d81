"""Messages found by their keys, by their ids, and by the time when they were stored."""

from __future__ import annotations

from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.message_id import parse_message_id
from system_under_test.rocketmq.message_protocol import KeyQuery, QueueRequest, SendRequest, TimeQuery
from system_under_test.storage.message import decode_message
from system_under_test.storage.store_results import Boundary
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play


async def send(cluster: Cluster, letter: str, keys: str, node: str = "b1") -> str:
    """Returns the message's id."""
    properties = f"KEYS\x01{keys}\x02UNIQ_KEY\x01unique-{letter}\x02"
    request = SendRequest(topic=TOPIC, queue_id=0, body=letter.encode(), born_timestamp_ms=0, properties=properties)
    answer = await cluster.answer(f"{node}:10911", request.encode())
    assert answer.code == ResponseCode.SUCCESS
    return answer.ext_fields["msgId"]


def letters(answer: RemotingCommand) -> str:
    if answer.code == ResponseCode.QUERY_NOT_FOUND:
        return "none"
    assert answer.code == ResponseCode.SUCCESS
    found, at = "", 0
    while at < len(answer.body):
        message = decode_message(answer.body, at)
        found += message.body.decode()
        at += message.size
    return found


async def look_up(cluster: Cluster, key: str, node: str = "b1", **more) -> str:
    return letters(await cluster.answer(f"{node}:10911", KeyQuery(topic=TOPIC, key=key, **more).encode()))


def test_messages_are_found_by_their_keys_at_every_replica():
    async def story(cluster: Cluster) -> None:
        await send(cluster, "a", "red")
        await send(cluster, "b", "red blue")
        await send(cluster, "c", "blue")
        await cluster.until_equal("b1", "b2")
        for node in ("b1", "b2"):
            assert await look_up(cluster, "red", node) == "ab"
            assert await look_up(cluster, "blue", node) == "bc"
            assert await look_up(cluster, "blue", node, max_count=1) == "c"
            assert await look_up(cluster, "green", node) == "none"
            assert await look_up(cluster, "unique-b", node, is_unique=True) == "b"
        answer = await cluster.answer("b1:10911", KeyQuery(topic=TOPIC, key="red").encode())
        assert answer.ext_fields.keys() == {"indexLastUpdateTimestamp", "indexLastUpdatePhyoffset"}
        assert await cluster.ask("b1", KeyQuery(topic="nowhere", key="red").encode()) == "TOPIC_NOT_EXIST"

    play(story)


def test_what_is_not_confirmed_is_not_found_and_what_was_cut_never_again():
    async def story(cluster: Cluster) -> None:
        await send(cluster, "a", "red")
        await cluster.until_equal("b1", "b2")
        await cluster.isolate("b1")
        request = SendRequest(
            topic=TOPIC, queue_id=0, body=b"b", born_timestamp_ms=0, properties="KEYS\x01red\x02"
        ).encode()
        assert await cluster.ask("b1", request) == "FLUSH_SLAVE_TIMEOUT"
        assert await look_up(cluster, "red") == "a"
        await cluster.until_master("b2")
        await send(cluster, "c", "red", "b2")
        await cluster.heal()
        await cluster.until_equal("b1", "b2")
        assert await look_up(cluster, "red") == await look_up(cluster, "red", "b2") == "ac"

    play(story)


def test_an_index_outlives_its_process_and_losses_of_power():
    async def story(cluster: Cluster) -> None:
        for letter in "abcdefghij":
            await send(cluster, letter, "even" if ord(letter) % 2 == 0 else "odd")
        await cluster.sleep(5)
        await send(cluster, "k", "odd")
        for end in (cluster.kill, cluster.power_off, cluster.stop_cleanly):
            await end("b1")
            await cluster.boot("b1")
            await cluster.until_master("b1")
            assert await look_up(cluster, "odd") == "acegik"
            assert await look_up(cluster, "even") == "bdfhj"
        assert not cluster.dead()

    play(story, brokers=1, flushDiskType="SYNC_FLUSH", maxHashSlotNum=2, maxIndexNum=5)


def test_a_message_is_found_by_its_id():
    async def story(cluster: Cluster) -> None:
        first, second = [await send(cluster, letter, "k") for letter in "ab"]
        (store_host, _), (same_host, offset) = parse_message_id(first), parse_message_id(second)
        assert store_host == same_host and store_host[0] == 127 and store_host[4:] == (10911).to_bytes(4, "big")
        command = RemotingCommand.request(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(offset)})
        answer = await cluster.answer("b1:10911", command)
        message = decode_message(answer.body, 0)
        assert (message.body, message.store_host) == (b"b", store_host)
        assert message.born_host[0] == 127, "the client's name"
        for wrong in (offset + 1, -1, 1 << 62):
            command = RemotingCommand.request(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": str(wrong)})
            assert await cluster.ask("b1", command) == "SYSTEM_ERROR"

    play(story, brokers=1)


def test_a_place_in_a_queue_is_found_by_its_time():
    async def story(cluster: Cluster) -> None:
        earliest = QueueRequest(topic=TOPIC, queue_id=0).encode(RequestCode.GET_EARLIEST_MSG_STORETIME)
        assert (await cluster.answer("b1:10911", earliest)).ext_fields["timestamp"] == "-1"
        stored = []
        for letter in "abc":
            message_id = await send(cluster, letter, letter)
            command = {"offset": str(parse_message_id(message_id)[1])}
            answer = await cluster.answer("b1:10911", RemotingCommand.request(RequestCode.VIEW_MESSAGE_BY_ID, command))
            stored.append(decode_message(answer.body, 0).store_timestamp_ms)
            await cluster.sleep(1)

        async def at(time_ms: int, boundary: Boundary) -> int:
            query = TimeQuery(topic=TOPIC, queue_id=0, time_ms=time_ms, boundary=boundary)
            return int((await cluster.answer("b1:10911", query.encode())).ext_fields["offset"])

        first, second, third = stored
        for boundary, expected in ((Boundary.LOWER, [0, 0, 1, 1, 2, 3]), (Boundary.UPPER, [0, 0, 0, 1, 2, 2])):
            times = [first - 1, first, first + 1, second, third, third + 1]
            assert [await at(time_ms, boundary) for time_ms in times] == expected
        assert (await cluster.answer("b1:10911", earliest)).ext_fields["timestamp"] == str(first)
        by_time = [
            await look_up(cluster, "b", begin_ms=begin, end_ms=end) for begin, end in ((second, second), (0, first))
        ]
        assert by_time == ["b", "none"]

    play(story, brokers=1)
