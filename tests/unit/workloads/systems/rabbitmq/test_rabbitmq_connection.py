"""What a connection to RabbitMQ leaves behind that ends while requests are under way: nothing to complain of.

A broker of a few lines stands for RabbitMQ: it opens a connection and a channel, and then answers no more.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pamqp import commands, frame
from pamqp.common import FieldTable
from pamqp.exceptions import UnmarshalingException

from harness.errors import OperationError
from harness.operation import Operation
from workloads.log import queue_key
from workloads.systems.rabbitmq.client import RabbitmqClient
from workloads.systems.rabbitmq.connection import connected, ended, opened_channel

ANSWERS: dict[type, Any] = {
    commands.Connection.StartOk: commands.Connection.Tune(channel_max=10, frame_max=131072, heartbeat=0),
    commands.Connection.Open: commands.Connection.OpenOk(),
    commands.Channel.Open: commands.Channel.OpenOk(),
    commands.Confirm.Select: commands.Confirm.SelectOk(),
}
"""Whatever is not here is never answered."""


class Network:
    def __init__(self, address: str) -> None:
        self._address = address

    def reached_at(self, _: str) -> str:
        return self._address


class Clock:
    def monotonic_ns(self) -> int:
        return 0


class Host:
    def __init__(self, address: str) -> None:
        self.network, self.clock = Network(address), Clock()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, got: asyncio.Event) -> None:
    """Set `got` once something came that is never answered."""
    await reader.readexactly(8)
    capabilities: FieldTable = {"publisher_confirms": True, "basic.nack": True}
    start = commands.Connection.Start(
        server_properties={"capabilities": capabilities}, mechanisms="PLAIN", locales="en_US"
    )
    writer.write(frame.marshal(start, 0))
    buffer = b""
    while part := await reader.read(65536):
        buffer += part
        while buffer:
            try:
                size, channel, came = frame.unmarshal(buffer)
            except UnmarshalingException:  # not yet whole
                break
            buffer = buffer[size:]
            if (answer := ANSWERS.get(type(came))) is not None:
                writer.write(frame.marshal(answer, channel))
            elif isinstance(came, commands.Basic.Get | commands.Basic.Publish):
                got.set()


@asynccontextmanager
async def broker(got: asyncio.Event) -> AsyncIterator[tuple[Host, list[asyncio.StreamWriter]]]:
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await _serve(reader, writer, got)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Host(f"127.0.0.1:{server.sockets[0].getsockname()[1]}"), writers
    finally:
        for writer in writers:
            writer.close()
        server.close()


def _complaints(scenario: Any) -> list[str]:
    """What asyncio says of futures that nobody looked at."""
    found: list[str] = []

    async def heard() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: found.append(f"{context['message']}: {context.get('exception')}"))
        await scenario()
        for _ in range(3):
            gc.collect()
            await asyncio.sleep(0)

    asyncio.run(heard())
    gc.collect()
    return found


OPERATIONS = {
    "dequeue": Operation(type="invoke", f="dequeue", process=0, time=0, key=queue_key(0), value={}),
    "enqueue": Operation(type="invoke", f="enqueue", process=0, time=0, key=queue_key(0), value={"value": 1}),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("f", ["dequeue", "enqueue"])
@pytest.mark.parametrize("how", ["given up", "connection lost"])
def test_a_request_that_is_not_answered_leaves_no_future_that_nobody_looked_at(
    f: str, how: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    timeout_s = 0.1 if how == "given up" else 5.0
    monkeypatch.setattr("workloads.systems.rabbitmq.client.TAKES_WITHIN_S", timeout_s)

    async def scenario() -> None:
        got = asyncio.Event()
        async with broker(got) as (host, writers):
            client = RabbitmqClient(host, "q1")
            await client.open()
            monkeypatch.setattr("workloads.systems.rabbitmq.client.ANSWER_TIMEOUT_S", timeout_s)
            asked = asyncio.create_task(client.invoke(OPERATIONS[f]))
            await asyncio.wait_for(got.wait(), 5)
            if how == "connection lost":
                for writer in writers:
                    writer.transport.abort()
            with pytest.raises(OperationError) as failed:
                await asked
            assert failed.value.error.code == ("client-timeout" if how == "given up" else "connection-lost")
            monkeypatch.undo()

    assert _complaints(scenario) == []
    assert capfd.readouterr().err == ""


def test_futures_that_nobody_looks_at_are_complained_of_without_us() -> None:
    """So that the test above could find something."""

    async def scenario() -> None:
        got = asyncio.Event()
        async with broker(got) as (host, _):
            connection = await connected(host, "q1")
            channel = await opened_channel(connection)
            underlying = await channel.get_underlay_channel()
            forgotten = type(underlying).create_future(underlying)
            del channel, underlying
            await ended(connection)
            assert forgotten.done()

    assert len(_complaints(scenario)) == 1


class Silent:
    """A connection whose node does not answer that it is closed."""

    def __init__(self) -> None:
        self._closed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        await asyncio.Event().wait()

    def closed(self) -> asyncio.Future[bool]:
        return self._closed


def test_a_connection_that_is_given_up_does_not_close_itself_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workloads.systems.rabbitmq.connection.CLOSING_TIMEOUT_S", 0.02)

    async def given_up() -> bool:
        connection = Silent()
        await ended(connection)
        return connection.closed().done()

    assert asyncio.run(given_up())
