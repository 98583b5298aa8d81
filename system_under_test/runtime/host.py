"""The seam: everything a node may know of where it runs.

A node is written against `Host` alone. `real.py` binds it to sockets, files and the system clock; the
simulator in `harness.environments.simulated` satisfies the same protocols with virtual time. Node code
may use `asyncio` futures, queues, events and task groups, but never a clock, a socket, a file or a
source of randomness that does not come from here: a test over the syntax tree keeps that.

What the seam promises, in every environment:
- A connection is a TCP connection: bytes arrive in order and once, or the connection ends.
- A write to a file is visible at once to readers of this host and survives the death of the process;
  only `fsync` makes it survive a loss of power. Without it any part may be gone, torn at any byte.
- Monotonic time never goes back. Wall time may be wrong by any amount and may jump.
- A killed process runs nothing any more, not even a `finally`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class ConnectionClosed(Exception):
    """The connection ended: the peer closed it, it was reset, or this side closed it."""


class ConnectFailed(Exception):
    """No connection was made, so certainly nothing was sent."""


class DiskFull(OSError):
    """An append found no room; nothing of it was written."""


class DiskError(OSError):
    """The device failed (EIO). After a failed fsync the unsynced bytes must be taken for lost."""


class Clock(Protocol):
    def wall_ns(self) -> int:
        """Nanoseconds since the epoch as this host believes; may jump either way."""

    def monotonic_ns(self) -> int:
        """Nanoseconds since an arbitrary start; never goes back. All protocol timing uses this."""

    async def sleep(self, seconds: float) -> None:
        """Sleep on the monotonic clock; 0 yields once."""

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        """Await with a bound on the monotonic clock; raises the built-in TimeoutError and cancels."""


class Connection(Protocol):
    @property
    def remote(self) -> str:
        """The peer as `name:port` where known, for logs only."""

    @property
    def closed(self) -> bool: ...

    async def read_exactly(self, count: int) -> bytes:
        """Exactly `count` bytes. Raises ConnectionClosed if the stream ends first.

        One reader at a time. Does not suspend when the bytes are there already.
        """

    def write(self, data: bytes) -> None:
        """Queue bytes for sending, never blocking. Raises ConnectionClosed if known to be closed."""

    async def drain(self) -> None:
        """Wait until the send buffer is small again (back-pressure). Raises ConnectionClosed."""

    def close(self) -> None:
        """Close both directions; idempotent. Pending and later reads raise ConnectionClosed."""


class Listener(Protocol):
    def close(self) -> None:
        """Stop accepting; connections already accepted live on."""


class Network(Protocol):
    async def listen(self, port: int, accept: Callable[[Connection], Coroutine[Any, Any, None]]) -> Listener:
        """Run `accept(connection)` as a task of this host for each connection; it owns the connection.

        Raises OSError if the port is taken.
        """

    async def connect(self, address: str, timeout_s: float) -> Connection:
        """Connect to `name:port`. Raises ConnectFailed (refused, unreachable, or timed out)."""


class File(Protocol):
    @property
    def size(self) -> int:
        """Length in bytes, unsynced bytes included."""

    def append(self, data: bytes) -> int:
        """Write at the end; returns the offset written at. Raises DiskFull, DiskError."""

    def write_at(self, offset: int, data: bytes) -> None:
        """Overwrite within or extend the file. Raises DiskFull, DiskError."""

    def read_at(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes; shorter only at the end of the file. Raises DiskError."""

    def truncate(self, size: int) -> None:
        """Cut (or extend with zeros) to `size`; durable only after fsync."""

    async def fsync(self) -> None:
        """Make contents, size and name durable. Covers what was written before the call. Raises DiskError."""

    def close(self) -> None: ...


class Disk(Protocol):
    """A private file tree of this host. Paths are relative, with `/` between parts; parents are made."""

    def open(self, path: str) -> File:
        """Open for reading and writing; created empty if missing."""

    def exists(self, path: str) -> bool: ...

    def list(self, prefix: str) -> Sequence[str]:
        """Paths of all files in the directory `prefix`, sorted."""

    def remove(self, path: str) -> None:
        """Delete a file; durable after `sync_directory` (or lost with power before)."""

    async def replace(self, source: str, target: str) -> None:
        """Rename over `target`, atomically and durably: on return the new name survives power loss."""

    def used_share(self) -> float:
        """How much of the device's space is in use, from 0 to 1."""


class Host(Protocol):
    name: str
    """The host's own name, as other hosts reach it."""

    clock: Clock
    network: Network
    disk: Disk
    random: random.Random

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run a task that belongs to this process.

        An exception that leaves it (other than cancellation) is a panic: it is logged and the whole
        process dies, for a node half dead is worse than a node dead.
        """

    def log(self, event: str, **fields: object) -> None:
        """Append a structured event (JSON-able fields) to this node's own event log."""

    def unusual(self, point: str) -> bool:
        """True where the simulator wants the legal but rare path at this named point; False in reality."""

    def reached(self, point: str, **values: int) -> None:
        """Say that this point was reached, by a constant name in kebab-case: the simulator counts it, and a fault may
        strike in this very moment. What the node holds then, `values`, is held against what other nodes hold. Costs
        next to nothing."""
