"""The messages that were written and wait until they are replicated, in the order of the log."""

from __future__ import annotations

import asyncio
from collections import deque


class WaitingPuts:
    def __init__(self) -> None:
        self._waiting: deque[tuple[int, asyncio.Future[bool]]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, end_offset: int) -> asyncio.Future[bool]:
        """To be called in the order of the offsets."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((end_offset, future))
        return future

    def release(self, done: int) -> None:
        """All before `done` is replicated."""
        waiting = self._waiting
        # Those given up by their waiters leave as well, or slaves that never ack would let them pile up.
        while waiting and (waiting[0][0] <= done or waiting[0][1].done()):
            future = waiting.popleft()[1]
            if not future.done():
                future.set_result(True)

    def give_up(self) -> None:
        """Nobody will know any more."""
        while self._waiting:
            future = self._waiting.popleft()[1]
            if not future.done():
                future.set_result(False)


def never_replicated() -> asyncio.Future[bool]:
    """The answer to who asks when the role is lost already."""
    future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    future.set_result(False)
    return future
