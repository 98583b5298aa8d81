"""The answering side of remoting: frames in, a handler's responses out.

One task a connection reads frames in order. A handler that returns its response at once is answered
from that task; one that returns a coroutine runs as a task of its own, so that later requests on the
connection do not wait for it. Responses may therefore leave in another order than requests came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import (
    FrameTooLong,
    MalformedFrame,
    RemotingCommand,
    RemotingError,
    frame_length,
)
from system_under_test.runtime.host import Connection, ConnectionClosed, Host, Listener
from system_under_test.runtime.places import Places

MAX_RUNNING_HANDLERS = 4096
"""Requests at work at one time, unless another number is given; those beyond are answered SYSTEM_BUSY, and not done."""


class Peer(Protocol):
    """The other end of an accepted connection; the same object for the connection's whole life."""

    @property
    def remote(self) -> str: ...

    @property
    def closed(self) -> bool: ...

    def write(self, data: bytes) -> None:
        """Queue bytes for sending, beside what answers. Raises ConnectionClosed if known to be closed."""

    def close(self) -> None: ...


Answer = RemotingCommand | None
Handler = Callable[[RemotingCommand, Peer], Answer | Coroutine[Any, Any, Answer]]


class RemotingServer:
    """Listens on one port and lets `handler` answer; `on_close` is called once for each connection that ends.

    `translate` may change an answer to what its client understands. A handler that waits gives its place of `places`
    back meanwhile. RemotingError from a handler becomes a response.
    Any other exception is a mistake of ours: the host takes it for a panic.
    """

    def __init__(
        self,
        host: Host,
        handler: Handler,
        on_close: Callable[[Peer], None] | None = None,
        *,
        translate: Callable[[RemotingCommand, RemotingCommand], None] | None = None,
        places: Places | None = None,
    ) -> None:
        self._host = host
        self._translate = translate
        self._handler = handler
        self._on_close = on_close
        self._listener: Listener | None = None
        self._connections: dict[int, Connection] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._places = places or Places(MAX_RUNNING_HANDLERS)
        self._serial = 0

    async def start(self, port: int) -> None:
        """Raises OSError if the port is taken."""
        self._listener = await self._host.network.listen(port, self.serve)

    def share(self, listener: Listener) -> None:
        """Another one listens, and hands over by `serve` the connections that are for this server."""
        self._listener = listener

    def close(self) -> None:
        """Stop listening, close all connections, cancel what is still being answered."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in list(self._connections.values()):
            connection.close()
        for task in self._running.values():
            task.cancel()
        self._running.clear()

    def _next_serial(self) -> int:
        self._serial += 1
        return self._serial

    async def serve(self, connection: Connection) -> None:
        """Answer what comes on it until it ends."""
        if self._listener is None:
            connection.close()
            return
        serial = self._next_serial()
        self._connections[serial] = connection
        try:
            while True:
                length = frame_length(await connection.read_exactly(4))
                request = RemotingCommand.decode(await connection.read_exactly(length))
                if not request.is_response:
                    self._handle(request, connection)
                await connection.drain()
        except ConnectionClosed:
            pass
        except MalformedFrame as error:
            self._host.log("malformed_frame", remote=connection.remote, reason=str(error))
        finally:
            del self._connections[serial]
            connection.close()
            if self._on_close is not None:
                self._on_close(connection)

    def _handle(self, request: RemotingCommand, connection: Connection) -> None:
        try:
            answer = self._handler(request, connection)
        except RemotingError as error:
            answer = RemotingCommand.response(error.code, remark=error.remark)
        if answer is None or isinstance(answer, RemotingCommand):
            self._respond(connection, request, answer)
        elif self._places.is_full:
            answer.close()
            self._respond(
                connection, request, RemotingCommand.response(ResponseCode.SYSTEM_BUSY, remark="too many requests")
            )
        else:
            serial = self._next_serial()
            self._places.take()
            self._running[serial] = self._host.spawn(
                self._answer_later(serial, request, connection, answer), f"request {request.code}"
            )

    async def _answer_later(
        self, serial: int, request: RemotingCommand, connection: Connection, coroutine: Coroutine[Any, Any, Answer]
    ) -> None:
        answer: Answer
        try:
            answer = await coroutine
        except RemotingError as error:
            answer = RemotingCommand.response(error.code, remark=error.remark)
        finally:
            self._running.pop(serial, None)
            self._places.give_back()
        if not connection.closed:
            try:
                self._host.reached("about-to-answer")
                self._respond(connection, request, answer)
                self._host.reached("answered")
            except ConnectionClosed:
                self._host.reached("answer-undeliverable")

    def _respond(self, connection: Connection, request: RemotingCommand, answer: Answer) -> None:
        if answer is None or request.is_oneway:
            return
        if self._translate is not None:
            self._translate(request, answer)
        answer.opaque = request.opaque
        answer.serialization = request.serialization
        try:
            frame = answer.encode()
        except FrameTooLong as error:
            # Indefinite, as SYSTEM_ERROR is: what was asked for may be done.
            refusal = RemotingCommand.response(ResponseCode.SYSTEM_ERROR, remark=f"the answer is too long: {error}")
            refusal.opaque = request.opaque
            refusal.serialization = request.serialization
            frame = refusal.encode()
        connection.write(frame)
