"""A node's log in memory: a snapshot, the entries behind it, and the memberships that stand in both."""

from __future__ import annotations

from collections.abc import Sequence

from system_under_test.raft import membership as memberships
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import Entry, Kind
from system_under_test.raft.snapshot import Snapshot


class Log:
    def __init__(self, snapshot: Snapshot, entries: Sequence[Entry], configured: Membership) -> None:
        """`entries` begin right behind the snapshot. `configured` holds until the log says otherwise."""
        self.snapshot = snapshot
        self.entries: list[Entry] = []
        self._memberships = [(snapshot.index, snapshot.membership or configured)]
        """The snapshot's, then those of the entries, each with its index."""
        self._extend(entries)

    @property
    def last_index(self) -> int:
        return self.snapshot.index + len(self.entries)

    @property
    def last_term(self) -> int:
        return self.term_at(self.last_index)

    @property
    def membership(self) -> Membership:
        """The newest, committed or not: a node goes by it from the moment it has it."""
        return self._memberships[-1][1]

    @property
    def membership_index(self) -> int:
        """Of the entry that holds it, or the snapshot's last one."""
        return self._memberships[-1][0]

    def membership_at(self, index: int) -> Membership:
        """As it was when this entry was the last one."""
        return next(membership for at, membership in reversed(self._memberships) if at <= index)

    def memberships_from(self, index: int) -> list[Membership]:
        """As it was when this entry was the last one, and all that came after."""
        return [self.membership_at(index), *(membership for at, membership in self._memberships if at > index)]

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
        first = entries[0].index
        del self.entries[first - 1 - self.snapshot.index :]
        while self._memberships[-1][0] >= first:
            self._memberships.pop()
        self._extend(entries)

    def begin_behind(self, snapshot: Snapshot) -> None:
        """Keep only what follows the snapshot's last entry; nothing, if that entry is not here."""
        kept = self.behind(snapshot.index) if self.has(snapshot.index, snapshot.term) else []
        self._memberships = [(snapshot.index, snapshot.membership or self._memberships[0][1])]
        self.snapshot = snapshot
        self.entries = []
        self._extend(kept)

    def _extend(self, entries: Sequence[Entry]) -> None:
        self.entries += entries
        for entry in entries:
            if entry.kind is Kind.MEMBERSHIP:
                self._memberships.append((entry.index, memberships.decode(entry.data)))
