"""Whether closed ledgers have all their copies: what is to be true again some time after a bookie was lost.

Of each fragment every bookie has to live, and to hold the first and the last entry that it should; all of them, where
repair looks at each copy. What lies between may lack a copy for ever otherwise: an entry is acknowledged without its
last one, and BookKeeper looks no closer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from system_under_test.bookkeeper.bookie.message import Code, ListRequest
from system_under_test.bookkeeper.bookie.registration import AVAILABLE
from system_under_test.bookkeeper.ledger.bookies import Bookies
from system_under_test.bookkeeper.ledger.metadata import LEDGERS, LedgerMetadata, LedgerState, decode_metadata
from system_under_test.bookkeeper.ledger.placement import write_set
from system_under_test.metadata.access import MetadataError
from system_under_test.metadata.client import MetadataClient
from workloads.systems.bookkeeper.nodes import METADATA_ADDRESSES


class Copies:
    def __init__(self, host: Any, patience_s: float, *, every_entry: bool) -> None:
        self._metadata = MetadataClient(host, METADATA_ADDRESSES, timeout_s=patience_s)
        self._bookies = Bookies(host, self._metadata, patience_s)
        self._every_entry = every_entry

    async def lack(self) -> str | None:
        """What the first ledger lacks that lacks anything, in words."""
        try:
            available = await self._metadata.list(AVAILABLE)
            ledgers = [decode_metadata(each.value, each.version) for each in await self._values(LEDGERS)]
        except MetadataError as error:
            return str(error)
        for ledger in ledgers:
            if ledger.state is LedgerState.CLOSED and (lack := await self._lack_of(ledger, available)) is not None:
                return lack
        return None

    async def _lack_of(self, ledger: LedgerMetadata, available: Collection[str]) -> str | None:
        should = list(holdings(ledger))
        if gone := [bookie for bookie, _ in should if AVAILABLE + bookie not in available]:
            return f"ledger {ledger.ledger} counts on bookie {gone[0]}, which does not live"
        held = {bookie: await self._held(bookie, ledger.ledger) for bookie, _ in should}
        # What nobody has cannot come back: whether it may be lost is judged where it is read.
        left = set().union(*held.values())
        for bookie, entries in should:
            wanted = entries if self._every_entry else {min(entries), max(entries)}
            if missing := sorted((wanted & left) - held[bookie]):
                return f"bookie {bookie} lacks entry {missing[0]} of ledger {ledger.ledger}"
        return None

    async def _values(self, prefix: str) -> list[Any]:
        return list((await self._metadata.list(prefix)).values())

    async def _held(self, bookie: str, ledger: int) -> set[int]:
        _, answer = await self._bookies.ask(bookie, ListRequest(bookie=bookie, ledger=ledger))
        return set(answer.entries) if answer.code is Code.OK else set()

    async def close(self) -> None:
        self._bookies.close()
        await self._metadata.stop()


def counted_on(metadata: LedgerMetadata) -> set[str]:
    """The bookies without which entries of a ledger have a copy less, or may get one less."""
    if metadata.state is LedgerState.CLOSED:
        return {bookie for bookie, _ in holdings(metadata)}
    return {bookie for fragment in metadata.fragments for bookie in fragment.ensemble}


def holdings(metadata: LedgerMetadata) -> Iterator[tuple[str, set[int]]]:
    """Of each fragment of a closed ledger, each bookie and the entries that it should hold; none without any."""
    ends = [*(each.first_entry for each in metadata.fragments[1:]), metadata.last_entry + 1]
    for fragment, end in zip(metadata.fragments, ends, strict=True):
        held: dict[str, set[int]] = {}
        for entry in range(fragment.first_entry, min(end, metadata.last_entry + 1)):
            for bookie in write_set(metadata, fragment, entry):
                held.setdefault(bookie, set()).add(entry)
        yield from held.items()
