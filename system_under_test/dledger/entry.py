"""An entry of DLedger's log, and the log as the protocol sees it.

An entry has an index, from 0 on, and a position: where its bytes begin in the data files, one behind the other over all
of them. Members agree on both. A log that is empty begins and ends at NOTHING.

Source: DLedger 0.3.1, which the broker's commit log and the controllers of RocketMQ 5 rest on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

NOTHING = -1
"""The first and last index of an empty log, its last term, and what is committed of it."""
HEAD_BYTES = 48
"""An entry's bytes in a data file before its body."""


@dataclass(frozen=True, slots=True)
class Entry:
    index: int
    term: int
    position: int
    body: bytes
    channel: int = 0
    """Reserved; carried along."""

    @property
    def size(self) -> int:
        """Bytes in a data file."""
        return HEAD_BYTES + len(self.body)


def first_of(entries: Iterable[Entry], most_bytes: int) -> Sequence[Entry]:
    """At least one, and more only as far as all of them together have no more than so many bytes."""
    found: list[Entry] = []
    for entry in entries:
        most_bytes -= entry.size
        if found and most_bytes < 0:
            break
        found.append(entry)
    return found


class EntryLog(Protocol):
    """What is written is read at once, and durable some time later: who needs to know that asks the store. Errors:
    DiskFull (nothing was changed), StorageFailed (the device failed, and nothing is vouched for any more)."""

    @property
    def begin(self) -> int:
        """The first index, or NOTHING."""

    @property
    def end(self) -> int:
        """The last index, or NOTHING."""

    @property
    def end_term(self) -> int:
        """The term of the last entry, or NOTHING."""

    @property
    def end_position(self) -> int:
        """Behind the last entry."""

    def entry(self, index: int) -> Entry | None:
        """None outside of begin and end."""

    def term(self, index: int) -> int:
        """Of the entry at this index, or NOTHING."""

    def append_own(self, term: int, bodies: Sequence[bytes]) -> Sequence[Entry]:
        """Put entries of this term behind the last one, all or none; their indices and positions are the next ones.
        Raises DiskFull, StorageFailed, MessageTooLarge."""

    def append(self, entries: Sequence[Entry]) -> bool:
        """Put these behind the last one, all or none. False if the first one's index, or a position, is not the next
        one. Raises DiskFull, StorageFailed."""

    def end_with(self, entry: Entry) -> bool:
        """Let the log end with this entry. If it has it, what is behind is cut; if not, the log begins anew with it,
        for then nothing before it is known to be the same. False if no log can begin at the entry's position. Raises
        DiskFull, StorageFailed."""
