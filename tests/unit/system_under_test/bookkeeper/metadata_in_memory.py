"""A metadata store in memory, for one process or for several at once; it can be away."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from system_under_test.metadata.access import Conflict, SessionLost, Unavailable, Versioned


class MetadataInMemory:
    """`MetadataAccess`, with one session at a time."""

    def __init__(self) -> None:
        self.keys: dict[str, Versioned] = {}
        self.is_away = False
        self.loses_answers = 0
        """So many changes from now on are made, and their answers are lost."""
        self.changes: list[tuple[str, str]] = []
        """All that were ever made: key and value."""
        self._version = 0
        self._touched: dict[str, int] = {}
        """The version of the last change of each key, or of its end."""
        self._has_changed = asyncio.Event()
        self._number = 0
        self._sessions = 1
        self._new_session = asyncio.Event()

    @property
    def session(self) -> str | None:
        return f"s{self._sessions}"

    async def session_other_than(self, session: str | None) -> str:
        while session == self.session:
            self._new_session.clear()
            await self._new_session.wait()
        return f"s{self._sessions}"

    def lose_session(self) -> None:
        for key in [key for key, each in self.keys.items() if each.session is not None]:
            del self.keys[key]
            self._touch(key)
        self._sessions += 1
        self._new_session.set()

    def values(self, prefix: str) -> dict[str, str]:
        return {key: each.value for key, each in sorted(self.keys.items()) if key.startswith(prefix)}

    async def get(self, key: str) -> Versioned | None:
        await self._asked()
        return self.keys.get(key)

    async def list(self, prefix: str) -> Mapping[str, Versioned]:
        await self._asked()
        return {key: each for key, each in sorted(self.keys.items()) if key.startswith(prefix)}

    async def create(self, key: str, value: str, ephemeral: bool = False) -> int:
        await self._asked()
        if key in self.keys:
            raise Conflict(key, self.keys[key].version)
        if ephemeral and self.session is None:
            raise SessionLost
        return self._change(key, value, self.session if ephemeral else None)

    async def put(self, key: str, value: str, version: int) -> int:
        await self._asked()
        found = self.keys.get(key)
        if found is None or found.version != version:
            raise Conflict(key, None if found is None else found.version)
        return self._change(key, value, found.session)

    async def delete(self, key: str, version: int) -> None:
        await self._asked()
        if key not in self.keys or self.keys[key].version != version:
            raise Conflict(key, None)
        del self.keys[key]
        self._touch(key)

    async def next_number(self, counter: str) -> int:
        await self._asked()
        self._number += 1
        return self._number

    async def wait(self, prefix: str, since: int) -> int:
        await self._asked()
        while max((each for key, each in self._touched.items() if key.startswith(prefix)), default=0) <= since:
            self._has_changed.clear()
            await self._has_changed.wait()
        return self._version

    def _touch(self, key: str) -> None:
        self._version += 1
        self._touched[key] = self._version
        self._has_changed.set()

    async def _asked(self) -> None:
        await asyncio.sleep(0)
        if self.is_away:
            raise Unavailable("it is away", is_definite=True)

    def _change(self, key: str, value: str, session: str | None) -> int:
        self._touch(key)
        self.keys[key] = Versioned(value, self._version, session)
        self.changes.append((key, value))
        if self.loses_answers:
            self.loses_answers -= 1
            raise Unavailable("the answer was lost")
        return self._version
