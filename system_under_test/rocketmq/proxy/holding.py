"""Deliveries whose invisible time the proxy renews while their client lives: it need not know how long it takes.

The client goes on with the handle it was given; which one counts by now is known here. Where a client is gone, what it
holds comes again soon.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from system_under_test.rocketmq.pop_protocol import ReceiptHandle

MAX_HELD = 3_000_000
"""By all clients of one proxy together; what is delivered beyond is not renewed."""
GIVEN_BACK_MS = 1_000
"""What a client held that is gone comes again after this time."""


@dataclass(slots=True)
class Held:
    client_id: str
    group: str
    topic: str
    handle: ReceiptHandle
    """The one that counts by now."""
    due_ns: int
    """When it is to be renewed next."""


class Holding:
    """By the handle that the client knows. `renew` asks the broker; None where the delivery holds nothing any more."""

    def __init__(
        self, period_ns: int, renew: Callable[[str, str, ReceiptHandle, int], Awaitable[ReceiptHandle | None]]
    ) -> None:
        self._period_ns = period_ns
        self._renew = renew
        self._held: dict[str, Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, client_id: str, group: str, topic: str, handle: ReceiptHandle, now_ns: int) -> None:
        if len(self._held) < MAX_HELD:
            self._held[handle.encode()] = Held(client_id, group, topic, handle, now_ns + self._period_ns)

    def current(self, handle: ReceiptHandle) -> ReceiptHandle:
        """The handle that counts now for the one that a client names."""
        held = self._held.get(handle.encode())
        return handle if held is None else held.handle

    def let_go(self, handle: ReceiptHandle) -> None:
        self._held.pop(handle.encode(), None)

    async def renew_due(self, now_ns: int, invisible_ms: int) -> None:
        """Renew what has been held for a period, one after the other."""
        for name, held in self._due(now_ns):
            renewed = await self._renew(held.group, held.topic, held.handle, invisible_ms)
            if name not in self._held:
                continue  # let go meanwhile
            if renewed is None:
                del self._held[name]
            else:
                held.handle = renewed
                held.due_ns = now_ns + self._period_ns

    async def give_back(self, client_id: str) -> None:
        """Let come again soon what this client holds, for it is gone."""
        names = [name for name, held in self._held.items() if held.client_id == client_id]
        for name in names:
            held = self._held.pop(name, None)
            if held is not None:
                await self._renew(held.group, held.topic, held.handle, GIVEN_BACK_MS)

    def _due(self, now_ns: int) -> Iterator[tuple[str, Held]]:
        return iter([(name, held) for name, held in self._held.items() if held.due_ns <= now_ns])
