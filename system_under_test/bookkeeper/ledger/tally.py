"""What bookies' answers come to, of which some may be missing.

An error is neither yes nor no. A bookie that has lost what it had, or may have, says nothing of whether an entry was
acknowledged: it counts as a no only where nobody who may still have the entry has failed to answer.
"""

from __future__ import annotations

from enum import Enum, auto

from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.bookkeeper.ledger.event import Reply
from system_under_test.bookkeeper.ledger.metadata import Fragment, LedgerMetadata
from system_under_test.bookkeeper.ledger.placement import windows


class Presence(Enum):
    FOUND = auto()
    ABSENT = auto()
    """It cannot have been acknowledged, or all who had it are gone."""
    OPEN = auto()
    """More answers may come."""
    UNDECIDED = auto()
    """All have answered, or will not."""


class EntryTally:
    """Whether an entry is there, from what the bookies of its write set answer."""

    def __init__(self, write_set: tuple[str, ...], metadata: LedgerMetadata) -> None:
        self._write_set = write_set
        self._explicit_noes = metadata.quorums.explicit_noes
        self._replies: dict[str, Reply] = {}

    def take(self, bookie: str, reply: Reply) -> None:
        self._replies[bookie] = reply

    @property
    def presence(self) -> Presence:
        replies = list(self._replies.values())
        if Reply.OK in replies:
            return Presence.FOUND
        if self.is_absent(replies):
            return Presence.ABSENT
        return Presence.OPEN if len(replies) < len(self._write_set) else Presence.UNDECIDED

    @property
    def may_be_found(self) -> bool:
        """By those who have not said what they have."""
        return Reply.SILENT in self._replies.values() or Reply.UNKNOWN in self._replies.values()

    def is_absent(self, replies: list[Reply]) -> bool:
        """None of which is OK."""
        if sum(reply.is_no for reply in replies) >= self._explicit_noes:
            return True
        return len(replies) == len(self._write_set) and all(reply.is_no or reply is Reply.GONE for reply in replies)


class LacTally:
    """Up to where entries were acknowledged, at least, and whether all that matter have said so. Of bookies that were
    asked to fence: whether none can be acknowledged any more."""

    def __init__(self, metadata: LedgerMetadata, fragment: Fragment) -> None:
        self._ack = metadata.quorums.ack
        self._windows = windows(metadata, fragment)
        self._unknown = dict.fromkeys(fragment.ensemble)
        """Of whom it is not known what they have heard, and whether they are fenced."""
        self._waited_for = dict.fromkeys(fragment.ensemble)
        self.lac = NOTHING
        self.served: dict[str, None] = {}
        """Who answered, and is the one that was meant."""

    def take(self, bookie: str, reply: Reply, lac: int) -> None:
        self._waited_for.pop(bookie, None)
        if reply is Reply.OK or reply.is_no or reply is Reply.GONE:
            self._unknown.pop(bookie, None)
        if reply is Reply.OK:
            self.served[bookie] = None
            self.lac = max(self.lac, lac)

    @property
    def is_covered(self) -> bool:
        """In no write set are there Qa bookies that may have acknowledged an entry, or may still do, by themselves."""
        return all(sum(bookie in self._unknown for bookie in window) < self._ack for window in self._windows)

    @property
    def is_over(self) -> bool:
        return not self._waited_for
