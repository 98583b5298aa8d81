"""Copies of a fragment's entries, from bookies that have them to bookies that should.

Each target is asked first: what it has needs no copy, and is a source for others. What goes over the wire is what a
bookie had on its disk, byte for byte, and its checksum fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from system_under_test.bookkeeper.ledger.event import AddAnswered, ReadAnswered, ReadEntry, Reply
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata
from system_under_test.bookkeeper.ledger.placement import write_set
from system_under_test.bookkeeper.ledger.verification import Verification
from system_under_test.bookkeeper.repair.event import Copy, EntryLost, Living
from system_under_test.bookkeeper.repair.holdings import Span

CopyEffect = ReadEntry | Copy | EntryLost


class CopyEnd(Enum):
    KEPT = "every target has the entry already"
    COPIED = "every target has the entry now"
    LOST = "nobody has the entry"
    FAILED = "a bookie that may have it does not answer, or a target does not take it"


class EntryCopy:
    """`begin`, then `step` until `end` is set."""

    def __init__(
        self,
        entry: int,
        targets: list[str],
        sources: list[str],
        *,
        available: frozenset[str],
        verification: Verification,
    ) -> None:
        """`sources`: who else may have it, in the order in which they are asked."""
        self.end: CopyEnd | None = None
        self.entry = entry
        self._targets = dict.fromkeys(targets)
        self._sources = list(reversed(sources))
        self._available = available
        self._verification = verification
        self._unheard = dict.fromkeys(targets)
        """Targets that have yet to say whether they have it."""
        self._data: bytes | None = None
        self._may_be_there = False
        self._is_refused = False

    def begin(self) -> list[CopyEffect]:
        return [ReadEntry(target, self.entry, fences=False) for target in self._targets]

    def step(self, event: ReadAnswered | AddAnswered) -> list[CopyEffect]:
        if isinstance(event, AddAnswered):
            self._take_add(event)
            return []
        reply = self._verification.reply(event)
        if reply is Reply.OK:
            self._data = event.data
            self._targets.pop(event.bookie, None)
        elif reply is Reply.SILENT or (reply is Reply.UNKNOWN and event.bookie not in self._available):
            self._may_be_there = True
        self._unheard.pop(event.bookie, None)
        return [] if self._unheard else self._go_on()

    def _go_on(self) -> list[CopyEffect]:
        if not self._targets:
            self.end = CopyEnd.KEPT
        elif self._data is not None:
            return [Copy(target, self.entry, self._data) for target in self._targets]
        elif self._sources:
            return [ReadEntry(self._sources.pop(), self.entry, fences=False)]
        elif self._may_be_there:
            self.end = CopyEnd.FAILED
        else:
            self.end = CopyEnd.LOST
            return [EntryLost(self.entry)]
        return []

    def _take_add(self, event: AddAnswered) -> None:
        del self._targets[event.bookie]
        self._is_refused |= event.reply is not Reply.OK
        if not self._targets:
            self.end = CopyEnd.FAILED if self._is_refused else CopyEnd.COPIED


class FragmentCopy:
    """All entries that some bookies of a fragment should hold, to those that take their places: `begin`, then `step`
    until `is_over`."""

    def __init__(
        self,
        metadata: LedgerMetadata,
        span: Span,
        replaced: Mapping[str, str],
        *,
        bookies: Living,
        verification: Verification,
        most_at_once: int,
    ) -> None:
        """`replaced`: target by the bookie whose entries it is to have; a bookie may be its own target."""
        self.failed: set[str] = set()
        """Replaced bookies of which not all entries could be copied, though they may be somewhere."""
        self.has_copied = False
        self._metadata = metadata
        self._span = span
        self._replaced = replaced
        self._available = frozenset(bookies.available)
        self._verification = verification
        self._most_at_once = most_at_once
        self._to_come: Iterator[EntryCopy] | None = self._copies()
        self._under_way: dict[int, EntryCopy] = {}

    @property
    def is_over(self) -> bool:
        return self._to_come is None and not self._under_way

    def begin(self) -> list[CopyEffect]:
        return self._ask()

    def step(self, event: ReadAnswered | AddAnswered) -> list[CopyEffect]:
        copy = self._under_way.get(event.entry)
        if copy is None:
            return []
        effects = copy.step(event)
        if copy.end is not None:
            del self._under_way[event.entry]
            self._note(event.entry, copy)
            effects += self._ask()
        return effects

    def _copies(self) -> Iterator[EntryCopy]:
        for entry in range(self._span.fragment.first_entry, self._span.last_entry + 1):
            bookies = write_set(self._metadata, self._span.fragment, entry)
            targets = [self._replaced[bookie] for bookie in bookies if bookie in self._replaced]
            if targets:
                yield EntryCopy(
                    entry,
                    targets,
                    sorted((bookie for bookie in bookies if bookie not in targets), key=self._is_worse),
                    available=self._available,
                    verification=self._verification,
                )

    def _is_worse(self, source: str) -> tuple[bool, bool]:
        """The later a source is asked: those that lack something, and last of all those that do not live."""
        return source not in self._available, source in self._replaced

    def _ask(self) -> list[CopyEffect]:
        effects: list[CopyEffect] = []
        while self._to_come is not None and len(self._under_way) < self._most_at_once:
            copy = next(self._to_come, None)
            if copy is None:
                self._to_come = None
                break
            self._under_way[copy.entry] = copy
            effects += copy.begin()
        return effects

    def _note(self, entry: int, copy: EntryCopy) -> None:
        self.has_copied |= copy.end is CopyEnd.COPIED
        if copy.end is CopyEnd.FAILED:
            concerned = write_set(self._metadata, self._span.fragment, entry)
            self.failed.update(bookie for bookie in concerned if bookie in self._replaced)
