"""Whether closed ledgers have all their copies: what is to be true again some time after a bookie was lost.

Of each fragment every bookie has to live, and to hold the first and the last entry that it should; all of them,
unharmed, where repair looks at each copy. What lies between may lack a copy for ever otherwise: an entry is
acknowledged without its last one, and BookKeeper looks no closer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from harness.record.facts import Lack
from harness.record.meaning import Meaning
from system_under_test.bookkeeper.bookie.identity import BOOKIES, Registered
from system_under_test.bookkeeper.bookie.message import Code, ListRequest, ReadRequest
from system_under_test.bookkeeper.bookie.registration import AVAILABLE
from system_under_test.bookkeeper.ledger.bookies import Bookies
from system_under_test.bookkeeper.ledger.driver import MOST_AT_ONCE
from system_under_test.bookkeeper.ledger.metadata import LEDGERS, LedgerMetadata, LedgerState, decode_metadata
from system_under_test.bookkeeper.ledger.placement import write_set
from system_under_test.metadata.access import MetadataError
from system_under_test.metadata.client import MetadataClient
from workloads.systems.bookkeeper.nodes import METADATA_ADDRESSES

UNDER_REPLICATED = "under-replicated"
RESTORES: Mapping[str, Meaning] = {
    UNDER_REPLICATED: Meaning(
        says="Long after the storm a closed ledger counts on a bookie that does not live, or that lacks an entry which "
        "it should hold; others have its entries.",
        usually="Nobody looks for what lacks, a ledger is not marked any more and was not repaired, or a worker does "
        "not copy.",
    )
}
ASK_AGAIN_S = 0.5
"""How soon a metadata store that did not answer is asked again."""


class Copies:
    def __init__(self, host: Any, patience_s: float, *, every_entry: bool) -> None:
        self._metadata = MetadataClient(host, METADATA_ADDRESSES, timeout_s=patience_s)
        self._bookies = Bookies(host, self._metadata, patience_s)
        self._clock = host.clock
        self._every_entry = every_entry

    async def lack(self) -> Lack | None:
        """Of the first ledger that lacks anything; waits for a metadata store that does not answer."""
        while True:
            try:
                available = await self._metadata.list(AVAILABLE)
                registered = await self._metadata.list(BOOKIES)
                ledgers = await self._metadata.list(LEDGERS)
                break
            except MetadataError:
                await self._clock.sleep(ASK_AGAIN_S)
        for each in ledgers.values():
            ledger = decode_metadata(each.value, each.version)
            found = await self._lack_of(ledger, available) if ledger.state is LedgerState.CLOSED else None
            if found is not None:
                bookie, words = found
                node = Registered.decode(registered[BOOKIES + bookie].value).address.partition(":")[0]
                return Lack(name=UNDER_REPLICATED, because=f"bookie {bookie} ({node}) {words} {ledger.ledger}")
        return None

    async def _lack_of(self, ledger: LedgerMetadata, available: Collection[str]) -> tuple[str, str] | None:
        """A bookie, and what is wrong with it, up to the ledger's number."""
        should = list(holdings(ledger))
        gone = {bookie for bookie, _ in should if AVAILABLE + bookie not in available}
        # What is harmed is listed as well, and no source of copies.
        has = self._unharmed if gone or self._every_entry else self._listed
        held = [await has(bookie, ledger.ledger, entries) for bookie, entries in should]
        # What nobody has cannot come back: whether it may be lost is judged where it is read.
        left = set().union(*held)
        for (bookie, entries), its in zip(should, held, strict=True):
            if bookie in gone:
                if entries <= left:
                    return bookie, "does not live, and should have entries of ledger"
                # It may be the only one that has an entry, and then keeps its place.
                continue
            wanted = entries if self._every_entry else {min(entries), max(entries)}
            if missing := sorted((wanted & left) - its):
                return bookie, f"lacks entry {missing[0]} of ledger"
        return None

    async def _listed(self, bookie: str, ledger: int, entries: Collection[int]) -> set[int]:
        """Those of these entries that it has."""
        _, answer = await self._bookies.ask(bookie, ListRequest(bookie=bookie, ledger=ledger))
        return set(answer.entries).intersection(entries) if answer.code is Code.OK else set()

    async def _unharmed(self, bookie: str, ledger: int, entries: Collection[int]) -> set[int]:
        """Those of these entries that it gives back."""
        listed, unharmed = sorted(await self._listed(bookie, ledger, entries)), set[int]()
        for at in range(0, len(listed), MOST_AT_ONCE):
            asked = listed[at : at + MOST_AT_ONCE]
            reads = (self._bookies.ask(bookie, ReadRequest(bookie=bookie, ledger=ledger, entry=each)) for each in asked)
            answers = await asyncio.gather(*reads)
            unharmed.update(each for each, (_, read) in zip(asked, answers, strict=True) if read.code is Code.OK)
        return unharmed

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
