"""The harness's clock in environments of real time: CLOCK_MONOTONIC, counted from when the test began."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class MonotonicTimeline:
    """Begins when it is made."""

    def __init__(self) -> None:
        self.start_ns = time.monotonic_ns()

    def now_ns(self) -> int:
        return time.monotonic_ns() - self.start_ns

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        async with asyncio.timeout(seconds):
            return await awaitable
