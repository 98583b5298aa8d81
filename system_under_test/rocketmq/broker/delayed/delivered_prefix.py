"""Up to where a queue has been delivered without a gap, while its messages are delivered in any order. Pure."""

from __future__ import annotations


class DeliveredPrefix:
    """All before `end` is delivered, and all of their copies lie before `copies_end` of the log."""

    __slots__ = ("_beyond", "copies_end", "end")

    def __init__(self, begin: int) -> None:
        self.end = begin
        self.copies_end = 0
        self._beyond: dict[int, int] = {}

    def delivered(self, offset: int, copy_end: int) -> bool:
        """The message at `offset` is; whether `end` has moved."""
        self._beyond[offset] = copy_end
        begin = self.end
        while self.end in self._beyond:
            self.copies_end = max(self.copies_end, self._beyond.pop(self.end))
            self.end += 1
        return self.end > begin

    def begins_at(self, offset: int) -> None:
        """There is nothing before it any more."""
        self.end = max(self.end, offset)
        self._beyond = {position: end for position, end in self._beyond.items() if position >= self.end}
