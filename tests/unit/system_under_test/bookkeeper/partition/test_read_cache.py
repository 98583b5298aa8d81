"""An owner keeps what it read lately, within a bound, and asks bookies for the rest."""

from __future__ import annotations

import asyncio
from typing import Any

from system_under_test.bookkeeper.entry import Entry
from system_under_test.bookkeeper.ledger.driver import MOST_AT_ONCE
from system_under_test.bookkeeper.ledger.metadata import Fragment, LedgerMetadata, Quorums
from system_under_test.bookkeeper.partition.cache import ReadCache

METADATA = LedgerMetadata(ledger=7, quorums=Quorums(ensemble=1, write=1, ack=1), fragments=(Fragment(0, ("i1",), 0),))


class Bookies:
    """Stand for a `LedgerReader`; each entry has ten bytes."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def read_all(self, metadata: LedgerMetadata, first: int, last: int) -> list[Entry]:
        entries = range(first, min(last + 1, first + MOST_AT_ONCE))
        self.asked += entries
        return [Entry(7, entry, entry - 1, 10 * entry, b"%10d" % entry) for entry in entries]


def read(cache: ReadCache, first: int, last: int) -> list[int]:
    return [entry.entry for entry in asyncio.run(cache.read_all(METADATA, first, last))]


def cached(most_bytes: int) -> tuple[Any, ReadCache]:
    bookies: Any = Bookies()
    return bookies, ReadCache(bookies, most_bytes)


def test_what_was_read_is_not_asked_for_again() -> None:
    bookies, cache = cached(1_000)
    assert read(cache, 0, 2) == [0, 1, 2]
    assert read(cache, 1, 4) == [1, 2]
    assert read(cache, 3, 4) == [3, 4]
    assert bookies.asked == [0, 1, 2, 3, 4]


def test_what_was_read_last_stays_within_the_bound() -> None:
    bookies, cache = cached(30)
    read(cache, 0, 2)
    read(cache, 0, 0)
    read(cache, 3, 3)
    bookies.asked.clear()
    assert read(cache, 0, 0) == [0] and bookies.asked == []
    assert read(cache, 1, 1) == [1] and bookies.asked == [1]


def test_a_read_of_what_is_kept_is_bounded_too() -> None:
    _, cache = cached(1_000_000)
    read(cache, 0, 31)
    read(cache, 32, 63)
    assert read(cache, 0, 63) == list(range(MOST_AT_ONCE))
