"""Where the entries of all ledgers stand in a bookie's entry logs.

In memory an entry takes 20 bytes, and what its columns have in reserve; on disk, in the index of an entry log that is
full, 24: `ledger:8 | entry:8 | offset:4 | size:4`, big-endian.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from system_under_test.storage.errors import RecordInvalid

_RECORD = struct.Struct(">qqII")
RECORD_BYTES = _RECORD.size
_OFFSET_BITS = 32


class Location(NamedTuple):
    log: int
    """The number of the entry log."""
    offset: int
    size: int


class IndexRecord(NamedTuple):
    ledger: int
    entry: int
    offset: int
    size: int


def encode_index_record(record: IndexRecord) -> bytes:
    return _RECORD.pack(*record)


def decode_index(data: bytes) -> Iterator[IndexRecord]:
    """Raises RecordInvalid, at once or while it is read."""
    if len(data) % RECORD_BYTES:
        raise RecordInvalid(f"{len(data)} bytes are no whole records of an index")
    return _records(data)


def _records(data: bytes) -> Iterator[IndexRecord]:
    for record in map(IndexRecord._make, _RECORD.iter_unpack(data)):
        if record.ledger < 0 or record.entry < 0:
            raise RecordInvalid(f"there is no entry {record.entry} of ledger {record.ledger}")
        yield record


class _Columns:
    """The entries of one ledger, in their order."""

    __slots__ = ("_entries", "_places", "_sizes")

    def __init__(self) -> None:
        self._entries = array("q")
        self._places = array("Q")
        self._sizes = array("I")

    def put(self, entry: int, place: int, size: int) -> None:
        entries = self._entries
        if not entries or entry > entries[-1]:
            entries.append(entry)
            self._places.append(place)
            self._sizes.append(size)
            return
        at = bisect_left(entries, entry)
        if entries[at] == entry:
            self._places[at], self._sizes[at] = place, size
            return
        entries.insert(at, entry)
        self._places.insert(at, place)
        self._sizes.insert(at, size)

    def find(self, entry: int) -> tuple[int, int] | None:
        at = bisect_left(self._entries, entry)
        if at == len(self._entries) or self._entries[at] != entry:
            return None
        return self._places[at], self._sizes[at]

    def slice(self, first: int, count: int) -> list[int]:
        at = bisect_left(self._entries, first)
        return self._entries[at : at + count].tolist()

    @property
    def last(self) -> int:
        return self._entries[-1]


class Index:
    def __init__(self) -> None:
        self._ledgers: dict[int, _Columns] = {}

    def put(self, ledger: int, entry: int, location: Location) -> None:
        """What is put last holds."""
        columns = self._ledgers.get(ledger)
        if columns is None:
            columns = self._ledgers[ledger] = _Columns()
        columns.put(entry, location.log << _OFFSET_BITS | location.offset, location.size)

    def find(self, ledger: int, entry: int) -> Location | None:
        columns = self._ledgers.get(ledger)
        found = None if columns is None else columns.find(entry)
        if found is None:
            return None
        place, size = found
        return Location(place >> _OFFSET_BITS, place & (1 << _OFFSET_BITS) - 1, size)

    def entries(self, ledger: int, first: int, count: int) -> list[int]:
        """The first `count` entries of a ledger from `first` on, in order."""
        columns = self._ledgers.get(ledger)
        return [] if columns is None else columns.slice(first, count)

    def last(self, ledger: int) -> int | None:
        columns = self._ledgers.get(ledger)
        return None if columns is None else columns.last

    def ledgers(self) -> list[int]:
        return sorted(self._ledgers)
