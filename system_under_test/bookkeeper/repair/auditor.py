"""Who marks ledgers that lack copies: one bookie's process at a time. `step(event, now_ns)`.

It looks which bookies live whenever one comes or goes, and at intervals, since nothing of that may have been heard. At
other intervals it looks at all ledgers, and, if switched on, at every entry of all. One that was just elected does all
of this at once: nobody knows when it was done last.

Whenever a bookie is lost anew, its ledgers are marked anew as well, for a worker that saw it alive may be about to take
the old mark away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata
from system_under_test.bookkeeper.repair.event import AuditorEffect, LookAtLedger, ReadLedgers, SetMark
from system_under_test.bookkeeper.repair.holdings import own_entries, spans
from system_under_test.bookkeeper.repair.marks import Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTimes:
    lost_after_ns: int
    """A bookie that does not live for so long is lost."""
    bookies_every_ns: int
    ledgers_every_ns: int
    entries_every_ns: int | None
    """The interval of looks at every entry; None: there are none."""


class Audit(Enum):
    """What is looked at."""

    BOOKIES = auto()
    LEDGERS = auto()
    ENTRIES = auto()


# -- events


@dataclass(frozen=True, slots=True)
class BookiesSeen:
    """Those that live now, after one may have come or gone."""

    available: frozenset[str]


@dataclass(frozen=True, slots=True)
class LedgersRead:
    ledgers: tuple[LedgerMetadata, ...]
    marks: Mapping[int, Mark]
    """The marks that there are, by ledger."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of a `LookAtLedger`: the bookies that lack entries."""

    ledger: int
    every_entry: bool
    lacking: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Due:
    """It is `deadline_ns`, or later."""


AuditorEvent = BookiesSeen | LedgersRead | Looked | Due


class Auditor:
    """One that was just elected. Reading attributes is free; only `step` changes them."""

    def __init__(self, times: AuditTimes, now_ns: int) -> None:
        self._times = times
        self._next_ns = {Audit.BOOKIES: now_ns, Audit.LEDGERS: now_ns}
        if times.entries_every_ns is not None:
            self._next_ns[Audit.ENTRIES] = now_ns
        self._available: frozenset[str] | None = None
        self._absent_since_ns: dict[str, int] = {}
        self._marked: set[tuple[int, str]] = set()
        """Ledgers that this auditor has marked, each with a bookie that it took for lost and that did not come back."""
        self._under_way: list[Audit] = []
        """What the ledgers are being read for."""

    @property
    def deadline_ns(self) -> int:
        """When something is due, as far as it is known."""
        return min(self._next_ns.values())

    def step(self, event: AuditorEvent, now_ns: int) -> list[AuditorEffect]:
        if isinstance(event, LedgersRead):
            return self._audit(event, now_ns)
        if isinstance(event, Looked):
            mark = Mark(tuple(sorted(set(event.lacking))), event.every_entry)
            return [SetMark(event.ledger, mark)] if event.lacking else []
        if isinstance(event, BookiesSeen):
            self._available = event.available
            for bookie in [each for each in self._absent_since_ns if each in event.available]:
                del self._absent_since_ns[bookie]
            self._marked = {(ledger, bookie) for ledger, bookie in self._marked if bookie not in event.available}
            self._next_ns[Audit.BOOKIES] = now_ns
        return self._begin(now_ns)

    def _begin(self, now_ns: int) -> list[AuditorEffect]:
        due = [audit for audit, at_ns in self._next_ns.items() if at_ns <= now_ns]
        if self._available is None or self._under_way or not due:
            return []
        self._under_way = due
        return [ReadLedgers()]

    def _audit(self, read: LedgersRead, now_ns: int) -> list[AuditorEffect]:
        effects: list[AuditorEffect] = []
        audits, self._under_way = self._under_way, []
        for audit in audits:
            self._next_ns[audit] = now_ns + self._interval_ns(audit)
            if audit is Audit.BOOKIES:
                effects += self._lost(read, now_ns)
            else:
                looks = (LookAtLedger(each.ledger, audit is Audit.ENTRIES) for each in read.ledgers)
                effects += looks
        return effects

    def _interval_ns(self, audit: Audit) -> int:
        times = self._times
        if audit is Audit.BOOKIES:
            return times.bookies_every_ns
        if audit is Audit.LEDGERS:
            return times.ledgers_every_ns
        assert times.entries_every_ns is not None, "it is never due"
        return times.entries_every_ns

    def _lost(self, read: LedgersRead, now_ns: int) -> list[AuditorEffect]:
        assert self._available is not None
        effects: list[AuditorEffect] = []
        for metadata in read.ledgers:
            lost = tuple(sorted(bookie for bookie in needed(metadata) if self._is_lost(bookie, now_ns)))
            mark, known = read.marks.get(metadata.ledger), {(metadata.ledger, bookie) for bookie in lost}
            if lost and not (mark is not None and set(lost) <= set(mark.bookies) and known <= self._marked):
                self._marked |= known
                effects.append(SetMark(metadata.ledger, Mark(lost, every_entry=False)))
        return effects

    def _is_lost(self, bookie: str, now_ns: int) -> bool:
        assert self._available is not None
        if bookie in self._available:
            return False
        lost_ns = self._absent_since_ns.setdefault(bookie, now_ns) + self._times.lost_after_ns
        if lost_ns > now_ns:
            self._next_ns[Audit.BOOKIES] = min(self._next_ns[Audit.BOOKIES], lost_ns)
        return lost_ns <= now_ns


def needed(metadata: LedgerMetadata) -> set[str]:
    """The bookies that should hold entries of a ledger, or may get more."""
    return {
        bookie
        for span in spans(metadata, NOTHING)
        for bookie in span.fragment.ensemble
        if not span.is_final or next(own_entries(metadata, span, bookie), None) is not None
    }
