"""When the log is made durable, and who waits for it.

Synchronous (group commit): as soon as anything is written an fsync starts; one runs at a time, and when it ends
everyone whose bytes were written before it began is released together. Asynchronous: every `interval_s`, if at
least `least_pages` pages of 4 KiB are dirty or the last fsync is `thorough_interval_s` old; at once for who waits.

A failed fsync reaches every waiter as StorageFailed and ends the task, so the process: nothing may be acked after it.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

from system_under_test.runtime.host import Host
from system_under_test.storage.errors import LogTruncated, StorageFailed

PAGE_BYTES = 4096


class Flusher(Protocol):
    """The policy a store runs with."""

    def written(self) -> None:
        """Something was appended."""

    async def wait(self, offset: int) -> None:
        """Return when everything before `offset` is durable. Raises StorageFailed, LogTruncated."""

    def truncated(self, offset: int) -> None:
        """The log was cut: those who wait for bytes beyond `offset` wait in vain."""

    async def run(self) -> None:
        """Flush until cancelled. Raises StorageFailed."""


class Log(Protocol):
    """What is made durable: bytes one behind the other."""

    @property
    def failed(self) -> bool:
        """The device failed; nothing is vouched for any more."""

    @property
    def max_offset(self) -> int: ...

    @property
    def flushed_offset(self) -> int:
        """Everything before it is durable."""

    async def flush(self) -> int:
        """Make everything written before the call durable; returns the flushed offset. Raises StorageFailed."""


class _Waiters:
    """Futures by the offset they wait for, least first."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, asyncio.Future[None]]] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, offset: int, log: Log) -> asyncio.Future[None]:
        if log.failed:
            raise StorageFailed("the device failed before")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heappush(self._heap, (offset, self._count, future))
        return future

    def release(self, offset: int) -> None:
        while self._heap and self._heap[0][0] <= offset:
            future = heappop(self._heap)[2]
            if not future.done():
                future.set_result(None)

    def fail_beyond(self, offset: int, error: Exception) -> None:
        kept = [waiter for waiter in self._heap if waiter[0] <= offset]
        for waiter in sorted(self._heap):
            if waiter[0] > offset and not waiter[2].done():
                waiter[2].set_exception(error)
        self._heap = sorted(kept)


class GroupCommit:
    """Synchronous flush: one fsync after the other as long as anything is dirty."""

    def __init__(self, log: Log, host: Host) -> None:
        self._log = log
        self._host = host
        self._waiters = _Waiters()
        self._work = asyncio.Event()

    def written(self) -> None:
        self._work.set()

    async def wait(self, offset: int) -> None:
        if offset > self._log.flushed_offset:
            self._work.set()
            await self._waiters.add(offset, self._log)

    def truncated(self, offset: int) -> None:
        self._waiters.fail_beyond(offset, LogTruncated(f"the log was cut at {offset}"))

    async def run(self) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            await _flush(self._log, self._waiters, self._host)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncFlushTimes:
    """When the asynchronous flusher acts."""

    interval_s: float = 0.5
    least_pages: int = 4
    thorough_interval_s: float = 10.0


class AsyncFlush:
    """Asynchronous flush by time and dirty pages; a waiter is served at once, whatever is dirty.

    A slave that acknowledges only what it has fsynced waits for each batch: served by the interval, it would take two
    batches a second, and never catch up.
    """

    def __init__(self, log: Log, host: Host, times: AsyncFlushTimes) -> None:
        self._log = log
        self._host = host
        self._clock = host.clock
        self._times = times
        self._waiters = _Waiters()
        self._asked = asyncio.Event()

    def written(self) -> None:
        """Nothing to do: the interval decides."""

    async def wait(self, offset: int) -> None:
        if offset > self._log.flushed_offset:
            self._asked.set()
            await self._waiters.add(offset, self._log)

    def truncated(self, offset: int) -> None:
        self._waiters.fail_beyond(offset, LogTruncated(f"the log was cut at {offset}"))

    async def run(self) -> None:
        last_flush_ns = self._clock.monotonic_ns()
        while True:
            with suppress(TimeoutError):
                await self._clock.within(self._times.interval_s, self._asked.wait())
            self._asked.clear()
            now_ns = self._clock.monotonic_ns()
            thorough = now_ns - last_flush_ns >= self._times.thorough_interval_s * 1e9
            dirty_pages = self._log.max_offset // PAGE_BYTES - self._log.flushed_offset // PAGE_BYTES
            if self._waiters or thorough or dirty_pages >= self._times.least_pages:
                last_flush_ns = now_ns
                await _flush(self._log, self._waiters, self._host)


async def _flush(log: Log, waiters: _Waiters, host: Host) -> None:
    host.reached("about-to-flush")
    try:
        flushed = await log.flush()
        host.reached("flushed")
        waiters.release(flushed)
    except StorageFailed as error:
        waiters.fail_beyond(-1, error)
        raise
