"""Deliveries whose invisible time the proxy renews while their client lives: it need not know how long it takes.

The client goes on with the handle it was given; which one counts by now is known here. Where a client is gone, what it
holds comes again soon. Pure: who asks brokers is told what is due, and tells what came of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.rocketmq.pop_protocol import ReceiptHandle

MAX_HELD = 3_000_000
"""How many deliveries one proxy holds for all its clients together; what is delivered beyond is not renewed."""
GIVEN_BACK_MS = 1_000
"""What a client held that is gone comes again after this time."""
RETRIES_A_PERIOD = 8
"""Where a broker does not answer, it is asked again so often."""


@dataclass(slots=True)
class Held:
    client_id: str
    group: str
    topic: str
    handle: ReceiptHandle
    """The one that counts by now."""
    due_ns: int
    """When it is to be renewed next."""
    invisible_ms: int
    """How long it is renewed for."""
    given_back_ns: int | None = None
    """When its client was found to be gone."""


class Holding:
    """By the handle that the client knows."""

    def __init__(self, period_ns: int, invisible_ms: int) -> None:
        self._period_ns = period_ns
        self._invisible_ms = invisible_ms
        self._held: dict[str, Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, client_id: str, group: str, topic: str, handle: ReceiptHandle, now_ns: int) -> None:
        if len(self._held) < MAX_HELD:
            due_ns = now_ns + self._period_ns
            self._held[handle.encode()] = Held(client_id, group, topic, handle, due_ns, self._invisible_ms)

    def get(self, name: str) -> Held | None:
        return self._held.get(name)

    def current(self, handle: ReceiptHandle) -> ReceiptHandle:
        """The handle that counts now for the one that a client names."""
        held = self._held.get(handle.encode())
        return handle if held is None else held.handle

    def let_go(self, handle: ReceiptHandle) -> None:
        self._held.pop(handle.encode(), None)

    def brokers_due(self, now_ns: int) -> list[str]:
        """Of which something is to be renewed, each once."""
        return list(dict.fromkeys(held.handle.broker_name for held in self._held.values() if held.due_ns <= now_ns))

    def due(self, broker: str, now_ns: int, most: int) -> list[str]:
        """What of this broker's is to be renewed first, by name."""
        due = [
            (held.due_ns, name)
            for name, held in self._held.items()
            if held.due_ns <= now_ns and held.handle.broker_name == broker
        ]
        return [name for _, name in sorted(due)[:most]]

    def renewed(self, name: str, held: Held, handle: ReceiptHandle, invisible_ms: int, now_ns: int) -> None:
        """By its broker, for so long, under the handle that counts from now on."""
        if self._held.get(name) is not held:
            return  # let go meanwhile
        held.handle = handle
        if invisible_ms == GIVEN_BACK_MS and held.given_back_ns is not None:
            del self._held[name]
        elif held.given_back_ns is None:
            held.due_ns = now_ns + self._period_ns

    def ended(self, name: str, held: Held) -> None:
        """The delivery holds nothing any more."""
        if self._held.get(name) is held:
            del self._held[name]

    def not_renewed(self, name: str, held: Held, now_ns: int) -> None:
        """As far as is known. What was given back comes again by itself in the end."""
        held.due_ns = now_ns + self._period_ns // RETRIES_A_PERIOD
        if held.given_back_ns is not None and now_ns > held.given_back_ns + self._invisible_ms * 1_000_000:
            self.ended(name, held)

    def give_back(self, client_id: str, now_ns: int) -> None:
        """Let come again soon what this client holds, for it is gone."""
        for held in self._held.values():
            if held.client_id == client_id:
                held.invisible_ms, held.due_ns, held.given_back_ns = GIVEN_BACK_MS, now_ns, now_ns
