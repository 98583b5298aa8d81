"""`Disk` and `File` of the seam: a machine's disk as one process uses it.

What is durable, and what a loss of power leaves, is the business of `disk_store`. A dead process changes
nothing, and an fsync that was under way when it died is not completed.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence
from functools import partial
from zlib import crc32

from harness.environments.disk.durability import Inode
from harness.environments.impairment import DiskErrors, FailingFsync, FullDisk, MisdirectedWrites
from harness.environments.simulated.disk_store import DiskStore
from harness.environments.simulated.process import Process
from harness.environments.simulated.seam import SeamExceptions


class SimulatedFile:
    """`File` of the seam."""

    __slots__ = ("_disk", "_inode", "_path", "_process")

    def __init__(self, disk: SimulatedDisk, process: Process, path: str, inode: Inode) -> None:
        self._disk = disk
        self._process = process
        self._path = path
        self._inode = inode

    @property
    def size(self) -> int:
        return len(self._inode.content)

    def append(self, data: bytes) -> int:
        offset = len(self._inode.content)
        self.write_at(offset, data)
        return offset

    def write_at(self, offset: int, data: bytes) -> None:
        if not self._process.alive:
            return
        inode = self._inode
        store = self._disk.store
        content = inode.content
        data = bytes(data)
        growth = offset + len(data) - len(content)
        if growth > 0 and not store.has_room(growth):
            store.troubles.struck(FullDisk, f"write {self._path} {offset}+{len(data)}")
            raise self._disk.exceptions.DiskFull(errno.ENOSPC, f"no room on {store.name}", self._path)
        if store.happens(store.faults.write_error_probability):
            store.troubles.struck(DiskErrors, f"write {self._path} {offset}+{len(data)}")
            raise self._disk.exceptions.DiskError(errno.EIO, f"write failed on {store.name}", self._path)
        if growth > 0 and inode.linked:
            store.used_bytes += growth
        where = f"{self._path} {offset}+{len(data)}"
        place = store.troubles.place_of(inode, offset, len(data))
        if place != offset:
            where += f" to {place}"
            store.troubles.struck(MisdirectedWrites, f"write {where}")
            if growth > 0:
                inode.change(offset + len(data), None)
        inode.change(place, data)
        store.trace.event(store.loop.now_ns, store.name, "write", f"{where} {crc32(data):08x}")

    def read_at(self, offset: int, length: int) -> bytes:
        store = self._disk.store
        failing = store.faults.read_error_probability
        if failing and self._process.alive and store.happens(failing):
            store.troubles.struck(DiskErrors, f"read {self._path} {offset}+{length}")
            raise self._disk.exceptions.DiskError(errno.EIO, f"read failed on {store.name}", self._path)
        return bytes(memoryview(self._inode.content)[offset : offset + length])

    def truncate(self, size: int) -> None:
        if not self._process.alive:
            return
        store = self._disk.store
        inode = self._inode
        growth = size - len(inode.content)
        if growth > 0 and not store.has_room(growth):
            store.troubles.struck(FullDisk, f"truncate {self._path} {size}")
            raise self._disk.exceptions.DiskFull(errno.ENOSPC, f"no room on {store.name}", self._path)
        if inode.linked:
            store.used_bytes += growth
        inode.change(size, None)
        store.trace.event(store.loop.now_ns, store.name, "truncate", f"{self._path} {size}")

    async def fsync(self) -> None:
        if not self._process.alive:
            await self._process.never()
        store = self._disk.store
        loop = store.loop
        inode = self._inode
        upto = inode.written
        done = loop.create_future()
        store.trace.event(loop.now_ns, store.name, "fsync", f"{self._path} {len(inode.content)}")
        store.after_fsync(partial(self._synced, upto, done))
        error = await done
        if error is not None:
            raise error

    def _synced(self, upto: int, done: asyncio.Future[OSError | None]) -> None:
        """The device answers; a process that died meanwhile has no call to be completed."""
        if not self._process.alive:
            return
        store = self._disk.store
        faults = store.faults
        error: OSError | None = None
        if store.happens(faults.fsync_error_probability):
            store.troubles.struck(FailingFsync, f"fsync {self._path} {self._inode.drop(upto)} bytes")
            error = self._disk.exceptions.DiskError(errno.EIO, f"fsync failed on {store.name}", self._path)
            outcome = "failed"
        elif store.happens(faults.fsync_lie_probability):
            outcome = "lied"
        else:
            self._inode.carry(upto)
            store.sync_name(self._inode)
            outcome = "done"
        store.trace.event(store.loop.now_ns, store.name, f"fsync-{outcome}", self._path)
        if not done.done():
            done.set_result(error)

    def close(self) -> None:
        pass


class SimulatedDisk:
    """`Disk` of the seam: a machine's disk as one process uses it."""

    __slots__ = ("_process", "exceptions", "store")

    def __init__(self, store: DiskStore, process: Process, exceptions: SeamExceptions) -> None:
        self.store = store
        self.exceptions = exceptions
        self._process = process

    def open(self, path: str) -> SimulatedFile:
        path = _clean(path)
        inode = self.store.lookup(path)
        if inode is None:
            if not self._process.alive:
                return SimulatedFile(self, self._process, path, Inode())
            inode = self.store.create(path)
            self.store.trace.event(self.store.loop.now_ns, self.store.name, "create", path)
        return SimulatedFile(self, self._process, path, inode)

    def exists(self, path: str) -> bool:
        path = _clean(path)
        return self.store.lookup(path) is not None or any(name.startswith(path + "/") for name in self.store.paths())

    def list(self, prefix: str) -> Sequence[str]:
        directory = _clean(prefix)
        return sorted(path for path in self.store.paths() if path.rpartition("/")[0] == directory)

    def remove(self, path: str) -> None:
        path = _clean(path)
        if not self._process.alive:
            return
        if self.store.lookup(path) is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self.store.remove(path)
        self.store.trace.event(self.store.loop.now_ns, self.store.name, "remove", path)

    async def replace(self, source: str, target: str) -> None:
        source, target = _clean(source), _clean(target)
        if not self._process.alive:
            await self._process.never()
        store = self.store
        if store.lookup(source) is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", source)
        change = store.rename(source, target)
        store.trace.event(store.loop.now_ns, store.name, "rename", f"{source} {target}")
        renamed = store.loop.create_future()
        store.after_fsync(partial(self._renamed, renamed))
        await renamed
        store.sync_names_until(change)

    def _renamed(self, done: asyncio.Future[None]) -> None:
        if self._process.alive and not done.done():
            done.set_result(None)

    def used_share(self) -> float:
        """A disk is endless unless it is full."""
        capacity = self.store.faults.capacity_bytes
        return 0.0 if capacity is None else min(1.0, self.store.used_bytes / max(1, capacity))


def _clean(path: str) -> str:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts or path.startswith("/"):
        raise ValueError(f"a path within the host's own tree was expected, not {path!r}")
    return "/".join(parts)
