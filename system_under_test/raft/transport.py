"""Carries Raft messages between nodes: one connection a direction; messages may be lost.

A message to a peer that is not connected is dropped, and so is one to a peer that has long been silent;
Raft sends what matters again. Nothing waits here, and nothing is kept.

Several Raft groups of one process share it: each joins with its number, which every frame carries. What comes for a
group that has not joined is dropped.

A connection begins with a greeting. A member that is greeted by a node it does not know connects to it as long as that
connection lasts: a member may have been added while this node was away, and may have to be answered before the log
that says so can come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from system_under_test.raft.message import (
    Greeting,
    MalformedMessage,
    Message,
    decode,
    decode_greeting,
    encode,
    encode_greeting,
    frame_length,
)
from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed, Host, Listener

MAX_UNANSWERED_BYTES = 64 * 1024 * 1024
"""Sent to a peer since it was last heard; beyond this messages to it are dropped."""
MAX_STRANGERS = 64
"""Nodes that greet and are no members; those beyond are turned away."""


class _Link:
    """The way to one peer."""

    __slots__ = ("address", "connection", "is_peer", "is_wanted", "unanswered_bytes", "unanswered_since_ns", "visits")

    def __init__(self, address: str) -> None:
        self.address = address
        self.connection: Connection | None = None
        self.is_peer = False
        self.is_wanted = True
        self.visits = 0
        """Connections on which it speaks to this node."""
        self.heard()

    def heard(self) -> None:
        self.unanswered_since_ns: int | None = None
        self.unanswered_bytes = 0

    def end(self) -> None:
        self.is_wanted = False
        if self.connection is not None:
            self.connection.close()


class GroupChannel:
    """What one Raft group has of the transport."""

    def __init__(self, transport: PeerTransport, group: int) -> None:
        self._transport = transport
        self._group = group

    def set_peers(self, addresses: Mapping[str, str]) -> None:
        """Keep connected to these nodes, by their addresses."""
        self._transport.set_peers(self._group, addresses)

    def send(self, message: Message, now_ns: int) -> None:
        self._transport.send(self._group, message, now_ns)

    def drop_silent(self, now_ns: int) -> None:
        self._transport.drop_silent(now_ns)

    def leave(self) -> None:
        self._transport.leave(self._group)


class PeerTransport:
    def __init__(
        self,
        host: Host,
        *,
        node: str,
        address: str,
        silence_s: float,
        connect_timeout_s: float = 1.0,
        first_backoff_s: float = 0.05,
        max_backoff_s: float = 1.0,
    ) -> None:
        """`address` is where others reach this node. A peer that does not answer for `silence_s` is connected anew."""
        self._host = host
        self._node = node
        self._greeting = encode_greeting(Greeting(node, address))
        self._groups: dict[int, Callable[[Message], None]] = {}
        """Who takes a group's messages."""
        self._peers: dict[int, Mapping[str, str]] = {}
        self._links: dict[str, _Link] = {}
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
        self.share(await self._host.network.listen(port, self.serve))

    def share(self, listener: Listener) -> None:
        """Another one listens, and hands over by `serve` the connections of peers."""
        self._listener = listener
        for peer, link in self._links.items():
            self._host.spawn(self._keep_connected(link), f"raft link to {peer}")

    def close(self) -> None:
        self._stopped = True
        if self._listener is not None:
            self._listener.close()
        for link in self._links.values():
            link.end()
        for connection in list(self._accepted.values()):
            connection.close()

    def join(self, group: int, deliver: Callable[[Message], None]) -> GroupChannel:
        assert group not in self._groups, "a group joins once"
        self._groups[group] = deliver
        return GroupChannel(self, group)

    def leave(self, group: int) -> None:
        del self._groups[group]
        self.set_peers(group, {})

    def set_peers(self, group: int, addresses: Mapping[str, str]) -> None:
        """Keep connected to these nodes and those of the other groups, and to no others but those that greet this one.
        A node has one address, whatever the group."""
        self._peers[group] = addresses
        wanted = {peer: address for _, peers in sorted(self._peers.items()) for peer, address in sorted(peers.items())}
        for peer, link in list(self._links.items()):
            link.is_peer = peer in wanted
            if (not link.is_peer and not link.visits) or (link.is_peer and link.address != wanted[peer]):
                self._links.pop(peer).end()
        for peer, address in sorted(wanted.items()):
            if peer != self._node and peer not in self._links:
                self._connect(peer, address).is_peer = True

    def send(self, group: int, message: Message, now_ns: int) -> None:
        link = self._links.get(message.recipient)
        connection = None if link is None else link.connection
        if link is None or connection is None or connection.closed or link.unanswered_bytes > MAX_UNANSWERED_BYTES:
            return
        frame = encode(group, message)
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

    def _connect(self, peer: str, address: str) -> _Link:
        link = self._links[peer] = _Link(address)
        if self._listener is not None:
            self._host.spawn(self._keep_connected(link), f"raft link to {peer}")
        return link

    async def _keep_connected(self, link: _Link) -> None:
        backoff_s = self._first_backoff_s
        while link.is_wanted:
            try:
                connection = await self._host.network.connect(link.address, self._connect_timeout_s)
            except ConnectFailed:
                await self._host.clock.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, self._max_backoff_s)
                continue
            if not link.is_wanted:
                connection.close()
                return
            backoff_s = self._first_backoff_s
            link.heard()
            link.connection = connection
            try:
                connection.write(self._greeting)
                # Nothing is ever sent this way; the read ends when the connection does.
                await connection.read_exactly(1)
            except ConnectionClosed:
                link.connection = None
            connection.close()
            await self._host.clock.sleep(backoff_s)

    async def serve(self, connection: Connection) -> None:
        """Take what a peer sends until the connection ends."""
        self._serial += 1
        serial = self._serial
        self._accepted[serial] = connection
        try:
            await self._listen_to(connection)
        except ConnectionClosed:
            pass
        except MalformedMessage as error:
            self._host.log("malformed_raft_message", remote=connection.remote, reason=str(error))
        finally:
            del self._accepted[serial]
            connection.close()

    async def _listen_to(self, connection: Connection) -> None:
        speaker = decode_greeting(await _frame(connection))
        link = self._links.get(speaker.node)
        if link is None:
            strangers = sum(not link.is_peer for link in self._links.values())
            if speaker.node == self._node or strangers >= MAX_STRANGERS:
                raise MalformedMessage(f"{speaker.node!r} is no member")
            link = self._connect(speaker.node, speaker.address)
        link.visits += 1
        try:
            while not self._stopped:
                group, message = decode(await _frame(connection), self._node)
                if message.sender != speaker.node:
                    raise MalformedMessage(f"{speaker.node!r} speaks for {message.sender!r}")
                link.heard()
                deliver = self._groups.get(group)
                if deliver is not None:
                    deliver(message)
        finally:
            link.visits -= 1
            if not link.is_peer and not link.visits and self._links.get(speaker.node) is link:
                self._links.pop(speaker.node).end()


async def _frame(connection: Connection) -> bytes:
    return await connection.read_exactly(frame_length(await connection.read_exactly(4)))
