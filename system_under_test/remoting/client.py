"""The asking side of remoting: one multiplexed connection an address.

Requests share a connection and are paired with their responses by `opaque`. What the three ways to fail
mean: ConnectFailed, certainly nothing was sent; ConnectionClosed and TimeoutError, the request may or may
not have taken effect. Nothing is ever retried here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from system_under_test.remoting.command import FrameTooLong, MalformedFrame, RemotingCommand, frame_length
from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed, Host

MAX_PENDING = 16384
"""Requests that wait for a response on one connection; one more is refused before anything is sent."""

_OPAQUE_LIMIT = 2**31
_LONGEST_PATIENCE_NS = 1_000_000_000


class RemotingClient:
    """Connects when first asked; a failed or ended connection is forgotten, so the next request tries anew.

    `on_request` hears requests of the other side, with its address; it is not answered. `on_connected` hears each
    address to which there is a new connection, before anything is sent there.
    """

    def __init__(
        self,
        host: Host,
        connect_timeout_s: float = 3.0,
        on_request: Callable[[str, RemotingCommand], None] | None = None,
        on_connected: Callable[[str], None] = lambda address: None,
    ) -> None:
        self._host = host
        self._connect_timeout_s = connect_timeout_s
        self._on_request = on_request
        self._on_connected = on_connected
        self._channels: dict[str, _Channel] = {}
        self._opaque = 0
        self._closed = False

    async def invoke(self, address: str, command: RemotingCommand, timeout_s: float) -> RemotingCommand:
        """Send and await the response. Raises ConnectFailed, ConnectionClosed, TimeoutError."""
        clock = self._host.clock
        deadline_ns = clock.monotonic_ns() + int(timeout_s * 1e9)
        channel = await self._connected(address, timeout_s)
        if len(channel.pending) >= MAX_PENDING:
            raise ConnectFailed(f"{MAX_PENDING} requests to {address} are pending already")
        sent_ns = clock.monotonic_ns()
        if sent_ns >= deadline_ns:
            raise ConnectFailed(f"no time was left to ask {address}")
        future: asyncio.Future[RemotingCommand] = asyncio.get_running_loop().create_future()
        opaque = self._send(channel, command)
        channel.pending[opaque] = future
        if channel.asked_ns is None:
            channel.asked_ns = sent_ns
        try:
            return await clock.within((deadline_ns - sent_ns) / 1e9, future)
        except TimeoutError:
            if channel.is_dead(clock.monotonic_ns()):
                self._forget(channel)
                channel.end(ConnectionClosed(f"{address} is silent"))
            raise TimeoutError(f"no response from {address} within {timeout_s} s") from None
        finally:
            channel.pending.pop(opaque, None)

    async def oneway(self, address: str, command: RemotingCommand) -> None:
        """Send without waiting for anything but the connection. Raises ConnectFailed."""
        channel = await self._connected(address, self._connect_timeout_s)
        self._send(channel, command)

    def close(self) -> None:
        """Close all connections; pending requests end with ConnectionClosed, later ones with ConnectFailed."""
        self._closed = True
        for channel in list(self._channels.values()):
            channel.end(ConnectionClosed("the client was closed"))
        self._channels.clear()

    def _send(self, channel: _Channel, command: RemotingCommand) -> int:
        assert channel.connection is not None
        self._opaque = opaque = (self._opaque + 1) % _OPAQUE_LIMIT
        command.opaque = opaque
        try:
            channel.connection.write(command.encode())
        except ConnectionClosed as error:
            raise ConnectFailed(f"{channel.address} closed the connection before anything was sent") from error
        except FrameTooLong as error:
            raise ConnectFailed(str(error)) from error
        return opaque

    async def _connected(self, address: str, timeout_s: float) -> _Channel:
        if self._closed:
            raise ConnectFailed("the client was closed")
        channel = self._channels.get(address)
        if channel is not None and channel.connection is not None and channel.connection.closed:
            self._forget(channel)
            channel.end(ConnectionClosed(f"{address} closed the connection"))
            channel = None
        if channel is None:
            channel = self._channels[address] = _Channel(address)
            channel.task = self._host.spawn(self._run(channel), f"connection to {address}")
        if channel.connection is None:
            try:
                await self._host.clock.within(timeout_s, channel.settled.wait())
            except TimeoutError:
                raise ConnectFailed(f"no connection to {address} within {timeout_s} s") from None
        if channel.failure is not None:
            raise ConnectFailed(str(channel.failure))
        return channel

    async def _run(self, channel: _Channel) -> None:
        """Connect, then hand responses to those who wait for them until the connection ends."""
        monotonic_ns = self._host.clock.monotonic_ns
        began_ns = monotonic_ns()
        try:
            connection = await self._host.network.connect(channel.address, self._connect_timeout_s)
        except ConnectFailed as error:
            self._forget(channel)
            channel.end(error)
            return
        if channel.failure is not None:
            connection.close()
            return
        channel.opened(connection, monotonic_ns() - began_ns)
        self._on_connected(channel.address)
        pending = channel.pending
        failure: Exception
        try:
            while True:
                length = frame_length(await connection.read_exactly(4))
                command = RemotingCommand.decode(await connection.read_exactly(length))
                channel.asked_ns = None
                if not command.is_response:
                    if self._on_request is not None:
                        self._on_request(channel.address, command)
                    continue
                future = pending.pop(command.opaque, None)
                if future is not None and not future.done():
                    future.set_result(command)
        except ConnectionClosed as error:
            failure = error
        except MalformedFrame as error:
            self._host.log("malformed_frame", remote=channel.address, reason=str(error))
            failure = ConnectionClosed(f"malformed frame from {channel.address}: {error}")
        self._forget(channel)
        channel.end(failure)

    def _forget(self, channel: _Channel) -> None:
        if self._channels.get(channel.address) is channel:
            del self._channels[channel.address]


class _Channel:
    """One connection, from the first wish for it to its end."""

    __slots__ = ("address", "asked_ns", "connection", "failure", "patience_ns", "pending", "settled", "task")

    def __init__(self, address: str) -> None:
        self.address = address
        self.connection: Connection | None = None
        self.failure: Exception | None = None
        self.asked_ns: int | None = None
        """Since when requests are under way and nothing at all came back."""
        self.patience_ns = 0
        self.pending: dict[int, asyncio.Future[RemotingCommand]] = {}
        self.settled = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def opened(self, connection: Connection, took_ns: int) -> None:
        """Where making the connection took long, an answer may take as long."""
        self.patience_ns = min(2 * took_ns, _LONGEST_PATIENCE_NS)
        self.connection = connection
        self.settled.set()

    def is_dead(self, now_ns: int) -> bool:
        """Whether the silence is taken for that of a peer that lost power, or of dropped packets: a new connection
        finds a healed link at once, where the old one would wait for a retransmission."""
        return self.asked_ns is not None and now_ns - self.asked_ns >= self.patience_ns

    def end(self, failure: Exception) -> None:
        """Fail all who wait; idempotent, the first reason stays."""
        if self.failure is None:
            self.failure = failure
        self.settled.set()
        if self.connection is not None:
            self.connection.close()
        for future in self.pending.values():
            if not future.done():
                future.set_exception(ConnectionClosed(str(self.failure)))
        self.pending.clear()
