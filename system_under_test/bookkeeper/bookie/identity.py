"""Who a bookie is: an identity, drawn when its disk is empty, kept on that disk and in the metadata store.

Ledgers name bookies by it, never by address. So one that comes back with an empty disk is somebody else: it holds
nothing of what the one before it had acknowledged, and no fence of it. Its registration is made before its disk is
written, for a disk whose identity nobody knows could never start again; a registration that no disk bears harms nobody.
In the same go those that were registered at its address are marked as replaced: a disk of theirs that comes back after
all knows no fence that was set meanwhile, and does not start.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from system_under_test.metadata.access import Conflict, MetadataAccess, Unavailable, Versioned
from system_under_test.remoting.json_body import decode_json
from system_under_test.runtime.host import Clock, Disk, DiskError
from system_under_test.storage.errors import StorageCorrupt, StorageFailed
from system_under_test.storage.record_file import RecordFile

BOOKIES = "/bookies/"
"""Keys that begin so name each bookie that ever was, by its identity."""

PAUSE_S = 0.5
"""So long a bookie waits before it asks a metadata store again that gave no answer."""


class IdentityUnfit(ValueError):
    """The disk bears no identity though it should, or one that the metadata store does not know like that."""


@dataclass(frozen=True, slots=True)
class Registered:
    """What the metadata store holds of a bookie, for ever."""

    address: str
    replaced_by: str | None = None
    """The identity of one that began at its address with an empty disk."""

    def encode(self) -> str:
        fields = {"address": self.address}
        return json.dumps(fields if self.replaced_by is None else {**fields, "replacedBy": self.replaced_by})

    @classmethod
    def decode(cls, value: str) -> Registered:
        """Raises ValueError."""
        fields = decode_json(value.encode())
        address = fields.get("address") if isinstance(fields, dict) else None
        replaced_by = fields.get("replacedBy") if isinstance(fields, dict) else None
        if not isinstance(address, str) or not isinstance(replaced_by, str | None):
            raise ValueError(f"no registration of a bookie: {value[:80]!r}")
        return cls(address, replaced_by)


@dataclass(frozen=True, slots=True)
class Identity:
    own: str
    replaced: frozenset[str] = frozenset()
    """Those whose disks are gone, and in whose place this bookie is."""
    is_drawn: bool = False
    """Whether the disk had none, and this one was drawn now."""


class IdentityFile:
    """On the bookie's disk."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._record = RecordFile(disk, path)

    def read(self) -> str | None:
        """None if there is none. Raises StorageCorrupt, StorageFailed."""
        try:
            data = self._record.read()
        except DiskError as error:
            raise StorageFailed(f"reading: {error}") from error
        return None if data is None else decode_identity(data)

    async def write(self, identity: str) -> None:
        """Durable on return. Raises DiskFull, StorageFailed."""
        await self._record.write(bytes.fromhex(identity))


def decode_identity(data: bytes) -> str:
    """Raises StorageCorrupt."""
    if len(data) != 8:
        raise StorageCorrupt(f"an identity of {len(data)} bytes")
    return data.hex()


class IdentityChoice:
    """Settles who a bookie is."""

    def __init__(
        self,
        clock: Clock,
        metadata: MetadataAccess,
        file: IdentityFile,
        *,
        place: str,
        address: str,
        draw: Callable[[list[str]], str],
    ) -> None:
        """`place`: of the disk, in words. `draw` gives an identity to an empty one; it hears who was at the address."""
        self._clock = clock
        self._metadata = metadata
        self._file = file
        self._place = place
        self._address = address
        self._draw = draw

    async def settle(self, *, is_empty: bool) -> Identity:
        """`is_empty`: the disk has nothing else of a bookie. Raises IdentityUnfit, StorageCorrupt, StorageFailed,
        DiskFull."""
        identity = self._file.read()
        registered = await self._registered()
        here = [other for other, at in registered.items() if at.address == self._address and at.replaced_by is None]
        is_drawn = identity is None
        if identity is None:
            if not is_empty:
                self._refuse_without(here)
            identity = self._draw(here)
            if identity not in registered:
                await self._write(identity, Registered(self._address))
            for other in here:
                if other != identity:
                    await self._write(other, Registered(self._address, identity))
            await self._file.write(identity)
        else:
            self._require_fit(identity, registered.get(identity))
            here = []
        gone = [other for other, at in registered.items() if at.address == self._address and at.replaced_by is not None]
        return Identity(identity, frozenset([*gone, *here]) - {identity}, is_drawn)

    def _refuse_without(self, here: list[str]) -> None:
        known = f"the metadata store has {' and '.join(here)} at this address" if here else "none is at this address"
        raise IdentityUnfit(
            f"{self._place} has files of a bookie and no identity, and of {self._address} {known}: bring the file "
            "'identity' back, or empty the disk, and the bookie starts as another one"
        )

    def _require_fit(self, identity: str, found: Registered | None) -> None:
        if found == Registered(self._address):
            return
        if found is None:
            differs = "which the metadata store does not know: give the bookie the metadata store that it had"
        elif found.replaced_by is not None:
            differs = f"in whose place {found.replaced_by} has begun with an empty disk"
        else:
            differs = f"which the metadata store has at {found.address}: start it there"
        raise IdentityUnfit(
            f"{self._place} is that of bookie {identity}, {differs}; it does not start at {self._address}. Emptied, "
            "the disk serves another bookie"
        )

    # -- the metadata store, until it answers

    async def _registered(self) -> dict[str, Registered]:
        found = await self._list()
        return {key.removeprefix(BOOKIES): Registered.decode(each.value) for key, each in found.items()}

    async def _list(self) -> Mapping[str, Versioned]:
        while True:
            try:
                return await self._metadata.list(BOOKIES)
            except Unavailable:
                await self._clock.sleep(PAUSE_S)

    async def _write(self, identity: str, value: Registered) -> None:
        """Nobody else writes it, but another try of this bookie."""
        key, text = BOOKIES + identity, value.encode()
        while True:
            try:
                found = await self._metadata.get(key)
                if found is not None and found.value == text:
                    return
                if found is None:
                    await self._metadata.create(key, text)
                else:
                    await self._metadata.put(key, text, found.version)
                return
            except Conflict:
                continue
            except Unavailable:
                await self._clock.sleep(PAUSE_S)
