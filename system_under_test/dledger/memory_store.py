"""A member's log in memory: nothing of it survives the process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from system_under_test.dledger.entry import NOTHING, Entry, first_of
from system_under_test.storage.file_cleaner import FileAge


class MemoryStore:
    """An `EntryLog`. There are no files, so an entry's position is where the one before it ends, 0 for index 0, and a
    log may begin anew at any position. Nothing is ever refused for its size."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    @property
    def begin(self) -> int:
        return self._entries[0].index if self._entries else NOTHING

    @property
    def end(self) -> int:
        return self._entries[-1].index if self._entries else NOTHING

    @property
    def end_term(self) -> int:
        return self._entries[-1].term if self._entries else NOTHING

    @property
    def end_position(self) -> int:
        """Behind the last entry."""
        return self._entries[-1].position + self._entries[-1].size if self._entries else 0

    @property
    def durable_end(self) -> int:
        """As durable as it gets."""
        return self.end

    def entry(self, index: int) -> Entry | None:
        return self._entries[index - self.begin] if self._entries and self.begin <= index <= self.end else None

    def entries(self, first: int, last: int, most_bytes: int) -> Sequence[Entry]:
        return first_of(islice(self._entries, first - self.begin, last + 1 - self.begin), most_bytes)

    def term(self, index: int) -> int:
        entry = self.entry(index)
        return NOTHING if entry is None else entry.term

    def append_own(self, term: int, bodies: Sequence[bytes]) -> Sequence[Entry]:
        entries, index, position = [], self.end + 1, self.end_position
        for body in bodies:
            entries.append(Entry(index, term, position, body))
            index, position = index + 1, position + entries[-1].size
        if not self.append(entries):
            raise ValueError(f"an own entry of term {term} cannot follow one of term {self.end_term}")
        return entries

    def append(self, entries: Sequence[Entry]) -> bool:
        index, position, term = self.end + 1, self.end_position, self.end_term
        for entry in entries:
            if (entry.index, entry.position) != (index, position) or entry.term < term:
                return False
            index, position, term = index + 1, position + entry.size, entry.term
        self._entries += entries
        return True

    def end_with(self, entry: Entry) -> bool:
        if self.entry(entry.index) == entry:
            del self._entries[entry.index - self.begin + 1 :]
        else:
            self._entries = [entry]
        return True

    @property
    def committed(self) -> int:
        """Nothing is known of it at a start."""
        return NOTHING

    async def open(self) -> None:
        """Nothing is to be done."""

    async def sync(self) -> None:
        """Nothing is to be done."""

    async def save_committed(self, committed: int) -> None:
        """Nothing is to be done."""

    async def full_files(self, elapsed_s: Callable[[], float]) -> list[FileAge]:
        """There are none."""
        return []

    async def expire(self, before_position: int) -> None:
        """Nothing is to be done."""
