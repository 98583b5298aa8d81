"""One HTTP/2 connection that carries gRPC's streams of messages, on either side.

h2 keeps the protocol's state; here are the tasks around it: frames are read whole, messages are cut out of data,
a sender waits for the other side's windows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    ResponseReceived,
    StreamReset,
    TrailersReceived,
    WindowUpdated,
)
from h2.events import StreamEnded as HalfClosed
from h2.exceptions import FlowControlError, ProtocolError
from h2.settings import SettingCodes, Settings

from system_under_test.grpc.errors import GrpcError, Status, StreamEnded
from system_under_test.runtime.host import Connection, ConnectionClosed

MAX_MESSAGE_BYTES = 8 * 1024 * 1024
MAX_WAITING_BYTES = 1024 * 1024
"""How much of one stream's messages may wait until somebody takes them; the sender is held up beyond."""
MAX_STREAMS = 1_000
WINDOW_BYTES = 1024 * 1024
_PREFACE_BYTES = 24
_FRAME_HEADER_BYTES = 9
_MAX_FRAME_BYTES = 16_384
_PREFIX_BYTES = 5

Headers = Sequence[tuple[str, str]]


class Stream:
    """One call's two directions. Headers and trailers that came are texts by lower-case names."""

    def __init__(self, http2: Http2, number: int) -> None:
        self.number = number
        self.headers: dict[str, str] | None = None
        self.trailers: dict[str, str] = {}
        self.on_end: Callable[[], None] | None = None
        """Called once when the other side, or the connection, ends the stream before both directions are closed."""
        self._http2 = http2
        self._partial = bytearray()
        self._messages: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._unacknowledged = 0
        self._failure: Exception | None = None
        self._is_closed_there = False
        self._is_dead = False
        self._news = asyncio.Event()

    async def receive(self) -> bytes | None:
        """The next message; None where there are no more.

        Raises GrpcError for what is no message, StreamEnded.
        """
        while not self._messages:
            if self._failure is not None:
                raise self._failure
            if self._is_closed_there:
                return None
            self._news.clear()
            await self._news.wait()
        message = self._messages.popleft()
        self._waiting_bytes -= len(message)
        self._acknowledge()
        return message

    async def head(self) -> None:
        """Wait for the other side's headers. Raises StreamEnded."""
        while self.headers is None:
            if self._failure is not None:
                raise self._failure
            self._news.clear()
            await self._news.wait()

    async def send(self, message: bytes, *, end: bool = False) -> None:
        """Raises StreamEnded."""
        await self._http2.send_data(self.number, b"\0" + len(message).to_bytes(4, "big") + message, end)

    def send_headers(self, headers: Headers, *, end: bool = False) -> None:
        """Raises StreamEnded."""
        self._http2.send_headers(self.number, headers, end)

    def abort(self, reason: str) -> None:
        """End it here, whether or not the other side is there to hear of it."""
        self.reset()
        self.died(reason)

    def reset(self) -> None:
        """Let the other side know that nothing more is wanted or will come; idempotent."""
        self._is_dead = True
        self._http2.reset(self.number)

    # what came

    def take_headers(self, headers: Any) -> None:
        taken = {name.decode(errors="replace").lower(): value.decode(errors="replace") for name, value in headers or ()}
        if self.headers is None:
            self.headers = taken
        else:
            self.trailers = taken
        self._news.set()

    def take_data(self, data: bytes, flow_bytes: int) -> None:
        self._unacknowledged += flow_bytes
        if self._failure is None and not self._is_dead:
            self._partial += data
            self._cut()
        else:
            self._partial.clear()
        self._acknowledge()

    def closed_there(self) -> None:
        if self._partial and self._failure is None:
            self._failure = GrpcError(Status.INTERNAL, "the stream ended within a message")
        self._is_closed_there = True
        self._news.set()

    def died(self, reason: str) -> None:
        if self._failure is None and not self._is_closed_there:
            self._failure = StreamEnded(reason)
        self._is_dead = True
        self._news.set()
        if self.on_end is not None:
            self.on_end()

    def _cut(self) -> None:
        """Cut whole messages out of what came."""
        partial = self._partial
        while len(partial) >= _PREFIX_BYTES:
            length = int.from_bytes(partial[1:_PREFIX_BYTES], "big")
            if partial[0]:
                self._failure = GrpcError(Status.UNIMPLEMENTED, "compressed messages are not supported")
            elif length > MAX_MESSAGE_BYTES:
                self._failure = GrpcError(
                    Status.RESOURCE_EXHAUSTED, f"a message of {length} bytes; {MAX_MESSAGE_BYTES} are the most"
                )
            if self._failure is not None:
                partial.clear()
                break
            end = _PREFIX_BYTES + length
            if len(partial) < end:
                break
            self._messages.append(bytes(partial[_PREFIX_BYTES:end]))
            self._waiting_bytes += length
            del partial[:end]
        self._news.set()

    def _acknowledge(self) -> None:
        if self._unacknowledged and self._waiting_bytes <= MAX_WAITING_BYTES:
            self._http2.acknowledge(self.number, self._unacknowledged)
            self._unacknowledged = 0


class Http2:
    """`run` reads until the connection ends; a server's `on_request` is called for each stream that a client opens."""

    def __init__(
        self, connection: Connection, *, is_client: bool, on_request: Callable[[Stream], None] | None = None
    ) -> None:
        self.connection = connection
        self._is_client = is_client
        self._on_request = on_request
        self._h2 = H2Connection(H2Configuration(client_side=is_client, header_encoding=None))
        self._h2.local_settings = Settings(
            client=is_client,
            initial_values={
                SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
                SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
                SettingCodes.ENABLE_PUSH: 0,
            },
        )
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(WINDOW_BYTES * 16 - self._h2.inbound_flow_control_window)
        self._streams: dict[int, Stream] = {}
        self._room: list[asyncio.Future[None]] = []
        self._is_over = False
        self.frames = 0
        """That came so far."""
        self._flush()

    async def run(self) -> str:
        """Returns why the connection ended."""
        reason = "closed"
        try:
            if not self._is_client:
                self._happened(self._h2.receive_data(await self.connection.read_exactly(_PREFACE_BYTES)))
            while not self.connection.closed:
                header = await self.connection.read_exactly(_FRAME_HEADER_BYTES)
                length = int.from_bytes(header[:3], "big")
                if length > _MAX_FRAME_BYTES:
                    reason = f"a frame of {length} bytes"
                    break
                payload = await self.connection.read_exactly(length) if length else b""
                self.frames += 1
                self._happened(self._h2.receive_data(header + payload))
                await self.connection.drain()
        except ConnectionClosed as error:
            reason = str(error) or "closed"
        except ProtocolError as error:
            reason = f"not HTTP/2: {error}"
            self._flush()
        finally:
            self._end(reason)
        return reason

    def ping(self) -> None:
        """A living peer answers."""
        if not self._is_over:
            self._h2.ping(bytes(8))
            self._flush()

    def open_stream(self, headers: Headers) -> Stream:
        """Raises StreamEnded."""
        if self._is_over:
            raise StreamEnded("the connection has ended")
        try:
            number = self._h2.get_next_available_stream_id()
        except ProtocolError as error:
            raise StreamEnded(str(error)) from error
        stream = self._streams[number] = Stream(self, number)
        self.send_headers(number, headers, end=False)
        return stream

    def send_headers(self, number: int, headers: Headers, end: bool) -> None:
        """Raises StreamEnded."""
        if self._is_over:
            raise StreamEnded("the connection has ended")
        try:
            self._h2.send_headers(number, headers, end_stream=end)
        except ProtocolError as error:
            raise StreamEnded(str(error)) from error
        self._flush()
        self._forget_if_done(number, end)

    async def send_data(self, number: int, data: bytes, end: bool) -> None:
        """Raises StreamEnded."""
        position = 0
        while True:
            if self._is_over:
                raise StreamEnded("the connection has ended")
            try:
                room = min(self._h2.local_flow_control_window(number), self._h2.max_outbound_frame_size)
                piece = data[position : position + max(0, room)]
                is_last = position + len(piece) == len(data)
                if piece or is_last:
                    self._h2.send_data(number, piece, end_stream=end and is_last)
                    position += len(piece)
            except (ProtocolError, FlowControlError) as error:
                raise StreamEnded(str(error)) from error
            self._flush()
            if is_last:
                self._forget_if_done(number, end)
                return
            if not piece:
                await self._more_room()

    def acknowledge(self, number: int, flow_bytes: int) -> None:
        if not self._is_over:
            self._h2.acknowledge_received_data(flow_bytes, number)
            self._flush()

    def reset(self, number: int) -> None:
        stream = self._streams.pop(number, None)
        if stream is None or self._is_over:
            return
        try:
            self._h2.reset_stream(number, ErrorCodes.CANCEL)
        except ProtocolError:
            return  # it has ended already
        self._flush()

    def _forget_if_done(self, number: int, closed_here: bool) -> None:
        """A server that has closed its direction is not interested in what may still come."""
        if closed_here and not self._is_client:
            self._streams.pop(number, None)

    async def _more_room(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._room.append(future)
        await future

    def _wake(self) -> None:
        waiting, self._room = self._room, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _happened(self, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, RequestReceived):
                self._requested(event)
            elif isinstance(event, (WindowUpdated, RemoteSettingsChanged)):
                self._wake()
            elif isinstance(event, DataReceived):
                self._data(event)
            elif isinstance(event, (ResponseReceived, TrailersReceived, HalfClosed, StreamReset)):
                self._of_stream(event)
        self._flush()

    def _requested(self, event: RequestReceived) -> None:
        if self._on_request is not None:
            assert event.stream_id is not None
            stream = self._streams[event.stream_id] = Stream(self, event.stream_id)
            stream.take_headers(event.headers)
            self._on_request(stream)

    def _data(self, event: DataReceived) -> None:
        assert event.stream_id is not None and event.flow_controlled_length is not None
        stream = self._streams.get(event.stream_id)
        if stream is None:
            self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        else:
            stream.take_data(event.data or b"", event.flow_controlled_length)

    def _of_stream(self, event: ResponseReceived | TrailersReceived | HalfClosed | StreamReset) -> None:
        assert event.stream_id is not None
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return
        if isinstance(event, StreamReset):
            del self._streams[event.stream_id]
            self._wake()
            stream.died("the other side ended the stream")
        elif isinstance(event, HalfClosed):
            stream.closed_there()
            if self._is_client:
                del self._streams[event.stream_id]
        else:
            stream.take_headers(event.headers)

    def _flush(self) -> None:
        data = self._h2.data_to_send()
        if data and not self.connection.closed:
            try:
                self.connection.write(data)
            except ConnectionClosed:
                return  # the reader hears of it and ends all

    def _end(self, reason: str) -> None:
        self._is_over = True
        self.connection.close()
        self._wake()
        streams, self._streams = self._streams, {}
        for stream in streams.values():
            stream.died(reason)
