"""The files of a log since it last began anew: data files of entries, and the index that says where each one stands.

Data files hold entries and blanks one behind the other, index files say where each entry stands. Recovery claims: what
it leaves is the longest sequence of whole, unharmed entries that follow each other, from the first one on; as far as
the checkpoint says that they are committed, they are durable, and only looked at where they stand in the last three
files. What it leaves is written once more, and durable with the next `sync`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice, pairwise

from system_under_test.dledger.entry import NOTHING, Entry, first_of
from system_under_test.dledger.index_files import IndexFiles
from system_under_test.dledger.record import (
    ENTRIES,
    INDEX_BYTES,
    IndexRecord,
    decode_entry,
    encode_blank,
    encode_entry,
    encode_index_record,
)
from system_under_test.dledger.vote_file import Beginning, Checkpoint
from system_under_test.runtime.host import Disk
from system_under_test.storage.commit_log import CommitLog
from system_under_test.storage.errors import RecordInvalid, StorageCorrupt
from system_under_test.storage.record_format import BLANK_BYTES

_NEWEST_BYTES = 1 << 18
"""The newest entries are kept in memory until they have more bytes than this."""
_CHECKED_FILES = 3
"""So many data files at the end are always checked."""
_PIECE_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSizes:
    """The same on all members of a group."""

    data_bytes: int = 1 << 30
    index_bytes: int = 5 * 1024 * 1024 * INDEX_BYTES
    """A multiple of 32."""


@dataclass(frozen=True, slots=True)
class Tail:
    """What the next entry continues: the last one's index, term and chain's CRC, and the position behind it."""

    index: int
    term: int
    position: int
    chain: int


def _behind(entry: Entry, chain: int) -> Tail:
    return Tail(entry.index, entry.term, entry.position + entry.size, chain)


class EntryFiles:
    """`recover` comes first. Of all that reads or writes: raises DiskError, StorageFailed."""

    def __init__(self, disk: Disk, directory: str, sizes: FileSizes, beginning: Beginning) -> None:
        self._disk = disk
        self._directories = (f"{directory}/{beginning.times}/data", f"{directory}/{beginning.times}/index")
        self._sizes = sizes
        self.beginning = beginning
        self.log = CommitLog(disk, self._directories[0], sizes.data_bytes, replace(ENTRIES, check=self._check_next))
        """Entries and blanks by position; only these files write it."""
        self._index = IndexFiles(disk, self._directories[1], sizes.index_bytes)
        self.begin = NOTHING
        self.tail = Tail(NOTHING, NOTHING, beginning.position, beginning.chain)
        self.durable_end = NOTHING
        self.synced_end = NOTHING
        """The last index of what the newest `sync` made durable, or makes durable as it goes on."""
        self._newest: list[Entry] = []
        """The last ones, those from `_first_newest` on."""
        self._first_newest = self._newest_bytes = 0
        self._unwritten = bytearray()
        """Records of the index, of entries up to the tail, that recovery is going to write."""

    # reading

    def entry(self, index: int) -> Entry | None:
        if not self._has(index):
            return None
        at = index - self._first_newest
        return self._newest[at] if at >= 0 else self._stored(index)[0]

    def entries(self, first: int, last: int, most_bytes: int) -> Sequence[Entry]:
        """As far as the data file of the first one reaches."""
        at = first - self._first_newest
        if at >= 0:
            return first_of(islice(self._newest, at, last + 1 - self._first_newest), most_bytes)
        found: list[Entry] = []
        try:
            record = self._index.read(first)
            data, at = self.log.read(record.position, max(most_bytes, record.size)), 0
            for index in range(first, last + 1):
                size = ENTRIES.size(data, at)
                if found and (size <= 0 or at + size > len(data)):
                    break
                entry, _ = decode_entry(data, at)
                if entry.index != index:
                    raise RecordInvalid(f"entry {entry.index} stands in its place")
                found.append(entry)
                at += size
        except RecordInvalid as error:
            raise self._harmed(first + len(found), error) from error
        return found

    def term(self, index: int) -> int:
        if not self._has(index):
            return NOTHING
        at = index - self._first_newest
        if at >= 0:
            return self._newest[at].term
        try:
            return self._index.read(index).term
        except RecordInvalid as error:
            raise self._harmed(index, error) from error

    def _has(self, index: int) -> bool:
        return self.begin != NOTHING and self.begin <= index <= self.tail.index

    def _stored(self, index: int) -> tuple[Entry, int]:
        try:
            return self._indexed(index)
        except RecordInvalid as error:
            raise self._harmed(index, error) from error

    def position_behind(self, index: int) -> int:
        """Where the entry at this index ends; where the log begins, if that is before the first one."""
        entry = self.entry(index)
        return self.beginning.position if entry is None else entry.position + entry.size

    def _harmed(self, index: int, error: RecordInvalid) -> StorageCorrupt:
        return StorageCorrupt(
            f"entry {index}: {error}: remove the files of {self._directories[1]} and start this member again; if that "
            "does not help, wipe it and let it join empty"
        )

    def _indexed(self, index: int) -> tuple[Entry, int]:
        """The entry that the index leads to, and its chain's CRC. Raises RecordInvalid."""
        record = self._index.read(index)
        entry, chain = decode_entry(self.log.read(record.position, record.size))
        if record != IndexRecord(entry.position, entry.size, entry.index, entry.term):
            raise RecordInvalid("the index leads to another entry")
        return entry, chain

    # writing

    def fits(self, size: int) -> bool:
        return self.log.fits(size)

    def next_position(self, end: int, size: int) -> int:
        """Where an entry of `size` bytes is to stand in a log that ends at this position."""
        room = self._sizes.data_bytes - end % self._sizes.data_bytes
        return end + room if size + BLANK_BYTES > room else end

    def append(self, entries: Sequence[Entry]) -> bool:
        """False, and nothing was written, where they do not follow. Raises DiskFull, and nothing was changed."""
        tail = self.tail
        data, records = [], []
        for entry in entries:
            if not self._follows(tail, entry):
                return False
            if entry.position > tail.position:
                data.append(encode_blank(entry.position - tail.position))
            encoded, chain = encode_entry(entry, tail.chain)
            data.append(encoded)
            records.append(encode_index_record(entry))
            tail = _behind(entry, chain)
        if not entries:
            return True
        # A record of the index means nothing without its entry; the other way round an entry could come to stay that
        # was refused.
        self._index.write(entries[0].index, b"".join(records))
        self.log.append_all(b"".join(data))
        if self.begin == NOTHING:
            self.begin = entries[0].index
        if self._first_newest + len(self._newest) != entries[0].index or self._newest_bytes > _NEWEST_BYTES:
            self._forget_newest(entries[0].index)
        self._newest += entries
        self._newest_bytes += tail.position - self.tail.position
        self.tail = tail
        return True

    def _forget_newest(self, first: int) -> None:
        self._newest.clear()
        self._first_newest, self._newest_bytes = first, 0

    def end_with(self, entry: Entry) -> bool:
        """False, and nothing was changed, where the log does not have it."""
        if not self._has(entry.index):
            return False
        stored, chain = self._stored(entry.index)
        if stored != entry:
            return False
        self._forget_newest(entry.index + 1)
        self.log.cut(entry.position + entry.size)
        self.tail = _behind(entry, chain)
        self.durable_end = min(self.durable_end, entry.index)
        self.synced_end = min(self.synced_end, entry.index)
        return True

    def _follows(self, tail: Tail, entry: Entry) -> bool:
        return (
            entry.index == tail.index + 1
            and entry.term >= tail.term
            and self.log.fits(entry.size)
            and entry.position == self.next_position(tail.position, entry.size)
        )

    def full_files_before(self, index: int) -> tuple[int, ...]:
        """Where each data file starts that is full of entries before this one."""
        if not self._has(index):
            return ()
        end = self._stored(index)[0].position
        starts = (start for start in self.log.segment_starts() if start >= self.beginning.position)
        return tuple(start for start, following in pairwise(starts) if following <= end)

    def begin_at(self, start: int) -> None:
        """Let the log begin with the data file that starts there; those before are removed by `remove_expired`."""
        first, _ = self._read_at(start)
        _, chain = self._stored(first.index - 1)
        self.begin = first.index
        self.beginning = Beginning(self.beginning.times, start, chain)

    def remove_expired(self) -> None:
        self.log.delete_segments_before(self.beginning.position)
        if self.begin != NOTHING:
            self._index.keep_only(self.begin, self.tail.index + 1)

    def remove(self) -> None:
        """All files."""
        self.log.drop_segments()
        self._index.keep_only(0, 0)
        for path in self._disk.list(self._directories[0]):
            self._disk.remove(path)

    # durability

    async def sync(self) -> None:
        """Make everything written before the call durable; `vouch` then says so."""
        self.synced_end = self.tail.index
        await self.log.flush()
        await self._index.sync()

    def vouch(self) -> None:
        self.durable_end = self.synced_end

    # recovery

    def start_empty(self, first: int) -> None:
        """To go on with this index."""
        self.remove()
        self.log.load((0, self.beginning.position))
        self.tail = replace(self.tail, index=first - 1)

    async def recover(self, checkpoint: Checkpoint) -> None:
        """Raises StorageCorrupt where the first file is gone, DiskFull where there is no room for the index."""
        self.log.load((0, self.beginning.position))
        if checkpoint.end != NOTHING and not self.log.segment_starts():
            raise StorageCorrupt(
                f"{self._directories[0]}/{self.beginning.position:020d}, with which the log begins, is gone: bring the "
                "file back, or wipe this member and let it join empty"
            )
        start = self.beginning.position
        with suppress(RecordInvalid):
            start = self._trust(checkpoint.committed)
        await self.log.recover(start)
        self._write_index()
        if self.log.max_offset > self.tail.position:
            self.log.cut(self.tail.position)
        self._index.keep_only(max(0, self.begin), self.tail.index + 1)
        self._forget_newest(self.tail.index + 1)

    def _trust(self, committed: int) -> int:
        """The start of the first data file that is to be checked; the log up to there is taken over. Raises
        RecordInvalid where all are to be checked."""
        begin = self.beginning.position
        last_committed, _ = self._indexed(committed)
        start = min(last_committed.position, *self.log.segment_starts()[-_CHECKED_FILES:][:1])
        start -= start % self._sizes.data_bytes
        if start > begin:
            first, _ = self._read_at(begin, self.beginning.chain)
            before, chain = self._indexed(self._read_at(start)[0].index - 1)
            tail = _behind(before, chain)
            in_file_before = start - self._sizes.data_bytes <= before.position < start
            if not in_file_before or not self._index.has_all(first.index, tail.index + 1):
                raise RecordInvalid("the index does not lead to the files that are to be checked")
            self.begin, self.tail = first.index, tail
        return start

    def _read_at(self, position: int, chain_before: int | None = None) -> tuple[Entry, int]:
        size = ENTRIES.size(self.log.read(position, ENTRIES.head_bytes), 0)
        return decode_entry(self.log.read(position, max(0, size)), 0, chain_before)

    def _check_next(self, buffer: bytes, at: int, position: int) -> int:
        entry, chain = decode_entry(buffer, at, self.tail.chain)
        expected = self.tail if self.begin != NOTHING else replace(self.tail, index=entry.index - 1)
        if entry.position != position or not self._follows(expected, entry):
            raise RecordInvalid(f"entry {entry.index} does not belong at {position}")
        if self.begin == NOTHING:
            self.begin = entry.index
        self.tail = _behind(entry, chain)
        self._unwritten += encode_index_record(entry)
        if len(self._unwritten) >= _PIECE_BYTES:
            self._write_index()
        return entry.size

    def _write_index(self) -> None:
        self._index.write(self.tail.index + 1 - len(self._unwritten) // INDEX_BYTES, bytes(self._unwritten))
        self._unwritten.clear()
