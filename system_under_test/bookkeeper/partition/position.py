"""Where a message stands in a partition, as three numbers and as one.

The numbers are the place of its ledger in the partition's list, its entry in the ledger, and its place in the entry.
As one number, an offset, they have so many bits that offsets grow with all three, whatever the ledgers' own numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

ENTRY_BITS, PLACE_BITS = 30, 8
MOST_MESSAGES = 1 << PLACE_BITS
"""So many messages an entry has at most."""
MOST_ENTRIES = 1 << ENTRY_BITS
"""So many entries a ledger of a partition has at most."""
MOST_OFFSET = (1 << 62) - 1


@dataclass(frozen=True, slots=True, order=True)
class Position:
    ledger: int
    """The place of the ledger in the partition's list, from 0."""
    entry: int
    place: int = 0

    @property
    def offset(self) -> int:
        return (self.ledger << ENTRY_BITS | self.entry) << PLACE_BITS | self.place


def position_of(offset: int) -> Position:
    """Of an offset from 0 to MOST_OFFSET."""
    entries = offset >> PLACE_BITS
    return Position(entries >> ENTRY_BITS, entries & (MOST_ENTRIES - 1), offset & (MOST_MESSAGES - 1))
