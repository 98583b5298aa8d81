"""A client of the metadata store: finds the leader, keeps its session alive, and says when it was lost.

A read is asked again until it is answered or time is up. A change is asked again only while it certainly was not
appended; after that its outcome is open (`Unavailable`), and `settling.py` is how to close it.

A session is over when the store says so, not before: a client that hears nothing of the store cannot know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from system_under_test.metadata import store as commands
from system_under_test.metadata import wire
from system_under_test.metadata.access import Conflict, MetadataAccess, SessionLost, Unavailable, Versioned
from system_under_test.metadata.store import Done, VersionDiffers
from system_under_test.metadata.wire import MalformedAnswer, Request
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.command import RemotingCommand
from system_under_test.replicated.leader_client import LeaderClient
from system_under_test.runtime.host import Host

T = TypeVar("T")

HOLD_S: Final = 3.0
"""The longest time for which a node may keep a request that waits for a change."""
PAUSE_S: Final = 0.1
"""The mean time until nodes are asked again of which none answered."""


class MetadataClient(MetadataAccess):
    """`Service` of a process; without `start` it has no session."""

    def __init__(
        self,
        host: Host,
        nodes: Sequence[str],
        *,
        timeout_s: float = 5.0,
        answer_timeout_s: float = 2.0,
        prefer: str | None = None,
    ) -> None:
        """`timeout_s`: for how long a call is tried; `answer_timeout_s`: for how long a node that was asked is waited
        for. `prefer`: as that of `LeaderClient`."""
        self._host = host
        self._timeout_s = timeout_s
        self._answer_timeout_s = answer_timeout_s
        self._group = LeaderClient(host, nodes, answer_timeout_s, prefer)
        self._session: str | None = None
        self._session_began = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks = [self._host.spawn(self._keep_a_session(), "metadata session")]

    async def stop(self) -> None:
        """End the session, if a node answers at once; otherwise it goes with its time-out."""
        for task in self._tasks:
            task.cancel()
        session, self._session = self._session, None
        if session is not None:
            try:
                await self._group.ask(_change(commands.end_session(session)), self._answer_timeout_s / 2)
            except ClientError as error:
                self._host.log("metadata_session_left", session=session, reason=str(error))
        self._group.close()

    @property
    def session(self) -> str | None:
        return self._session

    async def session_other_than(self, session: str | None) -> str:
        while self._session is None or self._session == session:
            await self._session_began.wait()
        return self._session

    async def get(self, key: str) -> Versioned | None:
        return await self._read(RemotingCommand.request(Request.GET, {"key": key}), wire.decode_entry)

    async def list(self, prefix: str) -> Mapping[str, Versioned]:
        return await self._read(RemotingCommand.request(Request.LIST, {"prefix": prefix}), wire.decode_entries)

    async def create(self, key: str, value: str, ephemeral: bool = False) -> int:
        if ephemeral and self._session is None:
            raise SessionLost("no session is open")
        return await self._write(key, commands.create(key, value, self._session if ephemeral else None))

    async def put(self, key: str, value: str, version: int) -> int:
        return await self._write(key, commands.put(key, value, version))

    async def delete(self, key: str, version: int) -> None:
        await self._write(key, commands.delete(key, version))

    async def next_number(self, counter: str) -> int:
        return await self._write(counter, commands.number(counter))

    async def wait(self, prefix: str, since: int) -> int:
        while True:
            fields = {"prefix": prefix, "since": str(since), "holdMs": str(round(HOLD_S * 1e3))}
            command = RemotingCommand.request(Request.WAIT, fields)
            changed, version = await self._read(command, wire.decode_change, HOLD_S)
            if changed:
                return version

    # -- asking

    async def _read(self, command: RemotingCommand, decode: Callable[[bytes], T], hold_s: float = 0.0) -> T:
        """`hold_s`: for how long a node may keep the request. Raises Unavailable."""
        return await self._ask(command, decode, hold_s, is_repeatable=True)

    async def _write(self, key: str, command: bytes) -> int:
        """Raises MalformedCommand, Conflict, SessionLost, Unavailable."""
        commands.check(command)
        result = await self._ask(_change(command), wire.decode_result, 0.0, is_repeatable=False)
        if isinstance(result, Done):
            return result.number
        if isinstance(result, VersionDiffers):
            raise Conflict(key, result.found)
        raise SessionLost(f"{key} was to belong to a session that is over")

    async def _ask(
        self, command: RemotingCommand, decode: Callable[[bytes], T], hold_s: float, *, is_repeatable: bool
    ) -> T:
        clock = self._host.clock
        deadline_ns = clock.monotonic_ns() + int((self._timeout_s + hold_s) * 1e9)
        while True:
            try:
                return decode((await self._group.ask(command, self._answer_timeout_s + hold_s)).body)
            except ClientError as error:
                failure = Unavailable(str(error), is_definite=error.definite)
            except MalformedAnswer as error:
                failure = Unavailable(str(error))
            if not (failure.is_definite or is_repeatable) or clock.monotonic_ns() >= deadline_ns:
                raise failure
            await clock.sleep(PAUSE_S * self._host.random.uniform(0.5, 1.5))

    # -- the session

    async def _keep_a_session(self) -> None:
        while True:
            session = f"{self._host.random.getrandbits(64):016x}"
            heartbeat_s = await self._opened(session)
            if heartbeat_s is not None:
                self._session = session
                self._session_began.set()
                self._session_began = asyncio.Event()
                self._host.log("metadata_session", session=session)
            while heartbeat_s is not None:
                await self._host.clock.sleep(heartbeat_s)
                heartbeat_s = await self._renewed(session)
            if self._session is not None:
                self._session = None
                self._host.log("metadata_session_lost", session=session)
                self._host.reached("session-lost")

    async def _opened(self, session: str) -> float | None:
        """As `_renewed`. It may be opened twice: that is as good as once."""
        while True:
            try:
                await self._write(session, commands.open_session(session))
            except Unavailable:
                continue
            return await self._renewed(session)

    async def _renewed(self, session: str) -> float | None:
        """Seconds until the next heartbeat; None: the session is over."""
        while True:
            try:
                command = RemotingCommand.request(Request.RENEW, {"session": session})
                heartbeat_ms = await self._read(command, wire.decode_renewal)
            except Unavailable:
                continue
            return None if heartbeat_ms is None else heartbeat_ms / 1e3


def _change(command: bytes) -> RemotingCommand:
    return RemotingCommand.request(Request.CHANGE, body=command)
