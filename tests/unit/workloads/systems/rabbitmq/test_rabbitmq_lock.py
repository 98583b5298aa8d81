"""A lock of RabbitMQ is its message: who has got it holds it, until it is given back or RabbitMQ takes it back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from harness.errors import OperationError, UsageError
from harness.operation import Operation
from workloads.lock import LockSettings, lock_key
from workloads.systems.rabbitmq.adapter import SYSTEM, RabbitmqSettings
from workloads.systems.rabbitmq.lock import RabbitmqLockClient, lock_name, make_lock
from workloads.systems.rabbitmq.queues import Kind


class Message:
    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    async def nack(self, *, requeue: bool) -> None:
        assert requeue
        self._queue.messages += 1


class Queue:
    def __init__(self) -> None:
        self.messages = 1

    async def get(self, *, no_ack: bool, fail: bool) -> Message | None:
        assert not no_ack and not fail
        if not self.messages:
            return None
        self.messages -= 1
        return Message(self)


class Channel:
    def __init__(self, queues: dict[str, Queue]) -> None:
        self._queues = queues

    async def get_queue(self, name: str, *, ensure: bool) -> Queue:
        return self._queues[name]


class Connection:
    """Where it is closed, what was not acknowledged is put back."""

    def __init__(self) -> None:
        self._closed: asyncio.Future[bool] = asyncio.Future()

    async def close(self) -> None:
        self._closed.set_result(True)

    def closed(self) -> asyncio.Future[bool]:
        return self._closed


def client_of(queues: dict[str, Queue]) -> RabbitmqLockClient:
    client = RabbitmqLockClient(None, "q1")
    client._channel, client._connection = Channel(queues), Connection()
    return client


def operation(f: str) -> Operation:
    return Operation(type="invoke", f=f, process=0, time=0, key=lock_key(0), value={"value": None})


def test_who_has_the_message_holds_the_lock_until_it_is_given_back() -> None:
    async def scenario() -> None:
        queues = {lock_name(lock_key(0)): Queue()}
        one, other = client_of(queues), client_of(queues)
        assert (await one.invoke(operation("acquire"))).type == "ok"
        with pytest.raises(OperationError) as failed:
            await other.invoke(operation("acquire"))
        assert (failed.value.error.code, failed.value.error.definite) == ("precondition-failed", True)
        assert (await one.invoke(operation("release"))).type == "ok"
        assert (await other.invoke(operation("acquire"))).type == "ok"

    asyncio.run(scenario())


def test_a_lock_is_given_back_once() -> None:
    async def scenario() -> int:
        queues = {lock_name(lock_key(0)): Queue()}
        client = client_of(queues)
        await client.invoke(operation("acquire"))
        await client.invoke(operation("release"))
        await client.invoke(operation("release"))
        return queues[lock_name(lock_key(0))].messages

    assert asyncio.run(scenario()) == 1


def test_who_is_not_answered_does_not_hold_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workloads.systems.rabbitmq.lock.TAKES_WITHIN_S", 0.02)

    class Silent(Queue):
        async def get(self, *, no_ack: bool, fail: bool) -> Message | None:
            await asyncio.Event().wait()
            return None

    async def scenario() -> None:
        client = client_of({lock_name(lock_key(0)): Silent()})
        connection: Any = client._connection
        with pytest.raises(OperationError) as failed:
            await client.invoke(operation("acquire"))
        assert (failed.value.error.code, failed.value.error.definite) == ("client-timeout", False)
        assert connection.closed().done(), "the message would stay with a process that does not know of it"

    asyncio.run(scenario())


@pytest.mark.parametrize(("is_there", "sent"), [(False, 1), (True, 0)])
def test_a_lock_gets_its_message_when_it_is_made_and_never_again(
    is_there: bool, sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from aio_pika.exceptions import ChannelNotFoundEntity

    published: list[str] = []

    class Exchange:
        async def publish(self, message: Any, queue: str, *, mandatory: bool) -> None:
            assert mandatory and message.delivery_mode == 2
            published.append(queue)

    class Making:
        default_exchange = Exchange()

        async def declare_queue(self, name: str, *, passive: bool = False, **options: Any) -> None:
            if passive and not is_there:
                raise ChannelNotFoundEntity(name)
            assert passive or options == {"durable": True, "arguments": {"x-queue-type": "quorum"}}

    async def opened(_: Any) -> Making:
        return Making()

    monkeypatch.setattr("workloads.systems.rabbitmq.lock.opened_channel", opened)
    asyncio.run(make_lock(None, lock_key(2), Kind.QUORUM))
    assert published == [lock_name("l2")] * sent


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (LockSettings(locks=5), "setting locks on rabbitmq takes at most 4, got 5"),
        (LockSettings(fencing=True), "fencing on rabbitmq takes false: a message that is held back has no token; got"),
    ],
)
def test_locks_that_rabbitmq_does_not_make_are_refused(settings: LockSettings, words: str) -> None:
    SYSTEM.require_fitting(RabbitmqSettings(), LockSettings())
    with pytest.raises(UsageError, match=words):
        SYSTEM.require_fitting(RabbitmqSettings(), settings)
