"""gRPC's calls between the project's own server and client, over sockets on loopback; and a server given any bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from hypothesis import given, settings
from hypothesis import strategies as st

from system_under_test.grpc.client import GrpcClient
from system_under_test.grpc.errors import GrpcError, Status, StreamEnded
from system_under_test.grpc.http2 import MAX_MESSAGE_BYTES, Http2
from system_under_test.grpc.protobuf import MalformedMessage
from system_under_test.grpc.server import Call, GrpcServer
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed
from system_under_test.runtime.real import RealHost

LONG_S = 60.0


class World:
    def __init__(self, directory: Path) -> None:
        self.events: list[dict[str, Any]] = []
        self.host = RealHost("n", directory, bind="127.0.0.1", events=lambda line: self.events.append(json.loads(line)))
        self.client = GrpcClient(self.host, LONG_S)
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()
        self.server = GrpcServer(
            self.host,
            {
                "/t/Twice": self.twice,
                "/t/Chat": self.chat,
                "/t/Count": self.count,
                "/t/Never": self.never,
                "/t/Refuse": self.refuse,
                "/t/Misread": self.misread,
                "/t/Silent": self.silent,
            },
        )
        self.address = ""

    async def call(self, method: str, message: bytes = b"", timeout_s: float = LONG_S) -> bytes:
        return await self.client.call(self.address, method, message, timeout_s)

    async def twice(self, call: Call) -> None:
        await call.send(await call.only() * 2)

    async def chat(self, call: Call) -> None:
        while (message := await call.receive()) is not None:
            await call.send(message.upper())

    async def count(self, call: Call) -> None:
        for number in range(int(await call.only())):
            await call.send(b"%d" % number)

    async def never(self, call: Call) -> None:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()

    async def refuse(self, call: Call) -> None:
        raise GrpcError(Status.RESOURCE_EXHAUSTED, "nö: 100 % full\n")

    async def misread(self, call: Call) -> None:
        raise MalformedMessage("no such thing")

    async def silent(self, call: Call) -> None:
        pass


def in_world(directory: Path, body: Callable[[World], Awaitable[None]]) -> None:
    async def scenario() -> None:
        world = World(directory)
        await world.server.start(0)
        listener = world.server._listener
        assert listener is not None
        world.address = f"127.0.0.1:{listener.port}"  # type: ignore[attr-defined]
        try:
            await asyncio.wait_for(body(world), LONG_S)
        finally:
            world.client.close()
            world.server.close()
            await asyncio.sleep(0.01)
        assert world.host.panicked is None

    asyncio.run(scenario())


def test_calls_of_every_kind(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        assert await world.call("/t/Twice", b"hi") == b"hihi"
        assert await world.call("/t/Twice", b"") == b""
        assert await world.client.call_for_all(world.address, "/t/Count", b"3", LONG_S) == [b"0", b"1", b"2"]
        assert await world.client.call_for_all(world.address, "/t/Count", b"0", LONG_S) == []
        chat = await world.client.open(world.address, "/t/Chat")
        for word in (b"a", b"b"):
            await chat.send(word)
            assert await chat.receive() == word.upper()
        await chat.send(b"c", last=True)
        assert [await chat.receive(), await chat.receive()] == [b"C", None]

    in_world(tmp_path, body)


def test_messages_larger_than_every_window(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        message = bytes(range(256)) * 12_000
        answers = await asyncio.gather(*(world.call("/t/Twice", message) for _ in range(3)))
        assert answers == [message * 2] * 3
        with pytest.raises(GrpcError, match=str(MAX_MESSAGE_BYTES)):
            await world.call("/t/Twice", bytes(MAX_MESSAGE_BYTES + 1))
        assert await world.call("/t/Twice", b"still") == b"stillstill"

    in_world(tmp_path, body)


def test_a_thousand_calls_at_once(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        words = [b"%d." % number for number in range(1_000)]
        assert await asyncio.gather(*(world.call("/t/Twice", word) for word in words)) == [word * 2 for word in words]

    in_world(tmp_path, body)


@pytest.mark.parametrize(
    ("method", "status", "message"),
    [
        ("/t/Refuse", Status.RESOURCE_EXHAUSTED, "nö: 100 % full\n"),
        ("/t/Misread", Status.INVALID_ARGUMENT, "no such thing"),
        ("/t/Nothing", Status.UNIMPLEMENTED, "there is no method /t/Nothing"),
        ("/t/Silent", Status.INTERNAL, "0 messages came instead of one"),
    ],
)
def test_a_call_that_fails_says_why(tmp_path: Path, method: str, status: Status, message: str) -> None:
    async def body(world: World) -> None:
        with pytest.raises(GrpcError) as failure:
            await world.call(method)
        assert (failure.value.status, failure.value.message) == (status, message)

    in_world(tmp_path, body)


def test_a_client_that_waits_no_longer_ends_its_call(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        with pytest.raises((TimeoutError, GrpcError)):
            await world.call("/t/Never", timeout_s=0.05)
        await world.cancelled.wait()
        assert await world.call("/t/Twice", b"on") == b"onon"

    in_world(tmp_path, body)


def test_a_client_that_goes_ends_its_calls(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        task = asyncio.ensure_future(world.call("/t/Never"))
        await world.begun.wait()
        world.client.close()
        with pytest.raises(StreamEnded):
            await task
        await world.cancelled.wait()
        with pytest.raises(ConnectFailed):
            await world.call("/t/Twice")

    in_world(tmp_path, body)


def test_after_a_restart_of_the_server_the_next_call_connects_anew(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        task = asyncio.ensure_future(world.call("/t/Never"))
        await world.begun.wait()
        world.server.close()
        with pytest.raises(StreamEnded):
            await task
        await world.server.start(int(world.address.rpartition(":")[2]))
        assert await world.call("/t/Twice", b"x") == b"xx"

    in_world(tmp_path, body)


class Bytes:
    """A connection on which these bytes come, and then the end."""

    def __init__(self, data: bytes) -> None:
        self.remote = "somebody"
        self.closed = False
        self.written = 0
        self._data = data

    async def read_exactly(self, count: int) -> bytes:
        if self.closed or len(self._data) < count:
            raise ConnectionClosed("the end")
        taken, self._data = self._data[:count], self._data[count:]
        return taken

    def write(self, data: bytes) -> None:
        self.written += len(data)

    async def drain(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


def valid_call(path: str, message: bytes) -> bytes:
    """What a client sends for one call, from the connection's beginning."""
    h2 = H2Connection(H2Configuration(client_side=True))
    h2.initiate_connection()
    headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "a")]
    h2.send_headers(1, [*headers, ("content-type", "application/grpc")])
    h2.send_data(1, b"\0" + len(message).to_bytes(4, "big") + message, end_stream=True)
    return bytes(h2.data_to_send())


VALID = valid_call("/t/Twice", b"hello")


def serve(data: bytes) -> list[bytes | Exception | None]:
    """What a server makes of these bytes: the messages of each stream."""
    taken: list[bytes | Exception | None] = []

    async def body() -> None:
        streams: list[Any] = []
        await Http2(Bytes(data), is_client=False, on_request=streams.append).run()
        for stream in streams:
            try:
                taken.append(await asyncio.wait_for(stream.receive(), 1))
            except (GrpcError, StreamEnded) as error:
                taken.append(error)

    asyncio.run(body())
    return taken


def test_the_bytes_of_a_whole_call_are_served() -> None:
    assert serve(VALID) == [b"hello"]


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_no_bytes_end_a_server(data: st.DataObject) -> None:
    broken = bytearray(VALID)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(broken) - 1))
        match data.draw(st.sampled_from(("change", "cut", "insert"))):
            case "change":
                broken[at] = data.draw(st.integers(0, 255))
            case "cut":
                del broken[at : at + data.draw(st.integers(1, 20))]
            case _:
                broken[at:at] = data.draw(st.binary(min_size=1, max_size=30))
        if not broken:
            break
    serve(bytes(broken))


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_no_bytes_after_the_preface_end_a_server(data: bytes) -> None:
    serve(VALID[:24] + data)


def test_a_call_that_ends_before_it_is_begun_gives_its_place_back(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        call = await world.client.open(world.address, "/t/Never")
        call.end()  # both frames come in one piece
        assert await world.call("/t/Twice", b"a") == b"aa"
        assert world.server._places.taken == 0 and not world.server._running
        call = await world.client.open(world.address, "/t/Never")
        await world.begun.wait()
        assert world.server._places.taken == 1
        call.end()
        await world.cancelled.wait()
        assert await world.call("/t/Twice", b"a") == b"aa"
        assert world.server._places.taken == 0 and not world.server._running

    in_world(tmp_path, body)


def test_who_waits_for_a_word_of_its_client_has_no_place(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        call = await world.client.open(world.address, "/t/Chat")
        await call.send(b"a")
        assert await call.receive() == b"A"
        assert (len(world.server._running), world.server._places.taken) == (1, 0)
        call.end()

    in_world(tmp_path, body)
