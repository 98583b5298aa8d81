"""The answering side of gRPC: a handler a method, which receives messages and sends messages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from urllib.parse import quote

from system_under_test.grpc.errors import GrpcError, Status, StreamEnded
from system_under_test.grpc.http2 import Http2, Stream
from system_under_test.grpc.protobuf import MalformedMessage
from system_under_test.runtime.host import Connection, Host, Listener
from system_under_test.runtime.places import Places

MAX_RUNNING_CALLS = 4_096
"""Calls at work at one time; those beyond are answered RESOURCE_EXHAUSTED and nothing is done."""
MAX_CALLS = 250_000
"""Those that wait included."""
LOOK_S = 20.0
MOST_SILENT_LOOKS = 3
"""A connection on which nothing came for so many looks is asked for a sign of life after the first, and ended then."""
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_UNIT_S = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_HEAD = ((":status", "200"), ("content-type", "application/grpc"))


class Call:
    """One call as its handler sees it. `metadata` is texts by lower-case names."""

    def __init__(self, stream: Stream, method: str, remote: str, places: Places) -> None:
        assert stream.headers is not None
        self._places = places
        self.method = method
        self.remote = remote
        self.metadata: Mapping[str, str] = stream.headers
        self._stream = stream
        self._has_begun = False

    async def receive(self) -> bytes | None:
        """The next message; None where the client sends no more. Raises GrpcError, StreamEnded."""
        with self._places.waiting():
            return await self._stream.receive()

    async def only(self) -> bytes:
        """The one message of a call that has one. Raises GrpcError, StreamEnded."""
        message = await self.receive()
        if message is None:
            raise GrpcError(Status.INTERNAL, "the call has no message")
        return message

    async def send(self, message: bytes) -> None:
        """Raises StreamEnded."""
        if not self._has_begun:
            self._has_begun = True
            self._stream.send_headers(_HEAD)
        with self._places.waiting():
            await self._stream.send(message)

    def end(self, status: int, message: str = "") -> None:
        """Raises StreamEnded."""
        trailers = [("grpc-status", str(int(status)))]
        if message:
            trailers.append(("grpc-message", quote(message[:1_000], safe=" !\"#$&'()*+,/:;<=>?@[]^`{|}~")))
        self._stream.send_headers([*(() if self._has_begun else _HEAD), *trailers], end=True)

    def abort(self, reason: str) -> None:
        """End it and its handler, whether or not the client is there to hear of it."""
        self._stream.abort(reason)


Handler = Callable[[Call], Coroutine[Any, Any, None]]


class GrpcServer:
    """`handlers`: `/package.Service/Method` -> what answers its calls.

    A handler that returns ends its call with OK; GrpcError ends it with its status, MalformedMessage with
    INVALID_ARGUMENT. It is cancelled where the client goes or its deadline passes. Any other exception is a mistake of
    ours: the host takes it for a panic.
    """

    def __init__(self, host: Host, handlers: Mapping[str, Handler], places: Places | None = None) -> None:
        self._host = host
        self._places = places or Places(MAX_RUNNING_CALLS)
        self._watch: asyncio.Task[None] | None = None
        self._handlers = handlers
        self._listener: Listener | None = None
        self._connections: dict[int, Http2] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._serial = 0

    async def start(self, port: int) -> None:
        """Raises OSError if the port is taken."""
        self._listener = await self._host.network.listen(port, self._serve)
        self._watch = self._host.spawn(self._end_the_silent(), "silent gRPC connections")

    def close(self) -> None:
        """Stop listening, close all connections, cancel what is still being answered."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._watch is not None:
            self._watch.cancel()
        for http2 in list(self._connections.values()):
            http2.connection.close()
        for task in list(self._running.values()):
            task.cancel()

    async def _serve(self, connection: Connection) -> None:
        if self._listener is None:
            connection.close()
            return
        serial = self._next_serial()
        http2 = Http2(connection, is_client=False, on_request=lambda stream: self._called(stream, connection))
        self._connections[serial] = http2
        try:
            reason = await http2.run()
        finally:
            del self._connections[serial]
        self._host.log("grpc_connection_ended", remote=connection.remote, reason=reason)

    async def _end_the_silent(self) -> None:
        """A client that has vanished without a word closes no connection, and its calls wait without end."""
        seen: dict[int, tuple[int, int]] = {}
        while True:
            await self._host.clock.sleep(LOOK_S)
            looks = {}
            for serial, http2 in list(self._connections.items()):
                frames, silent = seen.get(serial, (-1, 0))
                looks[serial] = http2.frames, silent + 1 if frames == http2.frames else 0
                if looks[serial][1] >= MOST_SILENT_LOOKS:
                    http2.connection.close()
                elif looks[serial][1] > 0:
                    http2.ping()
            seen = looks

    def _next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def _called(self, stream: Stream, connection: Connection) -> None:
        headers = stream.headers or {}
        call = Call(stream, headers.get(":path", ""), connection.remote, self._places)
        if self._places.is_full or len(self._running) >= MAX_CALLS:
            _end(call, Status.RESOURCE_EXHAUSTED, "too many calls")
            return
        if not headers.get("content-type", "").startswith("application/grpc"):
            _end(call, Status.INTERNAL, "the content type is not application/grpc")
            return
        handler = self._handlers.get(call.method)
        if handler is None:
            _end(call, Status.UNIMPLEMENTED, f"there is no method {call.method}")
            return
        serial = self._next_serial()
        self._places.take()
        task = self._running[serial] = self._host.spawn(self._answer(handler, call, serial), f"call {call.method}")
        stream.on_end = lambda: self._gone(serial, task)

    def _gone(self, serial: int, task: asyncio.Task[None]) -> None:
        """The client has left. A task that is cancelled before its first step never gets to its end."""
        self._leave(serial)
        task.cancel()

    def _leave(self, serial: int) -> None:
        if self._running.pop(serial, None) is not None:
            self._places.give_back()

    async def _answer(self, handler: Handler, call: Call, serial: int) -> None:
        status, message = Status.OK, ""
        try:
            timeout_s = _timeout_s(call.metadata.get("grpc-timeout"))
            if timeout_s is None:
                await handler(call)
            else:
                await self._host.clock.within(timeout_s, handler(call))
        except GrpcError as error:
            _end(call, error.status, error.message)
            return
        except MalformedMessage as error:
            status, message = Status.INVALID_ARGUMENT, str(error)
        except TimeoutError:
            status, message = Status.DEADLINE_EXCEEDED, "the call's time is over"
        except StreamEnded:
            return
        finally:
            self._leave(serial)
        _end(call, status, message)


def _end(call: Call, status: int, message: str) -> None:
    try:
        call.end(status, message)
    except StreamEnded:
        return  # nobody is there to hear it


def _timeout_s(text: str | None) -> float | None:
    """Of the header that says how long the client waits. Raises GrpcError."""
    if text is None:
        return None
    match = _TIMEOUT.fullmatch(text)
    if match is None:
        raise GrpcError(Status.INTERNAL, f"grpc-timeout is {text[:100]!r}")
    return int(match[1]) * _UNIT_S[match[2]]
