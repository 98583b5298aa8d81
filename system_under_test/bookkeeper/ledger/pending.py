"""Entries that were sent to bookies and are not acknowledged: who was asked, who has them, whether that is enough.

An answer counts by who gave it, not by when it was asked for: a bookie that has an entry has it also after the ensemble
changed. But it counts only while the bookie is one of those at which readers look for the entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from system_under_test.bookkeeper.ledger.event import SendAdd
from system_under_test.bookkeeper.ledger.metadata import Fragment, LedgerMetadata
from system_under_test.bookkeeper.ledger.placement import write_set


@dataclass(slots=True)
class PendingAdd:
    entry: int
    data: bytes
    length: int
    """All payloads up to this one have so many bytes."""
    token: int
    write_set: tuple[str, ...] = ()
    asked: set[str] = field(default_factory=set)
    """Bookies that have not answered yet."""
    has: set[str] = field(default_factory=set)
    """Bookies of the write set that acknowledged it."""
    failed: set[str] = field(default_factory=set)
    """Bookies of the write set that will not acknowledge it."""


class PendingAdds:
    def __init__(self, metadata: LedgerMetadata, fragment: Fragment) -> None:
        self._metadata = metadata
        self._quorums = metadata.quorums
        self._fragment = fragment
        self._adds: dict[int, PendingAdd] = {}
        """In the order of their entries, without a gap."""
        self.is_hopeless = False
        """Whether for some entry fewer than Qa bookies are left, as it is placed."""

    def __len__(self) -> int:
        return len(self._adds)

    def __iter__(self) -> Iterator[PendingAdd]:
        return iter(self._adds.values())

    def push(self, add: PendingAdd) -> PendingAdd:
        """Behind the others."""
        add.write_set = write_set(self._metadata, self._fragment, add.entry)
        self._adds[add.entry] = add
        return add

    def place_anew(self, fragment: Fragment) -> None:
        """Its start turns the write sets of all."""
        self._fragment = fragment
        self.is_hopeless = False
        for add in self:
            add.write_set = write_set(self._metadata, fragment, add.entry)
            add.has = self.kept(add)
            add.failed = set()

    def kept(self, add: PendingAdd) -> set[str]:
        """Of those that acknowledged it."""
        return {bookie for bookie in add.has if bookie in add.write_set}

    def sends(self) -> list[SendAdd]:
        """To all of all write sets that have not been asked."""
        return [sent for add in self for sent in self.sends_of(add)]

    def sends_of(self, add: PendingAdd) -> list[SendAdd]:
        found = []
        for bookie in add.write_set:
            if bookie not in add.asked and bookie not in add.has and bookie not in add.failed:
                add.asked.add(bookie)
                found.append(SendAdd(bookie, add.entry, add.data))
        return found

    def acknowledged(self, bookie: str, entry: int) -> None:
        add = self._adds.get(entry)
        if add is not None:
            add.asked.discard(bookie)
            if bookie in add.write_set:
                add.has.add(bookie)

    def failed(self, bookie: str, entry: int) -> None:
        add = self._adds.get(entry)
        if add is not None:
            add.asked.discard(bookie)
            if bookie in add.write_set:
                add.failed.add(bookie)
                self.is_hopeless |= len(add.write_set) - len(add.failed) < self._quorums.ack

    @property
    def front_is_reached(self) -> bool:
        """Whether Qa bookies have the first one."""
        first = next(iter(self._adds.values()), None)
        return first is not None and len(first.has) >= self._quorums.ack

    def reached(self) -> Iterator[PendingAdd]:
        """Takes from the front, one by one, what Qa bookies have."""
        while self.front_is_reached:
            yield self._adds.pop(next(iter(self._adds)))

    def drop_all(self) -> list[PendingAdd]:
        dropped = list(self)
        self._adds.clear()
        return dropped
