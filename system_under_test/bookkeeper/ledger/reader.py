"""Who reads a ledger at its bookies: one entry after the other, and up to where there is anything to read."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.bookkeeper.entry import Entry
from system_under_test.bookkeeper.ledger.event import ReadAnswered, ReadEntry, Reply
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata
from system_under_test.bookkeeper.ledger.placement import bookies_of
from system_under_test.bookkeeper.ledger.tally import Presence
from system_under_test.bookkeeper.ledger.verification import Verification


@dataclass(frozen=True, slots=True)
class ReadEnded:
    """What came of it: FOUND with the entry, ABSENT, or UNDECIDED."""

    presence: Presence
    entry: Entry | None = None
    is_harmed: bool = False
    """UNDECIDED only for harm: all answered, and nobody has it whole."""


class EntryRead:
    """Asks one bookie of the write set after the other, until one has the entry. It is absent where none has it."""

    def __init__(self, metadata: LedgerMetadata, entry: int, *, verification: Verification) -> None:
        self._entry = entry
        self._verification = verification
        self._left = list(reversed(bookies_of(metadata, entry)))
        self._may_be_there = False
        self._is_harmed = False

    def begin(self) -> ReadEntry:
        return ReadEntry(self._left.pop(), self._entry, fences=False)

    def step(self, answer: ReadAnswered) -> ReadEntry | ReadEnded:
        reply = self._verification.reply(answer)
        if reply is Reply.OK:
            return ReadEnded(Presence.FOUND, self._verification.entry(answer))
        self._is_harmed |= reply is Reply.CORRUPT
        self._may_be_there |= not reply.is_no and reply not in (Reply.GONE, Reply.CORRUPT)
        if self._left:
            return self.begin()
        if self._may_be_there:
            return ReadEnded(Presence.UNDECIDED)
        return ReadEnded(Presence.UNDECIDED, is_harmed=True) if self._is_harmed else ReadEnded(Presence.ABSENT)
