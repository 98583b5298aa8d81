"""A disk as processes and faults use it, of each kind that there is: the simulator's, and the one of containers."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, cast

from harness.environments.disk.damage import cut_files_short, rot
from harness.environments.disk.disk_faults import DiskImpairment
from harness.environments.fuse.mounted import MountedVolume
from harness.environments.impairment import BitRot, Corruption
from harness.environments.simulated.disk import SimulatedDisk
from harness.environments.simulated.disk_store import DiskStore
from harness.environments.simulated.loop import VirtualTimeLoop
from harness.environments.simulated.process import Process
from harness.environments.simulated.regime import Regime
from harness.environments.simulated.seam import seam_exceptions
from harness.seed import Seed
from harness.trace import Trace


class Disk(Protocol):
    """Calls fail with OSError."""

    def append(self, path: str, data: bytes) -> None: ...

    def write(self, path: str, offset: int, data: bytes) -> None: ...

    def truncate(self, path: str, size: int) -> None: ...

    def fsync(self, path: str) -> float:
        """How many seconds it took."""

    def content(self, path: str) -> bytes | None: ...

    def rename(self, source: str, target: str, *, durably: bool) -> None: ...

    def remove(self, path: str) -> None: ...

    def lose_power(self) -> str: ...

    def impair(self, impairment: DiskImpairment) -> None: ...

    def relieve(self, impairment: DiskImpairment) -> str: ...

    def rot(self, how: BitRot | Corruption) -> str: ...

    def cut_short(self, files: int, draw: int) -> str: ...

    def copy(self) -> None: ...

    def put_back(self, *, copied: bool) -> None:
        """What was copied, or nothing at all."""


class Simulated:
    def __init__(self, seed: int) -> None:
        self._loop = VirtualTimeLoop()  # type: ignore[abstract]  # as in `run_simulation`
        self._store = DiskStore("n", self._loop, Seed(seed), Regime.calm(), Trace())
        process = cast(Process, SimpleNamespace(alive=True))
        self._disk = SimulatedDisk(self._store, process, seam_exceptions())
        self._copy: Any = {}

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._loop.run(coroutine)

    def append(self, path: str, data: bytes) -> None:
        self._disk.open(path).append(data)

    def write(self, path: str, offset: int, data: bytes) -> None:
        self._disk.open(path).write_at(offset, data)

    def truncate(self, path: str, size: int) -> None:
        self._disk.open(path).truncate(size)

    def fsync(self, path: str) -> float:
        before_ns = self._loop.now_ns
        self._run(self._disk.open(path).fsync())
        return (self._loop.now_ns - before_ns) / 1e9

    def content(self, path: str) -> bytes | None:
        return self._disk.open(path).read_at(0, 1 << 20) if self._disk.exists(path) else None

    def rename(self, source: str, target: str, *, durably: bool) -> None:
        if durably:
            self._run(self._disk.replace(source, target))
        else:
            self._store.rename(source, target)

    def remove(self, path: str) -> None:
        self._disk.remove(path)

    def lose_power(self) -> str:
        return self._store.lose_power()

    def impair(self, impairment: DiskImpairment) -> None:
        self._store.troubles.add(impairment, self._store.used_bytes)

    def relieve(self, impairment: DiskImpairment) -> str:
        trouble = self._store.troubles.take(impairment)
        return trouble.words() if trouble else ""

    def rot(self, how: BitRot | Corruption) -> str:
        return rot(self._store, how, random.Random(how.draw))

    def cut_short(self, files: int, draw: int) -> str:
        return cut_files_short(self._store, files, random.Random(draw))

    def copy(self) -> None:
        self._copy = self._store.image()

    def put_back(self, *, copied: bool) -> None:
        self._store.put_back(self._copy if copied else {})


class Mounted:
    """Used as any process would, by system calls."""

    def __init__(self, volume: MountedVolume) -> None:
        self._volume = volume
        self.place = volume.place

    @contextlib.contextmanager
    def _open(self, path: str, flags: int) -> Iterator[int]:
        place = self.place / path
        place.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(place, flags, 0o644)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def append(self, path: str, data: bytes) -> None:
        with self._open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND) as file:
            os.write(file, data)

    def write(self, path: str, offset: int, data: bytes) -> None:
        with self._open(path, os.O_WRONLY | os.O_CREAT) as file:
            os.pwrite(file, data, offset)

    def truncate(self, path: str, size: int) -> None:
        with self._open(path, os.O_WRONLY | os.O_CREAT) as file:
            os.ftruncate(file, size)

    def fsync(self, path: str) -> float:
        before_s = time.monotonic()
        with self._open(path, os.O_WRONLY | os.O_CREAT) as file:
            os.fsync(file)
        return time.monotonic() - before_s

    def content(self, path: str) -> bytes | None:
        with contextlib.suppress(FileNotFoundError), self._open(path, os.O_RDONLY) as file:
            return os.pread(file, 1 << 20, 0)
        return None

    def rename(self, source: str, target: str, *, durably: bool) -> None:
        os.rename(self.place / source, self.place / target)
        if durably:
            folders = [(self.place / path).parent for path in (target, source)]
            for folder in dict.fromkeys(folders):
                self.fsync_folder(folder)

    def fsync_folder(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self, path: str) -> None:
        os.unlink(self.place / path)

    def lose_power(self) -> str:
        return str(self._volume.lose_power())

    def impair(self, impairment: DiskImpairment) -> None:
        self._volume.impair(impairment)

    def relieve(self, impairment: DiskImpairment) -> str:
        return self._volume.relieve(impairment)

    def rot(self, how: BitRot | Corruption) -> str:
        return self._volume.rot(how, ())

    def cut_short(self, files: int, draw: int) -> str:
        return self._volume.cut_short(files, draw, ())

    def copy(self) -> None:
        self._volume.copy("copy")

    def put_back(self, *, copied: bool) -> None:
        self._volume.put_back("copy" if copied else "", ())
