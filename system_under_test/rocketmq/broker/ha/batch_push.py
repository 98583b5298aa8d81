"""Sends together what a broker writes in one go: all the messages that it had received when it began to write.

What was written is sent as soon as the broker has nothing more to write at once, so a message that comes alone leaves
as early as ever, and many that come together share a frame of replication, an append of the slave and an ack of it. A
slave takes frames of any length, so only the master decides.
"""

from __future__ import annotations

from collections.abc import Callable

from system_under_test.runtime.host import Host


class BatchPush:
    """`push` sends all that is due."""

    def __init__(self, host: Host, push: Callable[[], None]) -> None:
        self._host = host
        self._push = push
        self._is_due = False

    def due(self) -> None:
        """There is something to send; soon, and once for all such calls until then, it is."""
        if not self._is_due:
            self._is_due = True
            # What runs already is ahead of a task that is new: all requests that came together are written before.
            self._host.spawn(self._run(), "batch push")

    async def _run(self) -> None:
        self._is_due = False
        self._push()
