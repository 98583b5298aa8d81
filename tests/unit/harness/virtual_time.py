"""A tiny asyncio loop whose time jumps to the next timer, and a Timeline on it: tests of waiting without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__()
        self._virtual = 0.0

    def time(self) -> float:
        return self._virtual

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._virtual = max(self._virtual, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


class VirtualTimeline:
    def __init__(self, now_ns: Callable[[], int] | None = None) -> None:
        self._now_ns = now_ns

    def now_ns(self) -> int:
        return self._now_ns() if self._now_ns else round(asyncio.get_running_loop().time() * 1e9)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        async with asyncio.timeout(seconds):
            return await awaitable


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
