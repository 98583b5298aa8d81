"""Carries Raft messages between nodes: one connection a direction, and loss is no matter.

A message to a peer that is not connected is dropped, and so is one to a peer that has long been silent;
Raft sends what matters again. Nothing waits here, and nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from system_under_test.raft.message import MalformedMessage, Message, decode, encode, frame_length
from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed, Host, Listener

MAX_UNANSWERED_BYTES = 64 * 1024 * 1024
"""Sent to a peer since it was last heard; beyond this messages to it are dropped."""


class _Link:
    """The way to one peer."""

    __slots__ = ("address", "connection", "unanswered_bytes", "unanswered_since_ns")

    def __init__(self, address: str) -> None:
        self.address = address
        self.connection: Connection | None = None
        self.unanswered_since_ns: int | None = None
        self.unanswered_bytes = 0


class PeerTransport:
    def __init__(
        self,
        host: Host,
        *,
        node: str,
        peers: Mapping[str, str],
        deliver: Callable[[Message], None],
        silence_s: float,
        connect_timeout_s: float = 1.0,
        first_backoff_s: float = 0.05,
        max_backoff_s: float = 1.0,
    ) -> None:
        """`peers`: addresses of the others by node id. One that does not answer for `silence_s` is connected anew."""
        self._host = host
        self._node = node
        self._deliver = deliver
        self._links = {peer: _Link(address) for peer, address in sorted(peers.items())}
        self._silence_ns = int(silence_s * 1e9)
        self._connect_timeout_s = connect_timeout_s
        self._first_backoff_s = first_backoff_s
        self._max_backoff_s = max_backoff_s
        self._listener: Listener | None = None
        self._accepted: dict[int, Connection] = {}
        self._serial = 0
        self._stopped = False

    async def start(self, port: int) -> None:
        """Raises OSError if the port is taken."""
        self._listener = await self._host.network.listen(port, self._serve)
        for peer, link in self._links.items():
            self._host.spawn(self._keep_connected(link), f"raft link to {peer}")

    def stop(self) -> None:
        self._stopped = True
        if self._listener is not None:
            self._listener.close()
        for link in self._links.values():
            if link.connection is not None:
                link.connection.close()
        for connection in list(self._accepted.values()):
            connection.close()

    def send(self, message: Message, now_ns: int) -> None:
        link = self._links[message.recipient]
        connection = link.connection
        if connection is None or connection.closed or link.unanswered_bytes > MAX_UNANSWERED_BYTES:
            return
        frame = encode(message)
        if link.unanswered_since_ns is None:
            link.unanswered_since_ns = now_ns
        link.unanswered_bytes += len(frame)
        try:
            connection.write(frame)
        except ConnectionClosed:
            self._host.reached("raft-connection-was-closed")

    def drop_silent(self, now_ns: int) -> None:
        """Close connections on which nothing comes back: a new one finds a healed network sooner."""
        for link in self._links.values():
            since_ns = link.unanswered_since_ns
            if link.connection is not None and since_ns is not None and now_ns - since_ns > self._silence_ns:
                link.connection.close()

    async def _keep_connected(self, link: _Link) -> None:
        backoff_s = self._first_backoff_s
        while not self._stopped:
            try:
                connection = await self._host.network.connect(link.address, self._connect_timeout_s)
            except ConnectFailed:
                await self._host.clock.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, self._max_backoff_s)
                continue
            backoff_s = self._first_backoff_s
            link.unanswered_since_ns = None
            link.unanswered_bytes = 0
            link.connection = connection
            try:
                # Nothing is ever sent this way; the read ends when the connection does.
                await connection.read_exactly(1)
            except ConnectionClosed:
                link.connection = None
            connection.close()
            await self._host.clock.sleep(backoff_s)

    async def _serve(self, connection: Connection) -> None:
        self._serial += 1
        serial = self._serial
        self._accepted[serial] = connection
        try:
            while not self._stopped:
                length = frame_length(await connection.read_exactly(4))
                message = decode(await connection.read_exactly(length), self._node)
                link = self._links.get(message.sender)
                if link is None:
                    raise MalformedMessage(f"{message.sender!r} is no member")
                link.unanswered_since_ns = None
                link.unanswered_bytes = 0
                self._deliver(message)
        except ConnectionClosed:
            pass
        except MalformedMessage as error:
            self._host.log("malformed_raft_message", remote=connection.remote, reason=str(error))
        finally:
            del self._accepted[serial]
            connection.close()
