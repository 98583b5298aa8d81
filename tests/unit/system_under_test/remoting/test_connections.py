"""Server and client over real sockets on loopback. Every wait has a bound: a test that hangs fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from system_under_test.remoting import client as client_module
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.command import RemotingCommand, RemotingError, Serialization
from system_under_test.remoting.server import RemotingServer
from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed
from system_under_test.runtime.real import RealHost

ECHO, LATER, REFUSE, REFUSE_LATER, NEVER, UNANSWERED = range(1, 7)


@dataclass
class World:
    """A server at `address` and a client, on one real host."""

    host: RealHost
    server: RemotingServer
    client: RemotingClient
    address: str
    events: list[dict[str, object]]
    peers: list[object] = field(default_factory=list)
    closed: list[object] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    codes: list[int] = field(default_factory=list)

    def handle(self, command, peer):
        if command.code != LATER:
            self.codes.append(command.code)
        if peer not in self.peers:
            self.peers.append(peer)
        match command.code:
            case 1:
                return RemotingCommand.response(0, command.ext_fields, command.body)
            case 2:
                return self.later(command)
            case 3:
                raise RemotingError(16, "not you")
            case 4:
                return self.refuse_later()
            case 5:
                return asyncio.Event().wait()
            case _:
                return None

    async def later(self, command):
        self.codes.append(command.code)
        await self.gate.wait()
        return RemotingCommand.response(0, command.ext_fields)

    async def refuse_later(self):
        await asyncio.sleep(0)
        raise RemotingError(14, "not now")


def in_world(tmp_path: Path, body: Callable[[World], Awaitable[None]]) -> None:
    async def scenario() -> None:
        events: list[dict[str, object]] = []
        host = RealHost("n", tmp_path, bind="127.0.0.1", events=lambda line: events.append(json.loads(line)))
        world = World(host, None, RemotingClient(host), "", events)
        world.server = RemotingServer(host, world.handle, world.closed.append)
        await world.server.start(0)
        world.address = f"127.0.0.1:{world.server._listener.port}"
        try:
            async with asyncio.timeout(10):
                await body(world)
        finally:
            world.client.close()
            world.server.close()
            await host.close()
        assert host.panicked is None, host.panicked

    asyncio.run(scenario())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in a peer, which sets no event
            await asyncio.sleep(0)


def request(code: int, **fields: str) -> RemotingCommand:
    return RemotingCommand.request(code, fields)


def test_a_request_gets_its_response(tmp_path):
    async def body(world):
        answer = await world.client.invoke(world.address, RemotingCommand.request(ECHO, {"a": "b"}, b"body"), 5)
        assert (answer.code, answer.ext_fields, answer.body) == (0, {"a": "b"}, b"body")

    in_world(tmp_path, body)


def test_a_slow_request_does_not_hold_up_later_ones(tmp_path):
    async def body(world):
        slow = asyncio.create_task(world.client.invoke(world.address, request(LATER, which="slow"), 5))
        await until(lambda: LATER in world.codes)
        fast = await world.client.invoke(world.address, request(ECHO, which="fast"), 5)
        assert fast.ext_fields == {"which": "fast"}
        assert not slow.done()
        world.gate.set()
        assert (await slow).ext_fields == {"which": "slow"}

    in_world(tmp_path, body)


def test_many_requests_at_once_share_one_connection_and_none_gets_another_ones_answer(tmp_path):
    async def body(world):
        world.gate.set()
        answers = await asyncio.gather(
            *(world.client.invoke(world.address, request(1 + i % 2, n=str(i)), 5) for i in range(200))
        )
        assert [answer.ext_fields["n"] for answer in answers] == [str(i) for i in range(200)]
        assert len(world.peers) == 1

    in_world(tmp_path, body)


@pytest.mark.parametrize(("code", "expected"), [(REFUSE, (16, "not you")), (REFUSE_LATER, (14, "not now"))])
def test_a_refusal_becomes_a_response(tmp_path, code, expected):
    async def body(world):
        answer = await world.client.invoke(world.address, request(code), 5)
        assert (answer.code, answer.remark) == expected

    in_world(tmp_path, body)


def test_a_oneway_request_is_not_answered(tmp_path):
    async def body(world):
        await world.client.oneway(world.address, RemotingCommand.oneway(ECHO))
        answer = await world.client.invoke(world.address, request(ECHO, after="oneway"), 5)
        assert answer.ext_fields == {"after": "oneway"}
        assert world.codes == [ECHO, ECHO]

    in_world(tmp_path, body)


def test_no_response_in_time_is_a_timeout_and_a_silent_connection_is_given_up(tmp_path):
    async def body(world):
        with pytest.raises(TimeoutError):
            await world.client.invoke(world.address, request(UNANSWERED), 0.05)
        await until(lambda: len(world.closed) == 1)
        await world.client.invoke(world.address, request(ECHO), 5)
        assert len(world.peers) == 2

    in_world(tmp_path, body)


def test_a_timeout_keeps_a_connection_that_is_not_silent(tmp_path):
    async def body(world):
        unanswered = asyncio.create_task(world.client.invoke(world.address, request(UNANSWERED), 0.2))
        await until(lambda: UNANSWERED in world.codes)
        await world.client.invoke(world.address, request(ECHO), 5)
        with pytest.raises(TimeoutError):
            await unanswered
        await world.client.invoke(world.address, request(ECHO), 5)
        assert len(world.peers) == 1

    in_world(tmp_path, body)


def test_a_lost_connection_fails_all_pending_and_the_next_request_connects_anew(tmp_path):
    async def body(world):
        pending = [asyncio.create_task(world.client.invoke(world.address, request(LATER), 5)) for _ in range(3)]
        await until(lambda: world.codes.count(LATER) == 3)
        world.peers[0].close()
        for outcome in await asyncio.gather(*pending, return_exceptions=True):
            assert isinstance(outcome, ConnectionClosed)
        world.gate.set()
        await world.client.invoke(world.address, request(ECHO), 5)
        assert world.closed == [world.peers[0]]

    in_world(tmp_path, body)


def test_a_failed_connect_is_definite_and_not_remembered(tmp_path):
    async def body(world):
        world.server.close()
        with pytest.raises(ConnectFailed):
            await world.client.invoke(world.address, request(ECHO), 5)
        port = int(world.address.rpartition(":")[2])
        again = RemotingServer(world.host, world.handle)
        await again.start(port)
        assert (await world.client.invoke(world.address, request(ECHO), 5)).code == 0
        again.close()

    in_world(tmp_path, body)


def test_a_closed_client_sends_nothing_more(tmp_path):
    async def body(world):
        pending = asyncio.create_task(world.client.invoke(world.address, request(LATER), 5))
        await until(lambda: LATER in world.codes)
        world.client.close()
        with pytest.raises(ConnectionClosed):
            await pending
        with pytest.raises(ConnectFailed):
            await world.client.invoke(world.address, request(ECHO), 5)

    in_world(tmp_path, body)


def test_more_pending_requests_than_allowed_are_refused_before_anything_is_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(client_module, "MAX_PENDING", 2)

    async def body(world):
        pending = [asyncio.create_task(world.client.invoke(world.address, request(LATER), 5)) for _ in range(2)]
        await until(lambda: world.codes.count(LATER) == 2)
        with pytest.raises(ConnectFailed, match="pending"):
            await world.client.invoke(world.address, request(ECHO), 5)
        assert ECHO not in world.codes
        world.gate.set()
        await asyncio.gather(*pending)

    in_world(tmp_path, body)


@pytest.mark.parametrize("garbage", [b"\x7f\xff\xff\xff", b"\x00\x00\x00\x01", b"\x00\x00\x00\x06\x00\x00\x00\x02[]"])
def test_garbage_closes_its_connection_with_an_event_and_harms_no_other(tmp_path, garbage):
    async def body(world):
        await world.client.invoke(world.address, request(ECHO), 5)
        connection = await world.host.network.connect(world.address, 5)
        connection.write(garbage)
        with pytest.raises(ConnectionClosed):
            await connection.read_exactly(1)
        assert [event["event"] for event in world.events] == ["malformed_frame"]
        await world.client.invoke(world.address, request(ECHO), 5)
        assert len(world.peers) == 1

    in_world(tmp_path, body)


def test_a_garbled_response_fails_the_request_as_a_lost_connection(tmp_path):
    async def body(world):
        async def babble(connection: Connection) -> None:
            await connection.read_exactly(4)
            connection.write(b"\xff" * 64)

        listener = await world.host.network.listen(0, babble)
        with pytest.raises(ConnectionClosed, match="malformed"):
            await world.client.invoke(f"127.0.0.1:{listener.port}", request(ECHO), 5)
        listener.close()

    in_world(tmp_path, body)


def test_closing_the_server_ends_what_it_was_still_answering(tmp_path):
    async def body(world):
        pending = asyncio.create_task(world.client.invoke(world.address, request(LATER), 5))
        await until(lambda: LATER in world.codes)
        world.server.close()
        with pytest.raises(ConnectionClosed):
            await pending

    in_world(tmp_path, body)


def test_an_answer_comes_in_the_serialization_of_its_request(tmp_path):
    async def body(world: World) -> None:
        for serialization in Serialization:
            for code, expected in ((ECHO, 0), (REFUSE, 16)):
                request = RemotingCommand.request(code, {"a": "b"}, b"body")
                request.serialization = serialization
                answer = await world.client.invoke(world.address, request, 5.0)
                assert (answer.code, answer.serialization) == (expected, serialization)

    in_world(tmp_path, body)


def test_each_new_connection_is_heard_of_before_anything_is_sent_there(tmp_path: Path) -> None:
    async def body(world: World) -> None:
        heard: list[tuple[str, int]] = []
        client = RemotingClient(world.host, on_connected=lambda address: heard.append((address, len(world.codes))))
        await client.invoke(world.address, RemotingCommand.request(ECHO), 20.0)
        await client.invoke(world.address, RemotingCommand.request(ECHO), 20.0)
        client.close()
        again = RemotingClient(world.host, on_connected=lambda address: heard.append((address, len(world.codes))))
        await again.invoke(world.address, RemotingCommand.request(ECHO), 20.0)
        again.close()
        assert heard == [(world.address, 0), (world.address, 2)]

    in_world(tmp_path, body)
