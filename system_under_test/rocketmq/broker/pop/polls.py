"""Requests that wait until a topic has something to give."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import NamedTuple

from system_under_test.runtime.host import Host
from system_under_test.runtime.places import Places

MAX_WAITING = 4096
MAX_WAIT_S = 30.0


class Waiter(NamedTuple):
    """Who waits for what: `queue_id` is -1 for any."""

    topic: str
    group: str
    queue_id: int


class Polls:
    def __init__(self, host: Host, places: Places) -> None:
        self._host = host
        self._places = places
        self._waiting: dict[str, dict[asyncio.Future[None], Waiter]] = {}
        self._count = 0

    @property
    def is_full(self) -> bool:
        return self._count >= MAX_WAITING

    def count(self, waiter: Waiter) -> int:
        """How many wait for just this."""
        return sum(other == waiter for other in self._waiting.get(waiter.topic, {}).values())

    async def wait(self, waiter: Waiter, topics: tuple[str, ...], seconds: float) -> None:
        """Until one of the topics, of which the first is the waiter's own, has got a message, or time is over."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        for topic in topics:
            self._waiting.setdefault(topic, {})[future] = waiter
        self._count += 1
        try:
            with self._places.waiting(), suppress(TimeoutError):
                await self._host.clock.within(seconds, future)
        finally:
            self._count -= 1
            for topic in topics:
                self._waiting[topic].pop(future, None)
                if not self._waiting[topic]:
                    del self._waiting[topic]

    def wake(self, topic: str) -> None:
        """Messages have arrived."""
        for future in list(self._waiting.get(topic, ())):
            if not future.done():
                future.set_result(None)

    def wake_all(self) -> None:
        for topic in list(self._waiting):
            self.wake(topic)
