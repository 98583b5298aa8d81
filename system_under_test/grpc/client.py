"""The asking side of gRPC: one connection an address, a stream a call.

What the ways to fail mean: ConnectFailed, certainly nothing was sent; StreamEnded and TimeoutError, the call may or
may not have taken effect; GrpcError, the server said so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import unquote

from system_under_test.grpc.errors import GrpcError, Status
from system_under_test.grpc.http2 import Http2, Stream
from system_under_test.runtime.host import ConnectFailed, Host


class OpenCall:
    """A call under way; `end` or a `receive` that returned None ends it."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def send(self, message: bytes, *, last: bool = False) -> None:
        """Raises StreamEnded."""
        await self._stream.send(message, end=last)

    async def receive(self) -> bytes | None:
        """The next message; None where the call ended with OK. Raises GrpcError, StreamEnded."""
        message = await self._stream.receive()
        if message is None:
            self._check_status()
        return message

    def end(self) -> None:
        self._stream.reset()

    def _check_status(self) -> None:
        headers, trailers = self._stream.headers or {}, self._stream.trailers
        text = trailers.get("grpc-status") or headers.get("grpc-status") or ""
        if not text.isdecimal():
            raise GrpcError(Status.UNKNOWN, "the call ended without a status")
        if text != "0":
            message = trailers.get("grpc-message") or headers.get("grpc-message") or ""
            raise GrpcError(int(text[:9]), unquote(message))


class GrpcClient:
    """Connects when first asked; a failed or ended connection is forgotten, so the next call tries anew."""

    def __init__(self, host: Host, connect_timeout_s: float = 3.0) -> None:
        self._host = host
        self._connect_timeout_s = connect_timeout_s
        self._connecting: dict[str, asyncio.Lock] = {}
        self._open: dict[str, Http2] = {}
        self._closed = False

    async def call(
        self, address: str, method: str, message: bytes, timeout_s: float, metadata: Mapping[str, str] | None = None
    ) -> bytes:
        """One message there, one back. Raises ConnectFailed, StreamEnded, TimeoutError, GrpcError."""
        answers = await self.call_for_all(address, method, message, timeout_s, metadata)
        if len(answers) != 1:
            raise GrpcError(Status.INTERNAL, f"{len(answers)} messages came instead of one")
        return answers[0]

    async def call_for_all(
        self, address: str, method: str, message: bytes, timeout_s: float, metadata: Mapping[str, str] | None = None
    ) -> list[bytes]:
        """One message there, any number back. Raises as `call`."""
        started_ns = self._host.clock.monotonic_ns()
        call = await self.open(address, method, metadata, timeout_s)
        left_s = timeout_s - (self._host.clock.monotonic_ns() - started_ns) / 1e9
        try:
            return await self._host.clock.within(max(left_s, 0.0), _all_answers(call, message))
        finally:
            call.end()

    async def open(
        self, address: str, method: str, metadata: Mapping[str, str] | None = None, timeout_s: float | None = None
    ) -> OpenCall:
        """Begin a call with messages in both directions. Raises ConnectFailed, StreamEnded."""
        http2 = await self._connected(address, self._connect_timeout_s if timeout_s is None else timeout_s)
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", method),
            (":authority", address),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            *((metadata or {}).items()),
        ]
        if timeout_s is not None:
            headers.append(("grpc-timeout", f"{max(1, min(round(timeout_s * 1e3), 99_999_999))}m"))
        return OpenCall(http2.open_stream(headers))

    def close(self) -> None:
        """End all calls and connections."""
        self._closed = True
        for http2 in list(self._open.values()):
            http2.connection.close()

    async def _connected(self, address: str, timeout_s: float) -> Http2:
        """Raises ConnectFailed."""
        async with self._connecting.setdefault(address, asyncio.Lock()):
            http2 = self._open.get(address)
            if http2 is not None and not http2.connection.closed:
                return http2
            if self._closed:
                raise ConnectFailed("the client was closed")
            connection = await self._host.network.connect(address, timeout_s)
            http2 = self._open[address] = Http2(connection, is_client=True)
            self._host.spawn(self._run(address, http2), f"gRPC connection to {address}")
            return http2

    async def _run(self, address: str, http2: Http2) -> None:
        await http2.run()
        if self._open.get(address) is http2:
            del self._open[address]


async def _all_answers(call: OpenCall, message: bytes) -> list[bytes]:
    await call.send(message, last=True)
    answers = []
    while (answer := await call.receive()) is not None:
        answers.append(answer)
    return answers
