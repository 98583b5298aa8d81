"""What a bookie reports of itself, so that bookies can be held against each other and invariants be judged.

A ledger is a log, `ledger-N`, of which a bookie holds the entries that it was sent: each is reported with its checksum,
and up to where the ledger is confirmed, as entries tell. All counts are of entries: all before 3 are those of 0 to 2.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable

from system_under_test.bookkeeper.bookie.registration import Willing
from system_under_test.bookkeeper.bookie.store import Store
from system_under_test.bookkeeper.entry import Entry
from system_under_test.runtime.host import Host


def log_of(ledger: int) -> str:
    """The name of its log."""
    return f"ledger-{ledger}"


def runs(entries: Iterable[int]) -> list[int]:
    """The first and the last one of each run of ascending numbers that has no hole, one behind the other."""
    bounds: list[int] = []
    for entry in entries:
        if bounds and entry == bounds[-1] + 1:
            bounds[-1] = entry
        else:
            bounds += (entry, entry)
    return bounds


class BookieReports:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._confirmed: dict[int, int] = {}
        """By ledger, what was not reported yet."""

    def identity(self, identity: str, *, is_fresh: bool) -> None:
        self._host.log("bookie", bookie=identity, fresh=is_fresh)

    def started(self, store: Store) -> None:
        fenced = sorted(ledger for ledger, notes in store.ledgers.items() if notes.is_fenced)
        lasts = ((ledger, store.index.last(ledger)) for ledger in store.index.ledgers())
        ends = [(ledger, last + 1) for ledger, last in lasts if last is not None]
        self._host.log("remembers", fences=fenced, ends=ends)
        for ledger, notes in sorted(store.ledgers.items()):
            self.ledger(ledger)
            entries = runs(store.index.entries(ledger, 0, sys.maxsize))
            end = entries[-1] + 1 if entries else 0
            self._host.log("recovered", log=log_of(ledger), end=end, entries=entries)
            self._host.log("confirmed", log=log_of(ledger), offset=notes.lac + 1, master_epoch=0)
        self._host.log("logs", logs=[log_of(ledger) for ledger in sorted(store.ledgers)])

    def ledger(self, ledger: int) -> None:
        """It is a new one here."""
        self._host.log("log", log=log_of(ledger), unit="entries")

    def added(self, entry: Entry, *, is_recovery: bool, is_new: bool, serial: int) -> None:
        """Not durable yet. `is_new`: there was none of this number, or it was not the same."""
        if is_new:
            start, log = entry.entry, log_of(entry.ledger)
            checksum = zlib.crc32(entry.payload)
            self._host.log("written", log=log, start=start, end=start + 1, checksum=checksum, is_recovery=is_recovery)
        self._host.reached(
            "entry-journaled", ledger=entry.ledger, entry=entry.entry, recovery=int(is_recovery), serial=serial
        )

    def confirms(self, ledger: int, lac: int) -> None:
        """Reported with the next acknowledgement, for each entry confirms those before it."""
        self._confirmed[ledger] = lac

    def confirmed(self) -> None:
        for ledger, lac in sorted(self._confirmed.items()):
            self._host.log("confirmed", log=log_of(ledger), offset=lac + 1, master_epoch=0)
        self._confirmed.clear()

    def fence_written(self, ledger: int) -> None:
        self._host.reached("fence-written", ledger=ledger)

    def fence_durable(self, ledger: int) -> None:
        """And not answered."""
        self._host.log("fenced", ledger=ledger)
        self._host.reached("fence-durable", ledger=ledger)

    def limbo(self, ledgers: list[int]) -> None:
        self._host.log("limbo", ledgers=ledgers)

    def checkpoint(self, position: int) -> None:
        self._host.log("checkpoint", position=position)
        self._host.reached("checkpoint-written")

    def willing(self, willing: Willing) -> None:
        """And registered so."""
        self._host.log("willing", state=willing.value)
        if willing is Willing.READ_ONLY:
            self._host.reached("turned-read-only")
