"""Which messages of a queue are held by consumers, and until when: in the memory of the leader alone.

A message is given out to one consumer, which has the visibility time to acknowledge it; then it is given out again. The
time is the same for all, so they expire in the order in which they were given out. A new leader knows of no consumer
that holds anything: it gives out all that is not acknowledged.
"""

from __future__ import annotations

from collections import OrderedDict

from system_under_test.cmq.bitmap import Bitmap


class Deliveries:
    """Of one queue. Memory grows with what is held, and with nothing else."""

    def __init__(self, visibility_ns: int) -> None:
        self._visibility_ns = visibility_ns
        self._held: OrderedDict[int, int] = OrderedDict()
        """Number -> when it may be given out again, in the order of these times."""
        self._cursor = 0
        """No message from here on was given out; before it, none is left that is neither held nor acknowledged."""

    def take(self, bitmap: Bitmap, end: int, most: int, now_ns: int) -> list[int]:
        """Give out up to `most` messages that nobody holds and that are not acknowledged: first those whose time is up,
        then those before `end`, the queue's next number, that were not given out yet, ascending."""
        taken: list[int] = []
        while self._held and len(taken) < most and next(iter(self._held.values())) <= now_ns:
            number, _ = self._held.popitem(last=False)
            if not bitmap.is_set(number):
                taken.append(number)
        while len(taken) < most:
            number = self._cursor = bitmap.next_unset(self._cursor)
            if number >= end:
                break
            taken.append(number)
            self._cursor += 1
        self._held.update(dict.fromkeys(taken, now_ns + self._visibility_ns))
        return taken

    def acknowledged(self, number: int) -> None:
        self._held.pop(number, None)

    @property
    def next_expiry_ns(self) -> int | None:
        """When the first of what is held may be given out again; None where nothing is held."""
        return next(iter(self._held.values()), None)
