"""What a reader believes: an entry whose checksum fits, and which is the one that was asked for."""

from __future__ import annotations

from system_under_test.bookkeeper.entry import Digest, Entry, EntryCorrupt, decode_entry, encode_entry
from system_under_test.bookkeeper.ledger.event import ReadAnswered, Reply


class Verification:
    def __init__(self, ledger: int, digest: Digest) -> None:
        self._ledger = ledger
        self._digest = digest

    def seal(self, entry: int, lac: int, length: int, payload: bytes) -> bytes:
        """As bookies keep it."""
        return encode_entry(Entry(self._ledger, entry, lac, length, payload), self._digest)

    def reply(self, answer: ReadAnswered) -> Reply:
        """What the answer is worth. Harm is no absence: another bookie may have the entry."""
        if answer.reply is not Reply.OK:
            return answer.reply
        return Reply.CORRUPT if self.entry(answer) is None else Reply.OK

    def entry(self, answer: ReadAnswered) -> Entry | None:
        """None where it is harmed, or another one."""
        try:
            return decode_entry(answer.data, self._digest, self._ledger, answer.entry)
        except EntryCorrupt:
            return None
