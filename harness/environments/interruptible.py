"""`asyncio.run` for what has to be unwound: a signal cancels it, once, between two of its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from harness.lifetime.interruption import unwinding

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run it to its end. Raises Interrupted if it was asked to end meanwhile, after it has tidied up."""
    cancelling = _Cancelling()
    with unwinding(cancelling.ask):
        return asyncio.run(cancelling.around(main))


class _Cancelling:
    def __init__(self) -> None:
        self._asked = False
        self._cancel: Callable[[], object] | None = None

    def ask(self) -> None:
        """In a signal's handler: before the loop has begun, while it runs, or after its end."""
        self._asked = True
        if self._cancel is not None:
            self._cancel()

    async def around(self, main: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(main)
        loop = asyncio.get_running_loop()
        # From a thread, as it were: that wakes a loop that waits, which a signal's handler alone does not.
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            if self._asked:
                task.cancel()
            return await task
        finally:
            self._cancel = None
