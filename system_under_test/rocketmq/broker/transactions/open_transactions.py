"""Which transactions are open, when their producers are to be asked, and how far the half messages are done with.

A state machine without clock: it is fed the two topics of transactions, each in order: half messages, and which of them
have ended. What it forgets is what has ended. A master that begins feeds it from where progress says, so the two topics
are all that has to survive: a half message before the progress has ended, and whatever says of one behind it that it
has ended lies behind the progress of the other topic.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class OpenTransaction:
    queue_offset: int
    next_check_ns: int
    checks: int = 0
    is_ending: bool = False
    """What ends it is written, and not yet confirmed."""


class OpenTransactions:
    def __init__(self, half_offset: int, op_offset: int) -> None:
        self.half_offset = half_offset
        """The next half message to be fed."""
        self.op_offset = op_offset
        """The next message about ends to be fed."""
        self._open: dict[int, OpenTransaction] = {}
        """In the order of the queue."""
        self._ended_early: dict[int, None] = {}
        """Ended, before the half message was fed."""
        self._ops: deque[tuple[int, tuple[int, ...]]] = deque()
        """Ends that progress has not passed: their offset, and which half messages they are about."""
        self._due: list[tuple[int, int]] = []

    def half(self, queue_offset: int, first_check_ns: int) -> None:
        """The next half message; its producer is to be asked from then on."""
        self.half_offset = queue_offset + 1
        if queue_offset in self._ended_early:
            del self._ended_early[queue_offset]
            return
        self._open[queue_offset] = OpenTransaction(queue_offset, first_check_ns)
        heapq.heappush(self._due, (first_check_ns, queue_offset))

    def ended(self, op_offset: int, queue_offsets: Sequence[int]) -> None:
        """The next message about ends: these half messages have ended."""
        self.op_offset = op_offset + 1
        self._ops.append((op_offset, tuple(queue_offsets)))
        for queue_offset in queue_offsets:
            if self._open.pop(queue_offset, None) is None and queue_offset >= self.half_offset:
                self._ended_early[queue_offset] = None

    def skip_halves_to(self, half_offset: int) -> None:
        """Those before it have expired, before they were fed."""
        if half_offset > self.half_offset:
            self.half_offset = half_offset
            self._ended_early = dict.fromkeys(offset for offset in self._ended_early if offset >= half_offset)

    def expired(self, queue_offset: int) -> None:
        """The half message is no more: nobody can say any more how it ends."""
        self._open.pop(queue_offset, None)

    def skip_ends_to(self, op_offset: int) -> None:
        self.op_offset = max(self.op_offset, op_offset)

    def get(self, queue_offset: int) -> OpenTransaction | None:
        return self._open.get(queue_offset)

    def due(self, now_ns: int, again_ns: int) -> tuple[OpenTransaction, ...]:
        """Those whose producers are to be asked now; each will be again at `again_ns`, if it is still open then."""
        found = []
        while self._due and self._due[0][0] <= now_ns:
            _, queue_offset = heapq.heappop(self._due)
            transaction = self._open.get(queue_offset)
            if transaction is not None:
                transaction.checks += 1
                transaction.next_check_ns = again_ns
                heapq.heappush(self._due, (again_ns, queue_offset))
                found.append(transaction)
        return tuple(found)

    @property
    def next_due_ns(self) -> int | None:
        while self._due and self._due[0][1] not in self._open:
            heapq.heappop(self._due)
        return self._due[0][0] if self._due else None

    def progress(self) -> tuple[int, int]:
        """(half messages, ends): all before have ended, and are about what has ended."""
        half_offset = next(iter(self._open), self.half_offset)
        while self._ops and all(queue_offset < half_offset for queue_offset in self._ops[0][1]):
            self._ops.popleft()
        return half_offset, self._ops[0][0] if self._ops else self.op_offset
