"""A DLedger group's log as the log of a broker's store.

Each entry's body is a message, or the messages of a batch; messages so stand 48 bytes behind their entry's position, on
all members alike. What a leader writes when its term begins has no body, and is no message.
"""

from __future__ import annotations

from collections.abc import Iterator

from system_under_test.dledger.driver import GroupMember
from system_under_test.dledger.entry import HEAD_BYTES
from system_under_test.dledger.message import MAX_BODY_BYTES, Code
from system_under_test.dledger.record import ENTRIES
from system_under_test.dledger.store import FileStore
from system_under_test.runtime.host import DiskFull
from system_under_test.storage.errors import MessageTooLarge, StorageCorrupt
from system_under_test.storage.message import MESSAGES


class ReplicatedLog:
    """`MessageLog` whose messages the group's leader alone appends."""

    def __init__(self, entries: FileStore, member: GroupMember) -> None:
        self._entries = entries
        self._member = member
        self.beginnings = 0
        """Each start counts as another beginning of the log: it may have been cut since a checkpoint was written."""

    @property
    def failed(self) -> bool:
        return self._entries.data.failed

    @property
    def min_offset(self) -> int:
        return self._entries.data.min_offset

    @property
    def max_offset(self) -> int:
        return self._entries.end_position

    @property
    def last_index(self) -> int:
        return self._entries.end

    @property
    def is_all_committed(self) -> bool:
        return self._member.committed == self._entries.end

    @property
    def flushed_offset(self) -> int:
        return self._entries.data.flushed_offset

    @property
    def start_of_last_file(self) -> int:
        return self._entries.data.start_of_last_file

    def segment_starts(self) -> tuple[int, ...]:
        return self._entries.data.segment_starts()

    def offset_behind(self, index: int) -> int:
        """Where the messages of this entry end, or where the log begins."""
        return self._entries.position_behind(index)

    # durability

    def load(self, checkpoint: tuple[int, int] | None) -> None:
        self.beginnings = 0 if checkpoint is None else checkpoint[0] + 1

    async def recover(self, checked_offset: int) -> None:
        await self._member.open()

    async def flush(self) -> int:
        await self._entries.sync()
        return self.flushed_offset

    # writing

    def fits(self, size: int) -> bool:
        return size <= MAX_BODY_BYTES and self._entries.data.fits(HEAD_BYTES + size)

    def reserve(self, size: int) -> int:
        if not self.fits(size):
            raise MessageTooLarge(f"{size} bytes and the entry around them do not fit into a file")
        return self._entries.next_position(HEAD_BYTES + size) + HEAD_BYTES

    def append(self, record: bytes) -> int:
        appended = self._member.append((record,))
        if appended.done() and appended.result().code is Code.DISK_FULL:
            raise DiskFull("no room for an entry")
        # Who is not the leader, or hands over, is no master, and of entries that wait masters count themselves.
        assert not appended.done() or appended.result().code is Code.SUCCESS
        return self.max_offset

    # reading

    def read(self, offset: int, length: int) -> bytes:
        return self._entries.data.read(offset, length)

    def goes_on(self, offset: int) -> bool:
        return MESSAGES.goes_on(self.read(offset, MESSAGES.head_bytes), 0)

    def records(self, start: int, end: int) -> Iterator[tuple[bytes, int]]:
        for data, entry in self._entries.data.records(start, end):
            at, behind = entry + HEAD_BYTES, entry + ENTRIES.size(data, entry)
            while at < behind:
                size = MESSAGES.size(data, at)
                if size <= 0:
                    raise StorageCorrupt(f"what the entry before {end} holds at its byte {at - entry} is no message")
                yield data, at
                at += size
