"""The metadata store without any group of nodes: state machines of one process, for tests of those who use it.

    store = LocalStore()
    writer, reader = store.access(), store.access()
    await writer.create("/ledgers/1", "…")
    store.expire(writer)                          # its ephemeral keys are gone, and it has another session

Every call takes effect at once, in the order of the calls. `writer.losses` has the next changes of one access end with
Unavailable, after they took effect or without that.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from enum import Enum

from system_under_test.metadata import store as commands
from system_under_test.metadata.access import Conflict, MetadataAccess, SessionLost, Unavailable, Versioned
from system_under_test.metadata.store import Done, MetadataStore, VersionDiffers


class Loss(Enum):
    OF_THE_REQUEST = "it does not take effect"
    OF_THE_ANSWER = "it takes effect"


class LocalStore:
    def __init__(self) -> None:
        self.state = MetadataStore()
        self.changed = asyncio.Event()
        self._opened = 0

    def access(self) -> LocalMetadata:
        """One more process that uses the store, with a session of its own."""
        return LocalMetadata(self)

    def open_session(self) -> str:
        self._opened += 1
        session = f"session-{self._opened}"
        self.state.apply(commands.open_session(session))
        return session

    def apply(self, command: bytes) -> commands.Result:
        commands.check(command)
        result = self.state.apply(command)
        self.changed.set()
        self.changed = asyncio.Event()
        return result

    def expire(self, access: LocalMetadata) -> None:
        """Its session is lost, and it has another one."""
        assert access.session is not None
        self.apply(commands.end_session(access.session))
        access.begin_session()


class LocalMetadata(MetadataAccess):
    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._session = store.open_session()
        self._session_began = asyncio.Event()
        self.losses: deque[Loss | None] = deque()
        """What happens to the next changes; None: nothing."""

    @property
    def session(self) -> str:
        return self._session

    def begin_session(self) -> None:
        self._session = self._store.open_session()
        self._session_began.set()
        self._session_began = asyncio.Event()

    async def session_other_than(self, session: str | None) -> str:
        while self._session == session:
            await self._session_began.wait()
        return self._session

    async def get(self, key: str) -> Versioned | None:
        return self._store.state.get(key)

    async def list(self, prefix: str) -> Mapping[str, Versioned]:
        return self._store.state.list(prefix)

    async def create(self, key: str, value: str, ephemeral: bool = False) -> int:
        return self._change(key, commands.create(key, value, self._session if ephemeral else None))

    async def put(self, key: str, value: str, version: int) -> int:
        return self._change(key, commands.put(key, value, version))

    async def delete(self, key: str, version: int) -> None:
        self._change(key, commands.delete(key, version))

    async def next_number(self, counter: str) -> int:
        return self._change(counter, commands.number(counter))

    async def wait(self, prefix: str, since: int) -> int:
        while not self._store.state.has_changed(prefix, since):
            await self._store.changed.wait()
        return self._store.state.version

    def _change(self, key: str, command: bytes) -> int:
        loss = self.losses.popleft() if self.losses else None
        if loss is Loss.OF_THE_REQUEST:
            raise Unavailable("the request was lost")
        result = self._store.apply(command)
        if loss is Loss.OF_THE_ANSWER:
            raise Unavailable("the answer was lost")
        if isinstance(result, Done):
            return result.number
        if isinstance(result, VersionDiffers):
            raise Conflict(key, result.found)
        raise SessionLost(self._session)
