"""The disk of the real host: a directory of the operating system's file system, fsynced in a small thread pool."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from system_under_test.runtime.host import DiskError, DiskFull

FSYNC_THREADS = 4


def _disk_fault(error: OSError) -> OSError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(error.errno, os.strerror(error.errno))
    if error.errno == errno.EIO:
        return DiskError(error.errno, os.strerror(error.errno))
    return error


class RealFile:
    """A file by its descriptor. The first fsync makes its name durable as well, up to the disk's root."""

    def __init__(self, path: Path, root: Path, executor: ThreadPoolExecutor) -> None:
        self._path = path
        self._root = root
        self._executor = executor
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._name_durable = False
        self._fsyncs_running = 0
        self._closed = False

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def append(self, data: bytes) -> int:
        offset = self.size
        self._write(offset, data, restore_size=offset)
        return offset

    def write_at(self, offset: int, data: bytes) -> None:
        self._write(offset, data, restore_size=self.size)

    def read_at(self, offset: int, length: int) -> bytes:
        try:
            data = os.pread(self._descriptor, length, offset)
            while len(data) < length:
                more = os.pread(self._descriptor, length - len(data), offset + len(data))
                if not more:
                    break
                data += more
            return data
        except OSError as error:
            raise _disk_fault(error) from error

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise _disk_fault(error) from error

    async def fsync(self) -> None:
        if self._closed:
            raise ValueError("fsync of a closed file")
        future = asyncio.get_running_loop().run_in_executor(self._executor, self._fsync)
        self._fsyncs_running += 1
        future.add_done_callback(self._fsync_ended)
        try:
            await asyncio.shield(future)
        except OSError as error:
            raise _disk_fault(error) from error

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            if self._fsyncs_running == 0:
                os.close(self._descriptor)

    def _write(self, offset: int, data: bytes, restore_size: int) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(
                    self._descriptor, memoryview(data)[written:] if written else data, offset + written
                )
        except OSError as error:
            if self.size > restore_size:
                os.ftruncate(self._descriptor, restore_size)
            raise _disk_fault(error) from error

    def _fsync(self) -> None:
        os.fsync(self._descriptor)
        if not self._name_durable:
            _fsync_directories(self._path.parent, self._root)
            self._name_durable = True

    def _fsync_ended(self, future: asyncio.Future[None]) -> None:
        """Close the descriptor late: closing it under a running fsync could hand its number to another file."""
        self._fsyncs_running -= 1
        if self._closed and self._fsyncs_running == 0:
            os.close(self._descriptor)


def _fsync_directories(directory: Path, root: Path) -> None:
    """Fsync `directory` and its parents up to and including `root`."""
    while True:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if directory == root:
            return
        directory = directory.parent


class RealDisk:
    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self._root = root.resolve()
        self._executor = ThreadPoolExecutor(FSYNC_THREADS, thread_name_prefix="fsync")

    def open(self, path: str) -> RealFile:
        full = self._full(path)
        try:
            full.parent.mkdir(parents=True, exist_ok=True)
            return RealFile(full, self._root, self._executor)
        except OSError as error:
            raise _disk_fault(error) from error

    def exists(self, path: str) -> bool:
        """Whether there is such a file, or a directory with something in it."""
        full = self._full(path)
        if full.is_dir():
            with os.scandir(full) as entries:
                return any(entries)
        return full.is_file()

    def list(self, prefix: str) -> Sequence[str]:
        directory = self._full(prefix)
        if not directory.is_dir():
            return ()
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries if entry.is_file())
        relative = directory.relative_to(self._root)
        return tuple((relative / name).as_posix() for name in names)

    def remove(self, path: str) -> None:
        self._full(path).unlink()

    async def replace(self, source: str, target: str) -> None:
        old, new = self._full(source), self._full(target)
        try:
            new.parent.mkdir(parents=True, exist_ok=True)
            os.replace(old, new)
            run = asyncio.get_running_loop().run_in_executor
            await run(self._executor, _fsync_directories, new.parent, self._root)
            if old.parent != new.parent:
                await run(self._executor, _fsync_directories, old.parent, self._root)
        except OSError as error:
            raise _disk_fault(error) from error

    def used_share(self) -> float:
        usage = shutil.disk_usage(self._root)
        # What is reserved for others is as good as used.
        return 1.0 - usage.free / usage.total if usage.total else 1.0

    def close(self) -> None:
        self._executor.shutdown(wait=False)

    def _full(self, path: str) -> Path:
        """Raises ValueError for a path that leaves the disk's root."""
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if path.startswith("/") or ".." in parts or "\0" in path:
            raise ValueError(f"a path within the host's own tree was expected, not {path!r}")
        return self._root.joinpath(*parts)
