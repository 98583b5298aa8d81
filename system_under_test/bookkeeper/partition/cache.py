"""Entries that an owner read lately: consumers follow each other, and ask for the same ones."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from system_under_test.bookkeeper.entry import Entry
from system_under_test.bookkeeper.ledger.driver import MOST_AT_ONCE, LedgerReader
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata

MOST_BYTES: Final = 16 * 1024 * 1024
"""All payloads that are kept have at most so many."""


class ReadCache:
    """Of acknowledged entries, which never change; those that were read last stay."""

    def __init__(self, reader: LedgerReader, most_bytes: int = MOST_BYTES) -> None:
        self._reader = reader
        self._most_bytes = most_bytes
        self._bytes = 0
        self._entries: OrderedDict[tuple[int, int], Entry] = OrderedDict()
        """By ledger and entry, the one read last at the end."""

    async def read_all(self, metadata: LedgerMetadata, first: int, last: int) -> list[Entry | None]:
        """As `LedgerReader.read_all`."""
        kept: list[Entry | None] = []
        while (
            first <= last
            and len(kept) < MOST_AT_ONCE
            and (entry := self._entries.get((metadata.ledger, first))) is not None
        ):
            self._entries.move_to_end((metadata.ledger, first))
            kept.append(entry)
            first += 1
        if kept:
            return kept
        read = await self._reader.read_all(metadata, first, last)
        for entry in read:
            if entry is not None:
                self._keep(entry)
        return read

    def _keep(self, entry: Entry) -> None:
        key = (entry.ledger, entry.entry)
        if key in self._entries:
            return
        self._entries[key] = entry
        self._bytes += len(entry.payload)
        while self._bytes > self._most_bytes:
            _, oldest = self._entries.popitem(last=False)
            self._bytes -= len(oldest.payload)
