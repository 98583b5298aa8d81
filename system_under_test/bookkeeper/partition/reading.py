"""How a partition's log is read, ledger by ledger: by its owner, or by anybody at the bookies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from system_under_test.bookkeeper.entry import Entry
from system_under_test.bookkeeper.ledger.driver import LedgerReader
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata, LedgerState
from system_under_test.bookkeeper.partition.ledger_list import read_list
from system_under_test.bookkeeper.partition.payload import decode_messages
from system_under_test.bookkeeper.partition.position import Position, position_of
from system_under_test.metadata.access import MetadataAccess

READ_MESSAGES: Final = 256
"""So many messages a read finds at most, but for the last entry's."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a read came to."""

    messages: tuple[tuple[int, bytes], ...]
    """Each with its offset."""
    next_offset: int
    """Where to read on."""


@dataclass(frozen=True, slots=True)
class Readable:
    """What may be read of a ledger."""

    metadata: LedgerMetadata
    last_entry: int
    is_all: bool
    """The ledger is closed, and this is its last entry."""


def messages_from(position: Position, entry: Entry) -> Iterator[tuple[int, bytes]]:
    """Those of an entry of this position's ledger that are not before the position, with their offsets. Raises
    MalformedPayload."""
    for place, message in enumerate(decode_messages(entry.payload)):
        at = Position(position.ledger, entry.entry, place)
        if at >= position:
            yield at.offset, message


class Entries(Protocol):
    async def read_all(self, metadata: LedgerMetadata, first: int, last: int) -> list[Entry | None]:
        """These entries, or the first of them, with None for each that nobody has. Raises LedgerError."""


async def read_log(
    offset: int, ledgers: Sequence[int], entries: Entries, readable: Callable[[int], Awaitable[Readable]]
) -> Found:
    """From the offset on, and past entries that nobody has: offsets show that there were some. `ledgers`: all of the
    partition, by their numbers. Raises LedgerError, and what `readable` raises."""
    position = position_of(offset)
    messages: list[tuple[int, bytes]] = []
    while position.ledger < len(ledgers) and len(messages) < READ_MESSAGES:
        ledger = await readable(ledgers[position.ledger])
        if position.entry <= ledger.last_entry:
            for entry in await entries.read_all(ledger.metadata, position.entry, ledger.last_entry):
                messages += () if entry is None else messages_from(position, entry)
                position = Position(position.ledger, position.entry + 1)
        elif ledger.is_all:
            position = Position(position.ledger + 1, 0)
        else:
            break
    return Found(tuple(messages), position.offset)


class PartitionReader:
    """Reads without the owner. Of the last ledger, which somebody may be writing, it shows what bookies have heard to
    be acknowledged: an entry up to there is on Qa of them, and no recovery ends the ledger before it."""

    def __init__(self, name: str, metadata: MetadataAccess, reader: LedgerReader) -> None:
        self._name = name
        self._metadata = metadata
        self._reader = reader

    async def read(self, offset: int) -> Found:
        """From the offset on. Raises LedgerError, MetadataError; also where an ensemble changes meanwhile, and an entry
        is looked for where it was to be before."""
        listed = await read_list(self._metadata, self._name)
        return await read_log(offset, listed.ledgers, self._reader, self._readable)

    async def _readable(self, ledger: int) -> Readable:
        metadata = await self._reader.metadata(ledger)
        if metadata.state is LedgerState.CLOSED:
            return Readable(metadata, metadata.last_entry, is_all=True)
        return Readable(metadata, await self._reader.lac(metadata), is_all=False)
