"""What a broker keeps by name and can be changed while it runs: topics, groups of consumers.

The table is replaced as a whole, on disk first and then in memory, so nobody is shown what a restart would not show.
Its data version says which state it is in; slaves copy it from their master together with the version.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.data_version import DataVersion
from system_under_test.runtime.host import Host
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.record_file import RecordFile

Entry = TypeVar("Entry")


class VersionedTable(Generic[Entry]):
    """`initial` is what it holds for as long as it was never changed; only the first change makes a file of it.

    `label` is the entries' name in JSON. `read` turns their JSON into entries; it raises ValueError, KeyError,
    TypeError or AttributeError.
    """

    def __init__(
        self,
        host: Host,
        path: str,
        *,
        label: str,
        write: Callable[[Mapping[str, Entry]], dict[str, Any]],
        read: Callable[[Mapping[str, Any]], dict[str, Entry]],
        initial: Mapping[str, Entry],
    ) -> None:
        self._record = RecordFile(host.disk, path)
        self._clock = host.clock
        self._label = label
        self._write = write
        self._read = read
        self._changes = asyncio.Lock()
        self.entries: Mapping[str, Entry] = MappingProxyType(dict(initial))
        self.version = DataVersion()

    def load(self) -> None:
        """Raises StorageCorrupt."""
        record = self._record.read()
        if record is not None:
            try:
                self._set(*self.decode(record))
            except ValueError as error:
                raise StorageCorrupt(f"{self._label}: {error}") from error

    def get(self, name: str) -> Entry | None:
        return self.entries.get(name)

    def assume(self, entries: Mapping[str, Entry]) -> None:
        """Have these as well, unless there are others of their names. They are no change: no file, no other version."""
        self._set({**entries, **self.entries}, self.version)

    async def put(self, added: Mapping[str, Entry], state_version: int) -> None:
        """Add or replace entries; durable on return. What is there already is no change.

        Raises StorageFailed, DiskFull.
        """
        async with self._changes:
            if all(self.entries.get(name) == entry for name, entry in added.items()):
                return
            await self._change({**self.entries, **added}, self._next(state_version))

    async def remove(self, name: str, state_version: int) -> None:
        """Durable on return. Raises StorageFailed, DiskFull."""
        async with self._changes:
            kept = {kept: entry for kept, entry in self.entries.items() if kept != name}
            await self._change(kept, self._next(state_version))

    async def take(self, body: bytes) -> None:
        """Be as the table that `encode` gave elsewhere; durable on return.

        Raises ValueError for a body that is none, StorageFailed, DiskFull.
        """
        entries, version = self.decode(body)
        async with self._changes:
            if version != self.version or entries != self.entries:
                await self._change(entries, version)

    def encode(self, **beside: object) -> bytes:
        """As it stands on disk and travels, with whatever goes with it."""
        return self._encode(self.entries, self.version, beside)

    def decode(self, body: bytes) -> tuple[dict[str, Entry], DataVersion]:
        """Raises ValueError."""
        try:
            value = decode_json(body)
            return self._read(value[self._label]), DataVersion.from_json(value["dataVersion"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no {self._label}: {error!r}") from error

    def _next(self, state_version: int) -> DataVersion:
        return self.version.next(state_version, self._clock.wall_ns() // 1_000_000)

    async def _change(self, entries: Mapping[str, Entry], version: DataVersion) -> None:
        await self._record.write(self._encode(entries, version, {}))
        self._set(entries, version)

    def _set(self, entries: Mapping[str, Entry], version: DataVersion) -> None:
        self.entries = MappingProxyType(dict(sorted(entries.items())))
        self.version = version

    def _encode(self, entries: Mapping[str, Entry], version: DataVersion, beside: Mapping[str, object]) -> bytes:
        value = {"dataVersion": version.as_json(), self._label: self._write(entries), **beside}
        return json.dumps(value, separators=(",", ":")).encode()
