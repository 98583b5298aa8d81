"""The client that pops: broker groups in turn, handles that name theirs, and answers that make no sense."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.rocketmq.client.pop_client import PopClient
from system_under_test.rocketmq.pop_protocol import PopAnswer, PoppedQueue, decode_batch_ack
from system_under_test.runtime.host import Host
from system_under_test.storage.message import encode_message

HOST = cast(Host, SimpleNamespace(clock=SimpleNamespace(wall_ns=lambda: 7_000_000)))


def stored(topic: str, queue_id: int, queue_offset: int, body: bytes) -> bytes:
    return encode_message(
        topic=topic.encode(),
        queue_id=queue_id,
        queue_offset=queue_offset,
        physical_offset=0,
        body=body,
        properties=b"",
        born_timestamp_ms=1,
        store_timestamp_ms=1,
        born_host=bytes(8),
        store_host=bytes(8),
        reconsume_times=2 if topic.startswith("%RETRY%") else 0,
    )


class Brokers:
    """Stands in for the client of messages: answers what it was given, and keeps what it was asked."""

    def __init__(self, *answers: RemotingCommand) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str | None, RemotingCommand]] = []

    async def route(self, topic: str) -> Any:
        return SimpleNamespace(groups=[SimpleNamespace(broker_name=name) for name in ("broker-a", "broker-b")])

    async def request(
        self, topic: str, command: RemotingCommand, *, broker_name: str | None = None, **_: object
    ) -> tuple[str, RemotingCommand]:
        self.asked.append((broker_name, command))
        answer = self._answers.pop(0) if self._answers else RemotingCommand.response(ResponseCode.SUCCESS)
        return f"{broker_name}:10911", answer


def client_of(brokers: Brokers) -> PopClient:
    return PopClient(HOST, cast(MessageClient, brokers), "g")


def answer_of(*queues: PoppedQueue, data: bytes) -> RemotingCommand:
    return PopAnswer(pop_time_ms=5, invisible_ms=9, revive_queue=3, queues=queues, data=data).encode()


def test_each_pop_asks_the_next_broker_group() -> None:
    brokers = Brokers(*(RemotingCommand.response(ResponseCode.POLLING_TIMEOUT) for _ in range(4)))

    async def story() -> None:
        pops = client_of(brokers)
        for _ in range(4):
            assert (await pops.pop("t", 9)).messages == ()

    asyncio.run(story())
    assert [name for name, _ in brokers.asked] == ["broker-b", "broker-a", "broker-b", "broker-a"]


def test_messages_of_several_queues_have_their_handles_and_are_acknowledged_where_they_came_from() -> None:
    data = stored("t", 2, 10, b"a") + stored("t", 2, 12, b"b") + stored("%RETRY%g_t", 0, 4, b"c")
    brokers = Brokers(answer_of(PoppedQueue(False, 2, 10, (10, 12)), PoppedQueue(True, 0, 4, (4,)), data=data))

    async def story() -> None:
        pops = client_of(brokers)
        popped = await pops.pop("t", 9, broker_name="broker-b")
        assert [(m.body, m.reconsume_times) for m in popped.messages] == [(b"a", 0), (b"b", 0), (b"c", 2)]
        await pops.ack(popped.messages[2])
        await pops.ack_all(popped.messages)

    asyncio.run(story())
    assert [name for name, _ in brokers.asked] == ["broker-b"] * 3
    ack, batch = (command for _, command in brokers.asked[1:])
    assert ack.code == RequestCode.ACK_MESSAGE
    assert (ack.ext_fields["topic"], ack.ext_fields["extraInfo"]) == ("%RETRY%g_t", "4 5 9 3 1 broker-b 0 4")
    assert [(one.topic, one.offsets) for one in decode_batch_ack(batch)] == [("t", (10, 12)), ("%RETRY%g_t", (4,))]


def test_how_often_messages_came_is_said_beside_them_where_they_are_popped_in_order() -> None:
    brokers = Brokers(
        answer_of(PoppedQueue(False, 0, 1, (1, 2), (3, 0)), data=stored("t", 0, 1, b"") + stored("t", 0, 2, b""))
    )
    popped = asyncio.run(client_of(brokers).pop("t", 9, is_ordered=True))
    assert [message.reconsume_times for message in popped.messages] == [3, 0]
    assert brokers.asked[0][1].ext_fields["order"] == "true"


@pytest.mark.parametrize(
    "answer",
    [
        RemotingCommand.response(ResponseCode.SUCCESS),
        answer_of(PoppedQueue(False, 0, 1, (1,)), data=b""),
        answer_of(PoppedQueue(False, 0, 1, (1,)), data=stored("t", 0, 2, b"")),
        answer_of(PoppedQueue(False, 1, 1, (1,)), data=stored("t", 0, 1, b"")),
        answer_of(PoppedQueue(False, 0, 1, (1,)), data=stored("t", 0, 1, b"") * 2),
    ],
    ids=["no fields", "no message", "another offset", "another queue", "a message too many"],
)
def test_an_answer_that_makes_no_sense_leaves_the_outcome_open(answer: RemotingCommand) -> None:
    with pytest.raises(ClientError) as failure:
        asyncio.run(client_of(Brokers(answer)).pop("t", 9))
    assert (failure.value.code, failure.value.definite) == ("outcome-unknown", False)
