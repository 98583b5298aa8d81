"""Bodies that producers compressed: kept as they are wherever a message goes, and whole again for who reads them."""

from __future__ import annotations

import importlib
from dataclasses import replace
from zlib import crc32

import pytest

from system_under_test.rocketmq import compression
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.rocketmq.compression import Compression, compress_body
from system_under_test.rocketmq.message_protocol import PullAnswer, PullRequest, SendRequest
from system_under_test.rocketmq.proxy.v2 import (
    Code,
    Encoding,
    PullMessageRequest,
    PullMessageResponse,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    Resource,
    UserMessage,
)
from system_under_test.storage.message import Message, decode_message
from tests.rocketmq.scenarios.broker_cluster import TOPIC, Cluster, play
from tests.rocketmq.scenarios.proxy_calls import queue

READERS = Resource(name="readers")
BODIES = {how: how.name.lower().encode() * 100 for how in Compression}


def clients(cluster: Cluster) -> dict[Compression, MessageClient]:
    return {how: cluster.client(compress_from_bytes=10, compression=how) for how in Compression}


async def send_all(cluster: Cluster, properties: str = "") -> None:
    """One message compressed in each way, and a plain one."""
    for how, client in clients(cluster).items():
        await client.send(TOPIC, 0, BODIES[how], properties=properties)
        client.close()
    assert await cluster.send("b1", "plain") == ["SUCCESS"]


async def stored(cluster: Cluster, node: str, topic: str = TOPIC) -> list[Message]:
    request = PullRequest(topic=topic, queue_id=0, queue_offset=0, max_count=32, consumer_group="g")
    data = PullAnswer.decode(await cluster.answer(f"{node}:10911", request.encode())).data
    messages: list[Message] = []
    while sum(message.size for message in messages) < len(data):
        messages.append(decode_message(data, sum(message.size for message in messages)))
    return messages


async def pulled(cluster: Cluster, offset: int = 0) -> tuple[int, list[UserMessage], int]:
    """(status, messages, next offset) of a pull through the proxy."""
    request = PullMessageRequest(group=READERS, message_queue=queue(), offset=offset, batch_size=32)
    status, *answers = await cluster.calls("p1", "PullMessage", request, PullMessageResponse)
    messages = [answer.message for answer in answers if answer.message is not None]
    return status.status.code, messages, answers[-1].next_offset if answers else -1


def without_packages(patch: pytest.MonkeyPatch) -> None:
    def only_ours(name: str) -> object:
        if name.startswith(("lz4", "compression", "backports")):
            raise ImportError(name)
        return importlib.import_module(name)

    patch.setattr(compression, "importlib", type("", (), {"import_module": staticmethod(only_ours)}))


def test_they_are_kept_as_they_are_at_each_replica_and_read_whole_by_any_client() -> None:
    async def story(cluster: Cluster) -> None:
        await send_all(cluster, "TAGS\x01a\x02")
        for node in ("b1", "b2"):
            messages = (await stored(cluster, node))[:3]
            assert [message.sys_flag for message in messages] == [0x101, 0x201, 0x301]
            assert [message.body for message in messages] == [compress_body(BODIES[how], how)[0] for how in Compression]
        client = cluster.client()
        found = await client.pull(TOPIC, 0, 0, 9, "g", subscription="a")
        assert [body for _, body in found.messages] == [*BODIES.values()]
        client.close()

    play(story, slaveReadEnable=True)


def test_what_waits_for_its_time_is_kept_as_it_is() -> None:
    async def story(cluster: Cluster) -> None:
        body, sys_flag = compress_body(BODIES[Compression.LZ4], Compression.LZ4)
        request = SendRequest(topic=TOPIC, queue_id=0, body=body, born_timestamp_ms=0, sys_flag=sys_flag)
        for properties in ("DELAY\x011\x02", "TIMER_DELAY_MS\x01500\x02"):
            assert await cluster.ask("b1", replace(request, properties=properties).encode()) == "SUCCESS"
        await cluster.sleep(3)
        assert [(message.sys_flag, message.body) for message in await stored(cluster, "b1")] == [(sys_flag, body)] * 2

    play(story, brokers=1, timerPrecisionMs=100)


def test_clients_of_version_2_get_what_they_have_no_word_for_whole() -> None:
    async def story(cluster: Cluster) -> None:
        await send_all(cluster)
        status, messages, next_offset = await pulled(cluster)
        assert (status, next_offset) == (Code.OK, 4)
        lz4, zstd, zlib, plain = messages
        assert [lz4.body, zstd.body, plain.body] == [BODIES[Compression.LZ4], BODIES[Compression.ZSTD], b"plain"]
        for message in (lz4, zstd, plain):
            assert message.system_properties.body_encoding == Encoding.IDENTITY
            assert message.system_properties.body_digest.checksum == f"{crc32(message.body):08X}"
        assert zlib.system_properties.body_encoding == Encoding.GZIP
        assert zlib.body == compress_body(BODIES[Compression.ZLIB])[0]

    play(story, proxies=["p1"])


def test_where_the_package_is_missing_a_proxy_refuses_what_it_would_have_to_look_into_and_nothing_else() -> None:
    async def story(cluster: Cluster) -> None:
        await send_all(cluster)
        assert await cluster.send("b1", "last") == ["SUCCESS"]
        with pytest.MonkeyPatch.context() as patch:
            without_packages(patch)
            assert (await pulled(cluster, 0))[0] == Code.UNSUPPORTED
            assert (await pulled(cluster, 1))[0] == Code.UNSUPPORTED
            status, messages, next_offset = await pulled(cluster, 2)
            assert (status, len(messages), next_offset) == (Code.OK, 3, 5)
            asked = ReceiveMessageRequest(group=READERS, message_queue=queue(-1), batch_size=32)
            answers = await cluster.calls("p1", "ReceiveMessage", asked, ReceiveMessageResponse, "client-1")
            got = [answer.message.body for answer in answers if answer.message is not None]
            assert got == [compress_body(BODIES[Compression.ZLIB])[0], b"plain", b"last"]
        assert [message.body for message in (await pulled(cluster, 0))[1]][:2] == [
            BODIES[Compression.LZ4],
            BODIES[Compression.ZSTD],
        ]

    play(story, proxies=["p1"])


def test_a_body_that_is_not_what_it_says_reaches_its_reader_as_it_is() -> None:
    async def story(cluster: Cluster) -> None:
        request = SendRequest(topic=TOPIC, queue_id=0, body=b"no frame", born_timestamp_ms=0, sys_flag=0x101)
        assert await cluster.ask("b1", request.encode()) == "SUCCESS"
        _, (message,), next_offset = await pulled(cluster)
        assert (message.body, message.system_properties.body_encoding, next_offset) == (b"no frame", Encoding.GZIP, 1)

    play(story, proxies=["p1"])
