"""Ends of faults that take as long as the system needs: each goes on beside the storm, as other faults come and go."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from harness.environments.environment import Timeline
from harness.errors import HarnessError

Key = tuple[str, int]


class PendingRecoveries:
    """By the keys of the faults. Code that begins one calls `finish` in the end."""

    def __init__(self) -> None:
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._tasks

    def begin(self, key: Key, ending: Coroutine[Any, Any, None]) -> None:
        self._tasks[key] = asyncio.create_task(ending, name=f"end of {key[0]} {key[1]}")

    async def over_within(self, timeline: Timeline, seconds: float) -> bool:
        """Whether all are over after so long at most; none is cut short."""
        open_ = [task for task in self._tasks.values() if not task.done()]
        if not open_:
            return True
        try:
            await timeline.within(seconds, asyncio.wait(open_))
        except TimeoutError:
            return False
        return True

    async def finish(self, timeline: Timeline, seconds: float) -> list[HarnessError]:
        """Cut short what is not over after so long; returns what those that ended failed with."""
        await self.over_within(timeline, seconds)
        for task in self._tasks.values():
            task.cancel()
        results = await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()
        failures = [result for result in results if isinstance(result, HarnessError)]
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, HarnessError):
                raise result
        return failures
