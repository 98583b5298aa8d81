"""What a Raft node keeps on its disk: (term, vote) in one append-only file, the log in another, a snapshot in a third.

Every record carries a CRC-32 that continues the one of the record before it, so that recovery keeps
exactly a prefix of what was written: it stops at the first record that does not fit, which after a loss
of power is the torn or missing tail. The chain matters for the log, which is cut and overwritten: without
it an old entry could be read behind a new one that never preceded it.

The files of snapshots lie in one of two directories, their places, and the snapshot's record says in which. The other
one is empty, or has what came of a snapshot that is still under way.

A snapshot comes with a new log that begins behind it. Both are written beside the old ones, and `sync` gives them
their names, the snapshot first: in between, the old log goes with the new snapshot, for it only begins too early.

Nothing acknowledged is lost as long as the disk keeps what it fsynced; rot inside the durable part of the log is
taken for a torn tail. A snapshot is never torn, so one that does not fit its checksum is an error.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from system_under_test.raft import snapshot as snapshots
from system_under_test.raft.message import Entry, HardState, Kind, MalformedMessage
from system_under_test.raft.snapshot import NOTHING, Snapshot
from system_under_test.runtime.host import Disk, DiskError, File
from system_under_test.runtime.rewrite import write_again

_VOTE = struct.Struct(">IQH")
_ENTRY = struct.Struct(">IIQQB")
_KEPT = struct.Struct(">BI")
"""What stands behind a snapshot's record on the disk: the number of its place, and a CRC-32 of all before."""
_READ_BYTES = 1024 * 1024
_VOTE_FILE_LIMIT_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    hard_state: HardState
    snapshot: Snapshot
    entries: tuple[Entry, ...]
    """Those behind the snapshot."""


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A file that is written beside the one whose place it takes once it is durable."""

    file: File
    path: str


@dataclass(frozen=True, slots=True)
class _FreshSnapshot(_Fresh):
    snapshot: Snapshot


class RaftStorage:
    """`write` puts bytes into the files, `sync` makes durable what was written before it."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._vote_path = f"{directory}/vote"
        self._snapshot_path = f"{directory}/snapshot"
        self._log_path = f"{directory}/log"
        self._vote_file: File | None = None
        self._log_file: File | None = None
        self._vote_crc = 0
        self._base = 0
        """Index of the entry before the first one of the log."""
        self._ends: list[int] = []
        """Of each entry's record, by index - base - 1."""
        self._crcs: list[int] = []
        self._vote_is_dirty = False
        self._log_is_dirty = False
        self._places = (f"{directory}/files-0", f"{directory}/files-1")
        self.place = self._places[0]
        """The directory of the newest snapshot's files, durable or not, and of those that are to belong to the next."""
        self.snapshot_index = 0
        """Of the newest snapshot that is durable."""
        self._durable_place = self.place
        self._fresh_snapshot: _FreshSnapshot | None = None
        self._fresh_log: _Fresh | None = None
        """The log that is written to, as long as it does not have its name yet."""
        self._retired: list[File] = []
        """Logs that are written to no more, and one of which a `sync` may be busy with."""

    async def open(self) -> Recovered:
        """Read what is there, cut torn tails, write what is left once more and make it durable. Raises DiskError."""
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
        entries = self._open_log()
        # A killed process leaves bytes that are readable but not yet durable; a process that reads them will
        # acknowledge them, and a later loss of power must not take them back.
        for file in (self._vote_file, self._log_file):
            assert file is not None
            write_again(file, 0, file.size)
        self._vote_is_dirty = self._log_is_dirty = True
        if snapshot.index != self._base:
            entries = _behind(snapshot, self._base, entries)
            self._begin_log(snapshot.index, entries)
        await self.sync()
        return Recovered(hard_state=hard_state, snapshot=snapshot, entries=tuple(entries))

    def write(self, hard_state: HardState | None, entries: Sequence[Entry], snapshot: Snapshot | None = None) -> None:
        """All of it is visible at once and durable after the next `sync`. With a snapshot, `entries` are the whole log
        behind it; its files lie in its place, where it names none in this one's. Raises DiskFull, DiskError."""
        if hard_state is not None:
            self._write_vote(hard_state)
        if snapshot is not None:
            self._write_snapshot(snapshot)
            self._begin_log(snapshot.index, entries)
        elif entries:
            self._write_entries(entries)

    async def sync(self) -> None:
        """Raises DiskError: what was not durable before must then be taken for lost, so the node must die."""
        # What is written while this waits is for the next one: a log must not get its name before its snapshot.
        snapshot, self._fresh_snapshot = self._fresh_snapshot, None
        log, self._fresh_log = self._fresh_log, None
        log_file, is_dirty = self._log_file, self._log_is_dirty
        self._log_is_dirty = False
        retired, self._retired = self._retired, []
        assert log_file is not None
        await self.sync_vote()
        if snapshot is not None:
            await snapshot.file.fsync()
            snapshot.file.close()
            await self._disk.replace(snapshot.path, self._snapshot_path)
            self.snapshot_index = snapshot.snapshot.index
            if snapshot.snapshot.place != self._durable_place:
                self._empty(self._durable_place)
                self._durable_place = snapshot.snapshot.place
        if is_dirty:
            await log_file.fsync()
        if log is not None:
            await self._disk.replace(log.path, self._log_path)
        for file in retired:
            file.close()

    async def sync_vote(self) -> None:
        if self._vote_is_dirty:
            self._vote_is_dirty = False
            assert self._vote_file is not None
            await self._vote_file.fsync()

    def close(self) -> None:
        fresh = () if self._fresh_snapshot is None else (self._fresh_snapshot.file,)
        for file in (self._vote_file, self._log_file, *fresh, *self._retired):
            if file is not None:
                file.close()

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
            remedy = "remove this node from its group, empty its disk, and add it anew"
            raise DiskError(f"{self._snapshot_path} is harmed: {error}; {remedy}") from error
        write_again(file, 0, file.size)
        await file.fsync()
        file.close()
        return snapshot

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
        self.place = snapshot.place
        path = f"{self._snapshot_path}.{snapshot.index}.new"
        file = self._disk.open(path)
        file.append(kept_form(snapshot, self._places.index(snapshot.place)))
        if self._fresh_snapshot is not None:
            self._fresh_snapshot.file.close()
            self._disk.remove(self._fresh_snapshot.path)
        self._fresh_snapshot = _FreshSnapshot(file, path, snapshot)

    @property
    def other_place(self) -> str:
        """Where the files of a snapshot go that comes from a leader."""
        return self._places[self.place == self._places[0]]

    def _empty(self, place: str) -> None:
        for path in self._disk.list(place):
            self._disk.remove(path)

    def _begin_log(self, base: int, entries: Sequence[Entry]) -> None:
        """What was durable in the log until now stays so until `sync`."""
        path = f"{self._log_path}.{base}.new"
        assert self._log_file is not None
        self._retired.append(self._log_file)
        if self._fresh_log is not None:
            self._disk.remove(self._fresh_log.path)
        self._log_file = self._disk.open(path)
        self._fresh_log = _Fresh(self._log_file, path)
        self._base = base
        self._ends, self._crcs = [], []
        self._log_is_dirty = True
        if entries:
            self._write_entries(entries)

    # -- the log

    def log_bytes_behind(self, index: int) -> int:
        """So much the records of the entries after this one take."""
        at = index - self._base
        return (self._ends[-1] if self._ends else 0) - (self._ends[at - 1] if at else 0)

    def _open_log(self) -> list[Entry]:
        file = self._log_file = self._disk.open(self._log_path)
        entries: list[Entry] = []
        at = crc = 0
        size = file.size
        buffer, start = b"", 0
        while at + _ENTRY.size <= size:
            if at + _ENTRY.size > start + len(buffer):
                buffer, start = file.read_at(at, _READ_BYTES), at
            stored, length, index, term, kind = _ENTRY.unpack_from(buffer, at - start)
            end = at + _ENTRY.size + length
            if end > size or (entries and index != entries[-1].index + 1):
                break
            if end > start + len(buffer):
                buffer, start = file.read_at(at, max(_READ_BYTES, end - at)), at
            record = buffer[at - start : end - start]
            if zlib.crc32(record[4:], crc) != stored:
                break
            entries.append(Entry(index, term, record[_ENTRY.size :], Kind(kind)))
            self._ends.append(end)
            self._crcs.append(stored)
            at, crc = end, stored
        if at < size:
            file.truncate(at)
        # A log that begins behind a snapshot says so only by its first entry.
        self._base = entries[0].index - 1 if entries else 0
        return entries

    def _write_entries(self, entries: Sequence[Entry]) -> None:
        file = self._log_file
        assert file is not None
        keep = entries[0].index - 1 - self._base
        assert 0 <= keep <= len(self._ends), "a gap in the log"
        if keep < len(self._ends):
            del self._ends[keep:]
            del self._crcs[keep:]
            file.truncate(self._ends[-1] if keep else 0)
        at = self._ends[-1] if keep else 0
        crc = self._crcs[-1] if keep else 0
        parts = []
        for entry in entries:
            body = _ENTRY.pack(0, len(entry.data), entry.index, entry.term, entry.kind)[4:] + entry.data
            crc = zlib.crc32(body, crc)
            parts.append(crc.to_bytes(4, "big"))
            parts.append(body)
            at += 4 + len(body)
            self._ends.append(at)
            self._crcs.append(crc)
        file.append(b"".join(parts))
        self._log_is_dirty = True


def _behind(snapshot: Snapshot, base: int, entries: list[Entry]) -> list[Entry]:
    """What of a log that begins after `base` follows the snapshot. Raises DiskError if something between is gone."""
    if not entries:
        return entries
    if base > snapshot.index:
        raise DiskError(f"the log begins after {base}, and the snapshot ends at {snapshot.index}")
    at = snapshot.index - base
    if at > len(entries) or entries[at - 1].term != snapshot.term:
        return []
    return entries[at:]


def kept_form(snapshot: Snapshot, place: int) -> bytes:
    """A snapshot as its file holds it: the record, the number of its place, and a CRC-32 of both."""
    kept = snapshots.encode(snapshot) + bytes([place])
    return kept + zlib.crc32(kept).to_bytes(4, "big")


def _vote_record(hard_state: HardState, crc: int) -> tuple[bytes, int]:
    vote = (hard_state.vote or "").encode()
    body = _VOTE.pack(0, hard_state.term, len(vote))[4:] + vote
    crc = zlib.crc32(body, crc)
    return crc.to_bytes(4, "big") + body, crc
