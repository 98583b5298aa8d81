"""Which master wrote which part of the log: (master epoch, start offset), and where two logs part.

Facts this rests on: an epoch has one master, so one start; a log holding `(e, s)` equals, up to `s`, the log that the
master of `e` had when it took the role, and from `s` to the entry's end holds bytes that master wrote, in order.
Hence two logs that both hold `(e, s)` are equal up to the lesser of the two ends of that entry, and the newest such
entry gives the greatest point at which they are known to be equal.

An entry whose start equals its end (a master that wrote nothing, or a cut right at its start) holds no bytes, but the
fact about the bytes before it stays true, so cuts keep it: a cut at `offset` removes entries that start beyond
`offset`, not those that start at it. A master that restarts after a clean stop without having written needs it:
without the entry its next writes would count as those of the epoch before.

The end of an entry is the start of the next one, for the last entry the end of the log.

Where files are deleted, entries whose bytes are gone go and the first start moves up. Two logs that have no such entry
are therefore compared from where the later of them begins (`seen_from`). One that ends before the other begins has no
point in common with it although the bytes would agree (`is_before`): what follows its end is gone.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from system_under_test.runtime.host import Disk
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.record_file import RecordFile

_ENTRY = struct.Struct(">iq")


class EpochEntry(NamedTuple):
    """A master epoch and the offset its master started to write at."""

    master_epoch: int
    start_offset: int


class EpochMap:
    """Entries by ascending epoch and non-descending start; a value: every change gives a new map."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self.entries: tuple[EpochEntry, ...] = tuple(EpochEntry(*entry) for entry in entries)
        for before, after in zip(self.entries, self.entries[1:], strict=False):
            if after.master_epoch <= before.master_epoch or after.start_offset < before.start_offset:
                raise ValueError(f"{after} cannot follow {before}")

    def __iter__(self) -> Iterator[EpochEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EpochMap) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.entries)

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{epoch}:{start}" for epoch, start in self.entries) + "}"

    @property
    def last(self) -> EpochEntry | None:
        return self.entries[-1] if self.entries else None

    def end_of(self, master_epoch: int) -> int | None:
        """The start of the entry after this epoch's, or None for the last entry, which ends with the log.

        Raises KeyError if the epoch has no entry.
        """
        for position, entry in enumerate(self.entries):
            if entry.master_epoch == master_epoch:
                following = position + 1
                return self.entries[following].start_offset if following < len(self.entries) else None
        raise KeyError(master_epoch)

    def entry_at(self, offset: int) -> EpochEntry | None:
        """The entry whose master wrote, or (at the end of the log) would write, the byte at `offset`.

        Of entries with the same start it is the newest: those before it hold no bytes.
        """
        found = None
        for entry in self.entries:
            if entry.start_offset > offset:
                break
            found = entry
        return found

    def append(self, master_epoch: int, start_offset: int) -> EpochMap:
        """With one entry more; its start may equal that of the entry before. Raises ValueError if it goes back."""
        return EpochMap((*self.entries, EpochEntry(master_epoch, start_offset)))

    def truncate_suffix(self, end_offset: int) -> EpochMap:
        """What is left when the log ends at `end_offset`: entries that start beyond it go."""
        return EpochMap(entry for entry in self.entries if entry.start_offset <= end_offset)

    def entries_up_to(self, point: int) -> EpochMap:
        """What a replica cut at `point` takes over from this, its master's, map."""
        return self.truncate_suffix(point)

    def seen_from(self, offset: int) -> EpochMap:
        """What it says of the bytes from `offset` on; an epoch that ended before has none there, but is known."""
        return EpochMap((epoch, max(start, offset)) for epoch, start in self.entries)

    def delete_prefix(self, min_offset: int) -> EpochMap:
        """What is left when the log begins at `min_offset`: entries all of whose bytes are gone go, the first moves up.

        An entry without bytes that starts at `min_offset` stays: a replica that wrote bytes under that epoch, which
        nobody copied, would otherwise find nothing in common with this log.
        """
        kept = [
            entry
            for position, entry in enumerate(self.entries)
            if entry.start_offset >= min_offset
            or position + 1 == len(self.entries)
            or self.entries[position + 1].start_offset > min_offset
        ]
        if kept and kept[0].start_offset < min_offset:
            kept[0] = EpochEntry(kept[0].master_epoch, min_offset)
        return EpochMap(kept)


def truncation_point(own: EpochMap, own_end: int, theirs: EpochMap, their_end: int) -> int | None:
    """Where this log must be cut to be a prefix of theirs, or None: nothing in common, a human has to repair.

    From the newest own entry to the oldest: the first one that they hold with the same epoch and start gives the
    lesser of its two ends.
    """
    starts = dict(theirs.entries)
    end = own_end
    for entry in reversed(own.entries):
        if starts.get(entry.master_epoch) == entry.start_offset:
            their_entry_end = theirs.end_of(entry.master_epoch)
            return min(end, their_end if their_entry_end is None else their_entry_end)
        end = entry.start_offset
    return None


def agree_behind(begin: int, own: EpochMap, theirs: EpochMap) -> bool:
    """Whether no epoch starts behind `begin` at two places."""
    starts = dict(theirs.entries)
    return all(
        starts.get(epoch, start) == start or min(starts[epoch], start) <= begin for epoch, start in own if start > begin
    )


def is_before(own: EpochMap, own_end: int, theirs: EpochMap) -> bool:
    """Whether all of this log lies before the first byte that is left of theirs: what they have begins in an epoch of
    which this log has no byte yet, nor of a later one, or in the newest one of which it has any, behind its end."""
    written = [entry.master_epoch for entry in own if entry.start_offset < own_end]
    if not written or not theirs.entries:
        return False
    first, newest = theirs.entries[0], written[-1]
    return newest < first.master_epoch or (newest == first.master_epoch and own_end < first.start_offset)


def common_point(
    own: EpochMap,
    own_begin: int,
    own_end: int,
    theirs: EpochMap,
    their_end: int,
    point: Callable[[EpochMap, int, EpochMap, int], int | None] = truncation_point,
) -> int | None:
    """Where this log, which begins at `own_begin`, must be cut to agree with theirs, which begins with its first entry;
    at `own_begin` nothing is left of it. None: nothing in common.
    """
    found = point(own, own_end, theirs, their_end)
    begin = max(own_begin, theirs.entries[0].start_offset if theirs.entries else 0)
    if found is None and begin <= own_end and agree_behind(begin, own, theirs):
        # What this log holds of an epoch that ended before can be held against nothing. That theirs ended before says
        # that all of this log is to be cut.
        return point(own.delete_prefix(begin), own_end, theirs.seen_from(begin), their_end)
    return found


def taken_over(own: EpochMap, theirs: EpochMap, point: int) -> EpochMap:
    """What a replica cut at `point` notes: its master's entries, and before these its own, where its log begins
    earlier."""
    taken = list(theirs.entries_up_to(point))
    if not taken:
        return EpochMap()
    first = taken[0]
    earlier = [entry for entry in own if entry.master_epoch <= first.master_epoch]
    if earlier and earlier[-1].master_epoch == first.master_epoch:
        taken[0] = min(first, earlier.pop())
    return EpochMap([*(entry for entry in earlier if entry.start_offset <= taken[0].start_offset), *taken])


class EpochFile:
    """The durable epoch map of one replica: every change is on disk before the call returns."""

    def __init__(self, disk: Disk, path: str, record: type[RecordFile] = RecordFile) -> None:
        self._record = record(disk, path)
        self._changes = asyncio.Lock()
        self.map = EpochMap()

    def load(self) -> None:
        """Read the map. Raises StorageCorrupt: without its epochs a log cannot be compared with any other."""
        record = self._record.read()
        if record is None:
            return
        if len(record) % _ENTRY.size:
            raise StorageCorrupt("the epoch file has a broken entry")
        self.map = EpochMap((epoch, start) for epoch, start in _ENTRY.iter_unpack(record))

    async def replace(self, entries: EpochMap) -> None:
        """Make `entries` the map, durably."""
        await self._change(lambda _: entries)

    async def append(self, master_epoch: int, start_offset: int) -> None:
        """Add an entry, durably. Raises ValueError if it goes back."""
        await self._change(lambda held: held.append(master_epoch, start_offset))

    async def truncate_suffix(self, end_offset: int) -> None:
        """Drop the entries that start beyond the log's end, durably."""
        await self._change(lambda held: held.truncate_suffix(end_offset))

    async def delete_prefix(self, min_offset: int) -> None:
        """Drop the entries that end before the log begins, durably."""
        await self._change(lambda held: held.delete_prefix(min_offset))

    async def _change(self, change: Callable[[EpochMap], EpochMap]) -> None:
        # A new epoch and a deletion of old files may meet: neither may overwrite the other.
        async with self._changes:
            entries = change(self.map)
            if entries != self.map:
                await self._record.write(b"".join(_ENTRY.pack(*entry) for entry in entries))
                self.map = entries
