"""What a Raft node keeps on its disk: (term, vote) in an append-only file, the log in segments, a snapshot.

Records of term and vote carry a CRC-32 that continues the one of the record before, as those of the log do
(`segments`).

A snapshot's files lie in one of two directories, their places, and its record says in which. The other one is empty, or
has what came of a snapshot that is still under way. The record is written beside the old one, and `sync` gives it its
name; only then goes what it makes useless: segments of the log, and the files in the place of a snapshot before.

Nothing acknowledged is lost as long as the disk keeps what it fsynced; rot inside the durable part of the log is
taken for a torn tail. A record is never torn, so one that does not fit its checksum is an error.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from system_under_test.raft import snapshot as snapshots
from system_under_test.raft.message import Entry, HardState, MalformedMessage
from system_under_test.raft.segments import SEGMENT_BYTES, Segments
from system_under_test.raft.snapshot import NOTHING, FileGone, Piece, Snapshot
from system_under_test.runtime.host import Disk, File
from system_under_test.runtime.rewrite import write_again
from system_under_test.storage.errors import StorageCorrupt

_VOTE = struct.Struct(">IQH")
_REMEDY = "remove this node from its group, empty its disk, and add it anew"
"""What is to be done with a node whose snapshot is harmed: the others have what it lost."""
_KEPT = struct.Struct(">BI")
"""What stands behind a snapshot's record on the disk: the number of its place, and a CRC-32 of all before."""
_VOTE_FILE_LIMIT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    hard_state: HardState
    snapshot: Snapshot
    base: tuple[int, int]
    """Index and term of the entry before the first one: the snapshot's last one, or one before it."""
    entries: Iterator[Entry]
    """Those behind the base; read as they are taken, before anything is written."""


@dataclass(frozen=True, slots=True)
class _FreshSnapshot:
    """A record that is written beside the one whose name it gets once it is durable."""

    file: File
    path: str
    snapshot: Snapshot
    received: Sequence[File]
    """Files that came for it, or for one that it took the place of, and are not durable yet."""


class RaftStorage:
    """`write` puts bytes into the files, `sync` makes durable what was written before it."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._vote_path = f"{directory}/vote"
        self._snapshot_path = f"{directory}/snapshot"
        self._vote_file: File | None = None
        self._vote_crc = 0
        self._vote_is_dirty = False
        self._log = Segments(disk, f"{directory}/log")
        self._places = (f"{directory}/files-0", f"{directory}/files-1")
        self.place = self._places[0]
        """The directory of the newest snapshot's files, durable or not, and of those that are to belong to the next."""
        self.snapshot_index = 0
        """Of the newest snapshot that is durable."""
        self._durable_place = self.place
        self._fresh_snapshot: _FreshSnapshot | None = None
        self._received: dict[str, File] = {}
        """Files that come, in the other place, by name."""

    async def open(self, *, segment_bytes: int = SEGMENT_BYTES, kept_bytes: int = 0) -> Recovered:
        """Read what is there, cut torn tails, write what is left once more and make it durable. A segment of the log
        that has so many bytes will be followed by the next one; so much of what stands before the end of the snapshot
        is of use, as far as it is there. Raises DiskFull, DiskError, StorageCorrupt."""
        for path in self._disk.list(self._directory):
            if path.endswith(".new"):
                self._disk.remove(path)
        hard_state = await self._open_vote()
        snapshot = await self._open_snapshot()
        self.snapshot_index = snapshot.index
        self.place = self._durable_place = snapshot.place or self.place
        for place in self._places:
            if place != snapshot.place:
                self._empty(place)
        self._log.open(snapshot.index, snapshot.term, segment_bytes)
        assert self._vote_file is not None
        write_again(self._vote_file, 0, self._vote_file.size)
        self._vote_is_dirty = True
        await self.sync()
        base_index = self._log.base_behind_which(kept_bytes, snapshot.index)
        return Recovered(
            hard_state=hard_state,
            snapshot=snapshot,
            base=(base_index, self._log.term_at(base_index)),
            entries=self._log.entries(base_index),
        )

    def write(self, hard_state: HardState | None, entries: Sequence[Entry]) -> None:
        """Entries come in place of all from the first of them on. All of it is visible at once and durable after the
        next `sync`. Raises DiskFull, DiskError."""
        if hard_state is not None:
            self._write_vote(hard_state)
        if entries:
            self._log.append(entries)

    def compact(self, snapshot: Snapshot, base_index: int) -> None:
        """After the next `sync` the snapshot is durable, and the log begins where it likes up to this entry, which is
        the snapshot's last one or before it. Its files lie in its place, where it names none in this one's. Raises
        DiskFull, DiskError."""
        self._write_snapshot(snapshot)
        self._log.begin_behind(base_index)

    def begin_anew(self, snapshot: Snapshot) -> None:
        """The same of a snapshot to which the log does not lead: it is empty now. Raises DiskFull, DiskError."""
        self._write_snapshot(snapshot)
        self._log.begin_anew(snapshot.index, snapshot.term)

    def begin_receiving(self) -> None:
        """The other place is empty then, for the files of a snapshot that come from a leader. Raises DiskError."""
        for file in self._received.values():
            file.close()
        self._received.clear()
        self._empty(self.other_place)

    def receive(self, piece: Piece) -> None:
        """What continues a file that comes. Raises DiskFull, DiskError."""
        file = self._received.get(piece.name)
        if file is None:
            file = self._received[piece.name] = self._disk.open(f"{self.other_place}/{piece.name}")
        file.write_at(piece.offset, piece.data)

    def read_file(self, name: str, offset: int, length: int) -> bytes:
        """So many bytes of a file of a snapshot. Raises FileGone, DiskError."""
        path = f"{self.place}/{name}"
        data = b""
        if self._disk.exists(path):
            file = self._disk.open(path)
            data = file.read_at(offset, length)
            file.close()
        if len(data) < length:
            raise FileGone(f"{path}: expected {length} bytes at {offset}, found {len(data)}")
        return data

    async def sync(self) -> None:
        """Raises DiskError: what was not durable before must then be taken for lost, so the node must die."""
        # What is written while this waits is for the next one: no segment must go before the snapshot that stands for
        # it is durable.
        snapshot, self._fresh_snapshot = self._fresh_snapshot, None
        unsynced = self._log.unsynced()
        await self.sync_vote()
        if snapshot is not None:
            for file in (*snapshot.received, snapshot.file):
                await file.fsync()
                file.close()
            await self._disk.replace(snapshot.path, self._snapshot_path)
            self.snapshot_index = snapshot.snapshot.index
            if snapshot.snapshot.place != self._durable_place:
                self._empty(self._durable_place)
                self._durable_place = snapshot.snapshot.place
        await unsynced.sync()
        unsynced.remove()

    async def sync_vote(self) -> None:
        if self._vote_is_dirty:
            self._vote_is_dirty = False
            assert self._vote_file is not None
            await self._vote_file.fsync()

    def close(self) -> None:
        fresh = self._fresh_snapshot
        unfinished = () if fresh is None else (fresh.file, *fresh.received)
        for file in (self._vote_file, *unfinished, *self._received.values()):
            if file is not None:
                file.close()
        self._log.close()

    # -- what can be asked of the log

    def read(self, first: int, last: int) -> list[Entry]:
        """Entries from the first to the last, which are there: one at least. Raises DiskError."""
        return self._log.read(first, last)

    def log_bytes_behind(self, index: int) -> int:
        """So much the records of the entries after this one take."""
        return self._log.bytes_behind(index)

    def base_behind_which(self, size: int, index: int) -> int:
        """Where the log may begin so that from there up to this entry it has so many bytes, or all there are."""
        return self._log.base_behind_which(size, index)

    # -- term and vote

    async def _open_vote(self) -> HardState:
        file = self._disk.open(self._vote_path)
        data = file.read_at(0, file.size)
        hard_state = HardState()
        at = crc = 0
        while at + _VOTE.size <= len(data):
            stored, term, length = _VOTE.unpack_from(data, at)
            end = at + _VOTE.size + length
            if end > len(data) or zlib.crc32(data[at + 4 : end], crc) != stored:
                break
            vote = data[at + _VOTE.size : end].decode()
            hard_state, at, crc = HardState(term, vote or None), end, stored
        if at > _VOTE_FILE_LIMIT_BYTES:
            file.close()
            fresh = f"{self._vote_path}.new"
            file = self._disk.open(fresh)
            file.truncate(0)
            record, crc = _vote_record(hard_state, 0)
            file.append(record)
            await file.fsync()
            file.close()
            await self._disk.replace(fresh, self._vote_path)
            file = self._disk.open(self._vote_path)
        elif at < file.size:
            file.truncate(at)
        self._vote_file, self._vote_crc = file, crc
        return hard_state

    def _write_vote(self, hard_state: HardState) -> None:
        assert self._vote_file is not None
        record, self._vote_crc = _vote_record(hard_state, self._vote_crc)
        self._vote_file.append(record)
        self._vote_is_dirty = True

    # -- the snapshot

    async def _open_snapshot(self) -> Snapshot:
        if not self._disk.exists(self._snapshot_path):
            return NOTHING
        file = self._disk.open(self._snapshot_path)
        try:
            snapshot = self._decode_kept(file.read_at(0, file.size))
        except MalformedMessage as error:
            raise StorageCorrupt(f"{self._snapshot_path} is harmed: {error}; {_REMEDY}") from error
        for named in snapshot.files:
            self._check_size(f"{snapshot.place}/{named.name}", named.size)
        write_again(file, 0, file.size)
        await file.fsync()
        file.close()
        return snapshot

    def _check_size(self, path: str, size: int) -> None:
        """Raises StorageCorrupt for a file that is not there, or has less."""
        if not self._disk.exists(path):
            raise StorageCorrupt(f"{path} is harmed: expected at least {size} bytes, found no such file; {_REMEDY}")
        file = self._disk.open(path)
        if file.size < size:
            raise StorageCorrupt(f"{path} is harmed: expected at least {size} bytes, found {file.size}; {_REMEDY}")
        file.close()

    def _decode_kept(self, kept: bytes) -> Snapshot:
        """Raises MalformedMessage."""
        if len(kept) < _KEPT.size:
            raise MalformedMessage(f"{len(kept)} bytes are no snapshot")
        number, crc = _KEPT.unpack(kept[-_KEPT.size :])
        if zlib.crc32(kept[:-4]) != crc or number >= len(self._places):
            raise MalformedMessage(f"{len(kept)} bytes are no snapshot: the checksum does not fit")
        return replace(snapshots.decode(kept[: -_KEPT.size]), place=self._places[number])

    def _write_snapshot(self, snapshot: Snapshot) -> None:
        snapshot = replace(snapshot, place=snapshot.place or self.place)
        received: Sequence[File] = ()
        if snapshot.place != self.place:
            received, self._received = [*self._received.values()], {}
            self.place = snapshot.place
        if self._fresh_snapshot is not None:
            received = (*self._fresh_snapshot.received, *received)
            self._fresh_snapshot.file.close()
            self._disk.remove(self._fresh_snapshot.path)
        path = f"{self._snapshot_path}.{snapshot.index}.new"
        file = self._disk.open(path)
        file.append(kept_form(snapshot, self._places.index(snapshot.place)))
        self._fresh_snapshot = _FreshSnapshot(file, path, snapshot, received)

    @property
    def other_place(self) -> str:
        """Where the files of a snapshot go that comes from a leader."""
        return self._places[self.place == self._places[0]]

    def _empty(self, place: str) -> None:
        for path in self._disk.list(place):
            self._disk.remove(path)


def kept_form(snapshot: Snapshot, place: int) -> bytes:
    """A snapshot as its file holds it: the record, the number of its place, and a CRC-32 of both."""
    kept = snapshots.encode(snapshot) + bytes([place])
    return kept + zlib.crc32(kept).to_bytes(4, "big")


def _vote_record(hard_state: HardState, crc: int) -> tuple[bytes, int]:
    vote = (hard_state.vote or "").encode()
    body = _VOTE.pack(0, hard_state.term, len(vote))[4:] + vote
    crc = zlib.crc32(body, crc)
    return crc.to_bytes(4, "big") + body, crc
