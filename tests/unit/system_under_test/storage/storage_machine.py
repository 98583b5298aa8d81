"""A machine with a simulated disk, for tests of storage: its process can be killed, its power can be lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from harness.environments.simulated.disk import SimulatedDisk
from harness.environments.simulated.disk_store import DiskFaults, DiskStore
from harness.environments.simulated.loop import VirtualTimeLoop
from harness.environments.simulated.process import Process
from harness.environments.simulated.regime import Regime
from harness.environments.simulated.seam import seam_exceptions
from harness.seed import Seed
from harness.trace import Trace
from system_under_test.runtime.host import Host
from system_under_test.storage.message_store import FlushMode, MessageStore, StorageParts, StoreConfig

T = TypeVar("T")


class _Clock:
    def __init__(self, loop: VirtualTimeLoop) -> None:
        self._loop = loop
        self.wall_error_ns = 0

    def wall_ns(self) -> int:
        return 1_700_000_000_000_000_000 + self._loop.now_ns + self.wall_error_ns

    def monotonic_ns(self) -> int:
        return self._loop.now_ns

    async def sleep(self, seconds: float) -> None:
        await self._loop.sleep_until(self._loop.now_ns + max(1, round(seconds * 1e9)))

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        async with asyncio.timeout(seconds):
            return await awaitable


class Machine:
    """One disk and, one after the other, the processes that open a store on it."""

    def __init__(self, loop: VirtualTimeLoop, seed: int, config: StoreConfig) -> None:
        self.config = config
        self.loop = loop
        self.clock = _Clock(loop)
        self.panics: list[BaseException] = []
        self._disk = DiskStore("b1", loop, Seed(seed), Regime.calm(), Trace())
        self._process = SimpleNamespace(alive=False)
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def faults(self) -> DiskFaults:
        return self._disk.faults

    @property
    def used_bytes(self) -> int:
        return self._disk.used_bytes

    def paths(self) -> list[str]:
        return self._disk.paths()

    def rot(self, path: str, offset: int) -> bool:
        """Flip a bit on the platter; returns whether there was such a byte."""
        return self._disk.rot(path, offset)

    def cut_short(self, path: str, size: int) -> None:
        """The disk loses what is behind these bytes of a file."""
        self._disk.cut_short(path, size)

    def count_fsyncs(self) -> Callable[[], int]:
        """How many fsyncs the disk was asked for from now on."""
        draws = self._disk.fsync_ns
        durations: list[float] = []

        def counted() -> float:
            durations.append(draws())
            return durations[-1]

        self._disk.fsync_ns = counted  # type: ignore[method-assign]
        return lambda: len(durations)

    async def boot(self, parts: StorageParts | None = None) -> MessageStore:
        """A new process opens the store."""
        store = self.program(parts)
        await store.open()
        return store

    def program(self, parts: StorageParts | None = None) -> MessageStore:
        """A new process with a store that is not open yet."""
        return MessageStore(self.host(), self.config, parts)

    def host(self) -> Host:
        """Of a new process."""
        self._process = SimpleNamespace(alive=True)
        return self.same_host()

    def same_host(self) -> Host:
        """Of the process that runs."""
        disk = SimulatedDisk(self._disk, cast(Process, self._process), seam_exceptions())
        host = SimpleNamespace(
            name="b1",
            clock=self.clock,
            disk=disk,
            random=random.Random(1),
            spawn=self._spawn,
            log=lambda event, **fields: None,
            reached=lambda point, **values: None,
        )
        return cast(Host, host)

    async def kill(self) -> None:
        """The process dies; what it wrote stays written."""
        self._process.alive = False
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def lose_power(self) -> None:
        """The process dies, and what was not made durable stays, goes, or is torn."""
        await self.kill()
        self._disk.lose_power()

    def _spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.panics.append(error)
            self._process.alive = False


def sync_config(segment_bytes: int = 2000) -> StoreConfig:
    return StoreConfig(segment_bytes=segment_bytes, flush_mode=FlushMode.SYNC, index_slots=4, index_entries=8)


def async_config(segment_bytes: int = 2000) -> StoreConfig:
    return StoreConfig(segment_bytes=segment_bytes, index_slots=4, index_entries=8)
