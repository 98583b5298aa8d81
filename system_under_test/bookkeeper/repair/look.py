"""A look at a ledger: which bookies lack entries that they should hold.

A bookie that does not live lacks all of them. One that lives is asked for entries; an answer that does not come says
nothing, so a look that missed one is not certain. Of an open ledger only entries up to its LAC are looked for: what is
behind may never be acknowledged, and is its writer's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.bookkeeper.ledger.event import LacAnswered, ReadAnswered, ReadEntry, Reply
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata, LedgerState
from system_under_test.bookkeeper.ledger.verification import Verification
from system_under_test.bookkeeper.repair.event import AskLac, Living, LookEffect, LookEvent
from system_under_test.bookkeeper.repair.holdings import OwnEnds, Span, own_entries, spans


@dataclass(frozen=True, slots=True)
class Lack:
    span: Span
    bookie: str
    is_lost: bool
    """It does not live; otherwise it answered without an entry, or with a harmed one."""


class Look:
    """`begin`, then `step` until `is_over`; then `lacks` and `is_certain` say what was found."""

    def __init__(
        self,
        metadata: LedgerMetadata,
        bookies: Living,
        *,
        verification: Verification,
        probes: OwnEnds,
        most_at_once: int,
        only: str | None = None,
    ) -> None:
        """`only`: one bookie alone is looked at."""
        self.lacks: list[Lack] = []
        self.is_certain = True
        self._metadata = metadata
        self._available = frozenset(bookies.available)
        self._verification = verification
        self._probes = probes
        self._most_at_once = most_at_once
        self._only = only
        self._lac = NOTHING
        self._lacs_to_come: set[str] = set()
        self._reads: Iterator[tuple[Span, str, int]] | None = None
        self._asked: dict[tuple[str, int], Span] = {}
        self._lacking: set[tuple[Span, str]] = set()

    @property
    def is_over(self) -> bool:
        return self._reads is None and not self._asked and not self._lacs_to_come

    def begin(self) -> list[LookEffect]:
        if self._metadata.state is LedgerState.CLOSED:
            return self._look()
        ensemble = self._metadata.last_fragment.ensemble
        asked = [bookie for bookie in ensemble if bookie in self._available]
        self._lacs_to_come = set(asked)
        return [AskLac(bookie) for bookie in asked] or self._look()

    def step(self, event: LookEvent) -> list[LookEffect]:
        if isinstance(event, LacAnswered):
            return self._take_lac(event)
        span = self._asked.pop((event.bookie, event.entry), None)
        if span is None:
            return []
        self._take_entry(span, event)
        return self._ask()

    def _take_lac(self, event: LacAnswered) -> list[LookEffect]:
        if event.bookie not in self._lacs_to_come:
            return []
        self._lacs_to_come.remove(event.bookie)
        if event.reply is Reply.OK:
            self._lac = max(self._lac, event.lac)
        elif event.reply is Reply.SILENT:
            self.is_certain = False
        return [] if self._lacs_to_come else self._look()

    def _look(self) -> list[LookEffect]:
        self._reads = self._probe()
        return self._ask()

    def _probe(self) -> Iterator[tuple[Span, str, int]]:
        """Reads to be made; bookies that are lost are noted on the way."""
        for span in spans(self._metadata, self._lac):
            for bookie in span.fragment.ensemble:
                if self._only is not None and bookie != self._only:
                    continue
                if bookie in self._available:
                    for entry in self._probes.entries(self._metadata, span, bookie):
                        yield span, bookie, entry
                elif not span.is_final or next(own_entries(self._metadata, span, bookie), None) is not None:
                    self._note(Lack(span, bookie, is_lost=True))

    def _ask(self) -> list[LookEffect]:
        effects: list[LookEffect] = []
        while self._reads is not None and len(self._asked) < self._most_at_once:
            read = next(self._reads, None)
            if read is None:
                self._reads = None
                break
            span, bookie, entry = read
            if (span, bookie) not in self._lacking:
                self._asked[bookie, entry] = span
                effects.append(ReadEntry(bookie, entry, fences=False))
        return effects

    def _take_entry(self, span: Span, event: ReadAnswered) -> None:
        reply = self._verification.reply(event)
        if reply is Reply.SILENT:
            self.is_certain = False
        elif reply is not Reply.OK:
            self._note(Lack(span, event.bookie, is_lost=reply is Reply.GONE))

    def _note(self, lack: Lack) -> None:
        if (lack.span, lack.bookie) not in self._lacking:
            self._lacking.add((lack.span, lack.bookie))
            self.lacks.append(lack)
