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

MAX_RUNNING_CALLS = 4_096
"""Calls that are answered at one time; those beyond are answered RESOURCE_EXHAUSTED and nothing is done."""
_TIMEOUT = re.compile(r"([0-9]{1,8})([HMSmun])")
_UNIT_S = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
_HEAD = ((":status", "200"), ("content-type", "application/grpc"))


class Call:
    """One call as its handler sees it. `metadata` is texts by lower-case names."""

    def __init__(self, stream: Stream, method: str, remote: str) -> None:
        assert stream.headers is not None
        self.method = method
        self.remote = remote
        self.metadata: Mapping[str, str] = stream.headers
        self._stream = stream
        self._has_begun = False

    async def receive(self) -> bytes | None:
        """The next message; None where the client sends no more. Raises GrpcError, StreamEnded."""
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
        await self._stream.send(message)

    def end(self, status: int, message: str = "") -> None:
        """Raises StreamEnded."""
        trailers = [("grpc-status", str(int(status)))]
        if message:
            trailers.append(("grpc-message", quote(message[:1_000], safe=" !\"#$&'()*+,/:;<=>?@[]^`{|}~")))
        self._stream.send_headers([*(() if self._has_begun else _HEAD), *trailers], end=True)


Handler = Callable[[Call], Coroutine[Any, Any, None]]


class GrpcServer:
    """`handlers`: `/package.Service/Method` -> what answers its calls.

    A handler that returns ends its call with OK; GrpcError ends it with its status, MalformedMessage with
    INVALID_ARGUMENT. It is cancelled where the client goes or its deadline passes. Any other exception is a mistake of
    ours: the host takes it for a panic.
    """

    def __init__(self, host: Host, handlers: Mapping[str, Handler]) -> None:
        self._host = host
        self._handlers = handlers
        self._listener: Listener | None = None
        self._connections: dict[int, Connection] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._serial = 0

    async def start(self, port: int) -> None:
        """Raises OSError if the port is taken."""
        self._listener = await self._host.network.listen(port, self._serve)

    def close(self) -> None:
        """Stop listening, close all connections, cancel what is still being answered."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in list(self._connections.values()):
            connection.close()
        for task in list(self._running.values()):
            task.cancel()

    async def _serve(self, connection: Connection) -> None:
        if self._listener is None:
            connection.close()
            return
        serial = self._next_serial()
        self._connections[serial] = connection
        http2 = Http2(connection, is_client=False, on_request=lambda stream: self._called(stream, connection))
        try:
            reason = await http2.run()
        finally:
            del self._connections[serial]
        self._host.log("grpc_connection_ended", remote=connection.remote, reason=reason)

    def _next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def _called(self, stream: Stream, connection: Connection) -> None:
        headers = stream.headers or {}
        call = Call(stream, headers.get(":path", ""), connection.remote)
        if len(self._running) >= MAX_RUNNING_CALLS:
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
        task = self._running[serial] = self._host.spawn(self._answer(handler, call, serial), f"call {call.method}")
        stream.on_end = lambda: _cancel(task)

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
            self._running.pop(serial, None)
        _end(call, status, message)


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


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
