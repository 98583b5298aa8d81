"""Who recovers a ledger: fences it, finds its end, and closes it. `step(event)`, as of the writer.

1. IN_RECOVERY by compare-and-set: from now on the writer cannot change the ensemble any more.
2. LAC reads that fence, until in no write set of the last ensemble Qa bookies are left that may acknowledge anything.
3. Reads that fence, entry by entry, from behind what was acknowledged. What is found may have been acknowledged: it is
   written again, byte for byte, to its whole write set. What cannot have been acknowledged ends the ledger.
4. CLOSED by compare-and-set, together with what had to change of the ensemble meanwhile. Until then nobody reads there,
   and entries are looked for where the writer put them.

Any number may recover one ledger at once: one compare-and-set closes it, and all take its result.

Source: the description of BookKeeper in TDMQ's documents; BookKeeper 4.17.
"""

from __future__ import annotations

from enum import Enum, auto

from system_under_test.bookkeeper.entry import NOTHING, Entry
from system_under_test.bookkeeper.ledger.event import (
    AddAnswered,
    Begin,
    Effect,
    GaveUp,
    LacAnswered,
    MetadataRead,
    Published,
    ReadAnswered,
    ReadEntry,
    ReadLac,
    Reason,
    Recovered,
    RecoveryEvent,
    Reply,
    Writable,
)
from system_under_test.bookkeeper.ledger.metadata import Fragment, LedgerMetadata, LedgerState
from system_under_test.bookkeeper.ledger.pending import PendingAdd, PendingAdds
from system_under_test.bookkeeper.ledger.placement import bookies_of
from system_under_test.bookkeeper.ledger.settlement import Overtaken, Publication, Settled
from system_under_test.bookkeeper.ledger.suspects import Suspects
from system_under_test.bookkeeper.ledger.tally import EntryTally, LacTally, Presence
from system_under_test.bookkeeper.ledger.verification import Verification
from system_under_test.bookkeeper.ledger.writer import Bounds


class Stage(Enum):
    MARKING = auto()
    FENCING = auto()
    READING = auto()
    MEASURING = auto()
    """The length of the ledger is read from its last entry, which was acknowledged."""
    REWRITING = auto()
    """All that is there was found."""
    CLOSING = auto()
    OVER = auto()


class Recovery:
    """Reading attributes is free; only `step` changes them."""

    def __init__(
        self,
        metadata: LedgerMetadata,
        bounds: Bounds,
        *,
        verification: Verification,
        pending: type[PendingAdds] = PendingAdds,
        publication: type[Publication] = Publication,
        entry_tally: type[EntryTally] = EntryTally,
    ) -> None:
        """`metadata`: as they were just read."""
        self.metadata = metadata
        self.stage = Stage.MARKING
        self._bounds = bounds
        self._verification = verification
        self._pending_type = pending
        self._publication_type = publication
        self._entry_tally_type = entry_tally
        self._suspects = Suspects()
        self._troubled: dict[str, None] = {}
        self._publication: Publication | None = None
        self._changes = 0
        self._effects: list[Effect] = []
        self._go_by(metadata)

    def _go_by(self, metadata: LedgerMetadata) -> None:
        """And forget what was found out by older ones."""
        fragment = metadata.last_fragment
        self.metadata = metadata
        self._aside = metadata
        """With the ensembles that are published together with CLOSED."""
        self._pending = self._pending_type(metadata, fragment)
        self._lac_tally = LacTally(metadata, fragment)
        self._tally: EntryTally | None = None
        """Of the entry that is looked for."""
        self._reads = fragment.first_entry
        """The entry that is looked for, or will be next."""
        self._length: int | None = fragment.bytes_before
        """Bytes of all payloads before that; None where it is not known yet."""
        self._rewritten = fragment.first_entry - 1
        """Qa bookies have all up to this one."""
        self._rewritten_length = fragment.bytes_before

    def step(self, event: RecoveryEvent) -> list[Effect]:
        effects = self._effects = []
        if isinstance(event, Writable):
            self._suspects.writable(event.bookies)
            self._attend()
        elif self.stage is Stage.OVER:
            pass
        elif isinstance(event, Begin):
            self._begin()
        elif isinstance(event, LacAnswered):
            self._take_lac(event)
        elif isinstance(event, ReadAnswered):
            self._take_entry(event)
        elif isinstance(event, AddAnswered):
            self._take_add(event)
        elif self._publication is not None:
            if isinstance(event, Published):
                self._settle(self._publication.published(event.version))
            else:
                assert isinstance(event, MetadataRead)
                self._settle(self._publication.read(event.metadata))
        return effects

    # -- metadata

    def _begin(self) -> None:
        """By these metadata."""
        if self.metadata.state is LedgerState.CLOSED:
            self._over(Recovered(self.metadata))
        elif self.metadata.state is LedgerState.OPEN:
            self.stage = Stage.MARKING
            self._publish(self.metadata.in_recovery())
        else:
            self._fence()

    def _publish(self, wanted: LedgerMetadata) -> None:
        self._publication = self._publication_type(self.metadata, wanted, self._bounds.most_tries)
        self._settle(self._publication.next_try())

    def _settle(self, came: Effect | Settled | Overtaken) -> None:
        if isinstance(came, Settled):
            self._publication = None
            self._go_by(came.metadata)
            self._begin()
        elif not isinstance(came, Overtaken):
            self._effects.append(came)
        elif came.found is None:
            self._over(GaveUp(Reason.METADATA_SILENT))
        else:
            self._overtaken(came.found)

    def _overtaken(self, found: LedgerMetadata) -> None:
        """The writer changed the ensemble before it was marked, or somebody else closed the ledger."""
        self._publication = None
        if self.stage is Stage.CLOSING and found.state is not LedgerState.CLOSED:
            self._over(GaveUp(Reason.OVERTAKEN))
            return
        self._changes += 1
        if self._changes > self._bounds.most_changes:
            self._over(GaveUp(Reason.TOO_MANY_CHANGES))
            return
        self._go_by(found)
        self._begin()

    # -- the end of the ledger

    def _fence(self) -> None:
        self.stage = Stage.FENCING
        self._effects += [ReadLac(bookie) for bookie in self.metadata.last_fragment.ensemble]

    def _take_lac(self, event: LacAnswered) -> None:
        # Also of one that answers when enough others are fenced: what it says of entries is to be judged by that.
        self._lac_tally.take(event.bookie, event.reply, event.lac)
        if self.stage is not Stage.FENCING:
            return
        self._note(event.bookie, event.reply)
        if self._lac_tally.is_covered:
            self._reads = self.first_read(self._lac_tally.lac)
            self._rewritten = self._reads - 1
            if self._reads != self.metadata.last_fragment.first_entry:
                self._length = None
            self.stage = Stage.READING
            self._read()
        elif self._lac_tally.is_over:
            self._over(GaveUp(Reason.UNDECIDED))

    def first_read(self, lac: int) -> int:
        """Bookies of an empty ensemble know no LAC, but it began behind what was acknowledged."""
        return max(lac, self.metadata.last_fragment.first_entry - 1) + 1

    def reads_fence(self) -> bool:
        """A bookie that was not reached by an LAC read may acknowledge the entry after it said that it has it not."""
        return True

    def _read(self) -> None:
        bookies = bookies_of(self.metadata, self._reads)
        self._tally = self._entry_tally_type(bookies, self.metadata)
        self._effects += [ReadEntry(bookie, self._reads, self.reads_fence()) for bookie in bookies]

    def _take_entry(self, event: ReadAnswered) -> None:
        tally = self._tally
        if tally is None or event.entry != self._reads:
            return
        reply = self._verification.reply(event)
        self._note(event.bookie, reply)
        if reply is Reply.UNKNOWN and event.bookie in self._lac_tally.served:
            # It is in limbo: it may have lost the entry, and does not have it.
            reply = Reply.GONE
        tally.take(event.bookie, reply)
        presence = tally.presence
        if presence is Presence.OPEN:
            return
        self._tally = None
        found = self._verification.entry(event) if presence is Presence.FOUND else None
        if presence is Presence.UNDECIDED and (self.stage is Stage.READING or tally.may_be_found):
            self._over(GaveUp(Reason.UNDECIDED))
        elif self.stage is Stage.MEASURING:
            # What nobody has any more adds nothing; that it was lost is for others to find.
            self._found_all(self._reads, self.metadata.last_fragment.bytes_before if found is None else found.length)
        elif found is not None:
            self._found(found, event.data)
        elif self._length is not None:
            self._found_all(self._reads - 1, self._length)
        else:
            self.stage = Stage.MEASURING
            self._reads -= 1
            self._read()

    def _found(self, entry: Entry, data: bytes) -> None:
        if self._length is None:
            self._rewritten_length = entry.length - len(entry.payload)
        self._length = entry.length
        self._reads += 1
        add = self._pending.push(PendingAdd(entry.entry, data, entry.length, token=NOTHING))
        self._attend()
        self._effects += self._pending.sends_of(add)
        self._go_on()

    # -- entries that were found

    def _note(self, bookie: str, reply: Reply) -> None:
        """Who does not answer now will hardly take what is written again."""
        if reply in (Reply.SILENT, Reply.GONE):
            self._suspects.has_failed(bookie)
            self._troubled[bookie] = None

    def _take_add(self, event: AddAnswered) -> None:
        if event.reply is Reply.OK:
            self._suspects.has_served(event.bookie)
            self._troubled.pop(event.bookie, None)
            self._pending.acknowledged(event.bookie, event.entry)
        else:
            self._suspects.has_failed(event.bookie)
            self._troubled[event.bookie] = None
            self._pending.failed(event.bookie, event.entry)
        for add in self._pending.reached():
            self._rewritten, self._rewritten_length = add.entry, add.length
        self._attend()
        self._go_on()

    def _attend(self) -> None:
        """To bookies that failed: what is not rewritten yet goes elsewhere, and is published with the end."""
        ensemble = self._aside.last_fragment.ensemble
        self._troubled = {bookie: None for bookie in self._troubled if bookie in ensemble}
        if not self._troubled or not self._pending or self.stage is Stage.OVER:
            return
        is_hopeless = self._pending.is_hopeless
        changed = self._suspects.replace(ensemble, self._troubled, in_need=is_hopeless)
        if changed is not None and self._changes < self._bounds.most_changes:
            self._changes += 1
            fragment = Fragment(self._rewritten + 1, changed, self._rewritten_length)
            self._aside = self._aside.with_ensemble(fragment)
            self._pending.place_anew(fragment)
            self._effects += self._pending.sends()
        elif is_hopeless:
            self._over(GaveUp(Reason.NOT_ENOUGH_BOOKIES if changed is None else Reason.TOO_MANY_CHANGES))

    def _go_on(self) -> None:
        if self.stage is Stage.READING and self._tally is None and len(self._pending) < self._bounds.most_pending:
            self._read()
        elif self.stage is Stage.REWRITING and not self._pending:
            self._close()

    def _found_all(self, last_entry: int, length: int) -> None:
        self.stage = Stage.REWRITING
        self._reads, self._length = last_entry + 1, length
        self._go_on()

    def _close(self) -> None:
        assert self._length is not None
        self.stage = Stage.CLOSING
        self._publish(self._aside.closed(self._reads - 1, self._length))

    def _over(self, effect: Recovered | GaveUp) -> None:
        self.stage = Stage.OVER
        self._publication = None
        self._effects.append(effect)
