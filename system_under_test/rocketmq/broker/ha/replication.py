"""What the rest of a broker needs to know of replication, whichever way the group decides who is master.

In controller mode a `Mastership` lasts for one master epoch and waits for the SyncStateSet; between a configured master
and its slaves a `ClassicMastership` lasts as long as the process. Services that take messages, show them or change
tables use only what is here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from system_under_test.runtime.host import Connection


class SlaveConnection(Protocol):
    """One slave, as its master serves it."""

    heard_ns: int

    async def run(self) -> None:
        """Take what the slave sends until the connection ends. Raises ConnectionClosed, WireError."""

    def close(self) -> None: ...


class AnyMastership(Protocol):
    """What holds while this broker is the master, and ends with that."""

    ended: bool
    confirm_offset: int
    confirm_moved: asyncio.Event
    on_end: list[Callable[[], None]]
    """Called once, when it ends."""

    @property
    def master_epoch(self) -> int:
        """0 where masters have no epochs."""
        ...

    @property
    def in_sync(self) -> int:
        """How many replicas are in sync, the master among them."""
        ...

    def require_writable(self) -> None:
        """Raises RemotingError, which says that nothing was written, where nothing may be written now."""

    def enough_in_sync(self) -> bool:
        """Whether what was replicated may be acknowledged now."""
        ...

    def slave_available(self) -> bool:
        """Whether a put that was written can be replicated as configured as things stand."""
        ...

    def advance(self) -> None:
        """Look again at what is confirmed: more of the own log may be durable."""

    def replicated(self, end_offset: int) -> asyncio.Future[bool]:
        """The log has grown up to `end_offset`: it is sent on. True once all before that is replicated as configured;
        False if the role is lost before."""
        ...

    def tell_confirm_offset(self) -> None: ...

    def housekeep(self) -> None: ...

    def end(self) -> None: ...


class Office(Protocol):
    """A mastership with the way in which it receives its slaves."""

    @property
    def mastership(self) -> AnyMastership: ...

    async def meet(self, connection: Connection) -> SlaveConnection:
        """Who it is that has connected; attached from now on. Raises ConnectionClosed, WireError, TimeoutError."""
        ...

    def part(self, slave: SlaveConnection) -> None:
        """Its connection has ended."""


class Follower(Protocol):
    """Copies a master's log."""

    def start(self) -> None: ...

    async def stop(self) -> None:
        """After it the log is this follower's no more."""

    @property
    def hears_master(self) -> bool:
        """Whether it is connected to its master and copies what that sends."""
        ...


class Replication(Protocol):
    """Of one broker, whichever role it has."""

    @property
    def mastership(self) -> AnyMastership | None:
        """None while this broker is not the master."""
        ...

    @property
    def hears_master(self) -> bool:
        """Whether this broker is a slave whose master serves it now."""
        ...
