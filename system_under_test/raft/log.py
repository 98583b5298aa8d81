"""A node's log in memory: a snapshot, and the entries behind it."""

from __future__ import annotations

from collections.abc import Sequence

from system_under_test.raft.message import Entry
from system_under_test.raft.snapshot import Snapshot


class Log:
    def __init__(self, snapshot: Snapshot, entries: Sequence[Entry]) -> None:
        """`entries` begin right behind the snapshot."""
        self.snapshot = snapshot
        self.entries = list(entries)

    @property
    def last_index(self) -> int:
        return self.snapshot.index + len(self.entries)

    @property
    def last_term(self) -> int:
        return self.term_at(self.last_index)

    def term_at(self, index: int) -> int:
        """Of the entry at this index, which is the snapshot's last one or behind it; 0 before the first of all."""
        behind = index - self.snapshot.index
        assert behind >= 0, "that entry is gone"
        return self.entries[behind - 1].term if behind else self.snapshot.term

    def has(self, index: int, term: int) -> bool:
        """Whether there is an entry of this term at this index, not before the snapshot's last one."""
        return self.snapshot.index <= index <= self.last_index and self.term_at(index) == term

    def behind(self, index: int, limit: int | None = None) -> list[Entry]:
        """The entries after this index, which is the snapshot's last one or behind it; at most so many."""
        first = index - self.snapshot.index
        assert first >= 0, "these entries are gone"
        return self.entries[first : None if limit is None else first + limit]

    def last_at_most(self, index: int, term: int) -> int:
        """The last index, at most `index`, whose entry's term is at most `term`; not before the snapshot's last one,
        unless `index` is."""
        while index > self.snapshot.index and self.term_at(index) > term:
            index -= 1
        return index

    def put(self, entries: Sequence[Entry]) -> None:
        """Cut what is there from the first of them on, and put them at the end."""
        del self.entries[entries[0].index - 1 - self.snapshot.index :]
        self.entries += entries

    def begin_behind(self, snapshot: Snapshot) -> None:
        """Keep only what follows the snapshot's last entry; nothing, if that entry is not here."""
        self.entries = self.behind(snapshot.index) if self.has(snapshot.index, snapshot.term) else []
        self.snapshot = snapshot
