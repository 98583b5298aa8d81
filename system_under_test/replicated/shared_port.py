"""One port for what members of a group say to each other and what clients ask of them, as RocketMQ's controllers have
it.

Which of the two a connection is for, its fifth byte says: a frame of remoting has its serialization type there, 0 or 1,
and Raft's greeting, with which a peer begins, a letter.
"""

from __future__ import annotations

from system_under_test.raft.transport import PeerTransport
from system_under_test.remoting.server import RemotingServer
from system_under_test.runtime.host import Connection, ConnectionClosed, Host

_FIRST_BYTES = 5
_SERIALIZATION_TYPES = (0, 1)


class SharedPort:
    def __init__(self, host: Host, requests: RemotingServer, raft: PeerTransport) -> None:
        self._host = host
        self._requests = requests
        self._raft = raft

    async def start(self, port: int) -> None:
        """Raises OSError if the port is taken. Either of the two closes it."""
        listener = await self._host.network.listen(port, self._accept)
        self._raft.share(listener)
        self._requests.share(listener)

    async def _accept(self, connection: Connection) -> None:
        try:
            first = await connection.read_exactly(_FIRST_BYTES)
        except ConnectionClosed:
            connection.close()
            return
        begun = BegunConnection(connection, first)
        await (self._requests.serve if first[4] in _SERIALIZATION_TYPES else self._raft.serve)(begun)


class BegunConnection:
    """`Connection` of which the first bytes have been read."""

    def __init__(self, connection: Connection, first: bytes) -> None:
        self._connection = connection
        self._first = first

    @property
    def remote(self) -> str:
        return self._connection.remote

    @property
    def closed(self) -> bool:
        return self._connection.closed

    async def read_exactly(self, count: int) -> bytes:
        """Raises ConnectionClosed."""
        taken, self._first = self._first[:count], self._first[count:]
        return taken + await self._connection.read_exactly(count - len(taken)) if len(taken) < count else taken

    def write(self, data: bytes) -> None:
        self._connection.write(data)

    async def drain(self) -> None:
        await self._connection.drain()

    def close(self) -> None:
        self._connection.close()
