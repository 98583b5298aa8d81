"""A node's log as its core sees it: a snapshot, the entries behind it or a little before, and the memberships in both.

Only the newest entries are in memory. Of the others it is kept which terms they have, by runs, and they are read from
where the node has written them: such a read finds what this log was given, so it decides nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from system_under_test.raft import membership as memberships
from system_under_test.raft.bounds import USUAL
from system_under_test.raft.membership import Membership
from system_under_test.raft.message import Entry, Kind
from system_under_test.raft.snapshot import Snapshot

ReadEntries = Callable[[int, int], list[Entry]]
"""Reads entries from the first index to the last: one at least, and so many as the reader finds to be enough."""

ENTRY_BYTES = 160
"""What an entry takes in memory beside its data."""


def nothing_to_read(first: int, last: int) -> list[Entry]:
    raise AssertionError(f"entries {first} to {last} are not in memory, and there is nothing else")


class Log:
    def __init__(
        self,
        snapshot: Snapshot,
        entries: Iterable[Entry],
        configured: Membership,
        *,
        base: tuple[int, int] | None = None,
        memory_bytes: int = USUAL.log_memory_bytes,
        read: ReadEntries = nothing_to_read,
    ) -> None:
        """`entries` begin right behind the base, an index and its term that are the snapshot's or before them; with
        None they are the snapshot's. `configured` holds until the log says otherwise."""
        self.snapshot = snapshot
        self.base_index, base_term = base or (snapshot.index, snapshot.term)
        """The log has the entries after this index, and the term of the one at it."""
        self.entries: list[Entry] = []
        """Those in memory: the newest."""
        self._behind_index = self.base_index
        """The index before the first of them."""
        self._bytes = 0
        self._memory_bytes = memory_bytes
        self._read = read
        self._starts, self._terms = [self.base_index], [base_term]
        """Runs of terms: the index at which each begins, the base's first, and its term."""
        self._memberships = [(snapshot.index, snapshot.membership or configured)]
        """The snapshot's, then those of the entries, each with its index."""
        for entry in entries:
            self._extend((entry,))
            self.shrink()

    @property
    def last_index(self) -> int:
        return self._behind_index + len(self.entries)

    @property
    def last_term(self) -> int:
        return self._terms[-1]

    @property
    def membership(self) -> Membership:
        """The newest, committed or not: a node goes by it from the moment it has it."""
        return self._memberships[-1][1]

    @property
    def membership_index(self) -> int:
        """Of the entry that holds it, or the snapshot's last one."""
        return self._memberships[-1][0]

    def membership_at(self, index: int) -> Membership:
        """As it was when this entry was the last one; not before the snapshot's last one."""
        return next(membership for at, membership in reversed(self._memberships) if at <= index)

    def memberships_from(self, index: int) -> list[Membership]:
        """As it was when this entry was the last one, and all that came after."""
        return [self.membership_at(index), *(membership for at, membership in self._memberships if at > index)]

    def term_at(self, index: int) -> int:
        """Of the entry at this index, which is the base or behind it; 0 before the first of all."""
        assert self.base_index <= index <= self.last_index, "that entry is not here"
        return self._terms[self._run_of(index)]

    def has(self, index: int, term: int) -> bool:
        """Whether there is an entry of this term at this index, not before the base."""
        return self.base_index <= index <= self.last_index and self.term_at(index) == term

    def behind(self, index: int, limit: int) -> list[Entry]:
        """Entries after this index, which is the base or behind it, in their order: at most so many, and maybe fewer,
        but one if there is any. Raises DiskError where they have to be read."""
        assert index >= self.base_index, "these entries are gone"
        if index < self._behind_index:
            return self._read(index + 1, min(index + limit, self._behind_index))
        first = index - self._behind_index
        return self.entries[first : first + limit]

    def last_at_most(self, index: int, term: int) -> int:
        """The last index, at most `index`, whose entry's term is at most `term`; not before the base, unless `index`
        is."""
        while index > self.base_index and self.term_at(index) > term:
            index = max(self.base_index, self._starts[self._run_of(index)] - 1)
        return index

    def put(self, entries: Sequence[Entry]) -> None:
        """Cut what is there from the first of them on, and put them at the end."""
        self._cut(entries[0].index - 1)
        self._extend(entries)

    def compact(self, snapshot: Snapshot, base_index: int) -> None:
        """The snapshot stands for entries that are here; those up to the new base, which is not behind it, go."""
        membership = snapshot.membership or self._memberships[0][1]
        self._memberships = [(snapshot.index, membership), *(at for at in self._memberships if at[0] > snapshot.index)]
        self.snapshot = snapshot
        if base_index <= self.base_index:
            return
        run = self._run_of(base_index)
        self._starts[: run + 1] = [base_index]
        del self._terms[:run]
        self.base_index = base_index
        self._forget(base_index - self._behind_index)

    def begin_anew(self, snapshot: Snapshot) -> None:
        """The snapshot stands for entries that are not here, and nothing follows it."""
        self._memberships = [(snapshot.index, snapshot.membership or self._memberships[0][1])]
        self.snapshot = snapshot
        self.base_index = self._behind_index = snapshot.index
        self._starts, self._terms = [snapshot.index], [snapshot.term]
        self.entries, self._bytes = [], 0

    def shrink(self) -> None:
        """Keep no more in memory than there may be: what goes must be where `read` finds it."""
        if self._bytes <= self._memory_bytes:
            return
        # An eighth more than needs to go, so that the rest is not moved with every entry that comes.
        surplus, count = self._bytes - self._memory_bytes * 7 // 8, 0
        while surplus > 0 and count < len(self.entries):
            surplus -= _size(self.entries[count])
            count += 1
        self._forget(count)

    def _run_of(self, index: int) -> int:
        return bisect_right(self._starts, index) - 1

    def _forget(self, count: int) -> None:
        """The first ones in memory."""
        if count <= 0:
            return
        self._bytes -= sum(map(_size, self.entries[:count]))
        del self.entries[:count]
        self._behind_index += count

    def _cut(self, index: int) -> None:
        """All that is behind it goes."""
        kept = max(0, index - self._behind_index)
        self._bytes -= sum(map(_size, self.entries[kept:]))
        del self.entries[kept:]
        self._behind_index = min(self._behind_index, index)
        while self._starts[-1] > index:
            self._starts.pop()
            self._terms.pop()
        while self._memberships[-1][0] > index:
            self._memberships.pop()

    def _extend(self, entries: Sequence[Entry]) -> None:
        self.entries += entries
        for entry in entries:
            self._bytes += _size(entry)
            if entry.term != self._terms[-1]:
                self._starts.append(entry.index)
                self._terms.append(entry.term)
            if entry.kind is Kind.MEMBERSHIP and entry.index > self.snapshot.index:
                self._memberships.append((entry.index, memberships.decode(entry.data)))


def _size(entry: Entry) -> int:
    return ENTRY_BYTES + len(entry.data)
