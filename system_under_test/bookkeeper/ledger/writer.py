"""Who writes a ledger: `step(event)` changes its state and says what is to be done, in which order.

No clock, no sockets, no randomness: answers that do not come in time are events, and so is the order in which bookies
are to be chosen. The writer alone decides what is acknowledged: an entry that Qa of its bookies have, once all before
it are. LAP is the last entry that it pushed, LAC the last one that it acknowledged.

A bookie that fails is replaced from LAC + 1 on, in one compare-and-set of the metadata. Until that is settled nothing
is acknowledged and nothing sent, for the new fragment begins where LAC was, and its start turns all write sets. Where
nobody is there to replace it, the ensemble stays as long as every entry may still get its Qa.

What was pushed and not acknowledged is never refused for certain: a recovery may find it.

Source: the description of BookKeeper in TDMQ's documents; BookKeeper 4.17.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.bookkeeper.ledger.event import (
    AddAnswered,
    Added,
    Append,
    Close,
    Closed,
    Effect,
    Ended,
    Failed,
    Held,
    LacDue,
    LacWritten,
    MetadataRead,
    Published,
    Reason,
    Reply,
    Writable,
    WriterEvent,
)
from system_under_test.bookkeeper.ledger.metadata import Fragment, LedgerMetadata, LedgerState
from system_under_test.bookkeeper.ledger.pending import PendingAdd, PendingAdds
from system_under_test.bookkeeper.ledger.settlement import Overtaken, Publication, Settled
from system_under_test.bookkeeper.ledger.spread import LacSpread
from system_under_test.bookkeeper.ledger.suspects import Suspects
from system_under_test.bookkeeper.ledger.verification import Verification


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    most_pending: int = 1_024
    """Entries that wait to be acknowledged; one more is refused."""
    most_payload_bytes: int = 1024 * 1024
    most_changes: int = 100
    """So often one handle may change the ensemble."""
    most_tries: int = 10
    """So often the metadata are changed or read without an answer that settles what is in the store."""


class Phase(Enum):
    OPEN = auto()
    CLOSING = auto()
    """A client asked for that; what is pending is waited for."""
    GIVING_UP = auto()
    """What was pending has failed; the ledger is closed with what was acknowledged."""
    OVER = auto()


class Writer:
    """Reading attributes is free; only `step` changes them."""

    def __init__(
        self,
        metadata: LedgerMetadata,
        bounds: Bounds,
        *,
        verification: Verification,
        pending: type[PendingAdds] = PendingAdds,
        publication: type[Publication] = Publication,
    ) -> None:
        """`metadata`: of a ledger that was just created, and that nobody else writes."""
        self.metadata = metadata
        """As the store has it, as far as this writer is concerned."""
        self.lap = NOTHING
        self.lac = NOTHING
        self.phase = Phase.OPEN
        self._bounds = bounds
        self._verification = verification
        self._publication_type = publication
        self._length = 0
        """Bytes of all payloads that were pushed."""
        self._lac_length = 0
        self._pending = pending(metadata, metadata.last_fragment)
        self._spread = LacSpread()
        self._suspects = Suspects()
        self._troubled: dict[str, None] = {}
        """Bookies of the ensemble that failed, and have acknowledged nothing since."""
        self._publication: Publication | None = None
        self._changes = 0
        self._closers: list[int] = []
        """Tokens of those who asked for the ledger to be closed."""
        self._reason: Reason | None = None
        """Why the handle gave up."""
        self._effects: list[Effect] = []

    @property
    def visible_lac(self) -> int:
        """Up to which readers may read. What is pushed now carries it to them."""
        return self.lac

    @property
    def pending(self) -> int:
        return len(self._pending)

    @property
    def is_changing(self) -> bool:
        """Whether it is not settled which ensemble has what is pending, or how the ledger ends."""
        return self._publication is not None

    def step(self, event: WriterEvent) -> list[Effect]:
        effects = self._effects = []
        if isinstance(event, Append):
            self._append(event)
        elif isinstance(event, Close):
            self._close(event.token)
        elif self.phase is Phase.OVER:
            pass
        elif isinstance(event, AddAnswered):
            self._answered(event)
        elif isinstance(event, LacDue):
            self._write_lac()
        elif isinstance(event, LacWritten):
            self._lac_written(event)
        elif isinstance(event, Writable):
            self._suspects.writable(event.bookies)
            self._attend()
        elif isinstance(event, Published):
            if self._publication is not None:
                self._settle(self._publication.published(event.version))
        elif self._publication is not None:
            assert isinstance(event, MetadataRead)
            self._settle(self._publication.read(event.metadata))
        return effects

    # -- clients

    def _append(self, event: Append) -> None:
        refusal = self._refusal(event)
        if refusal is not None:
            self._effects.append(Failed(event.token, refusal, is_definite=True))
            return
        self.lap += 1
        self._length += len(event.payload)
        data = self._verification.seal(self.lap, self.visible_lac, self._length, event.payload)
        self._spread.carries(self.visible_lac)
        add = self._pending.push(PendingAdd(self.lap, data, self._length, event.token))
        if self.may_send():
            self._effects += self._pending.sends_of(add)

    def _refusal(self, event: Append) -> Reason | None:
        if self.phase is not Phase.OPEN:
            return Reason.NOT_OPEN
        if len(self._pending) >= self._bounds.most_pending:
            return Reason.PENDING_FULL
        return Reason.TOO_LONG if len(event.payload) > self._bounds.most_payload_bytes else None

    def _close(self, token: int) -> None:
        self._closers.append(token)
        if self.phase is Phase.OVER:
            self._over(self._reason or Reason.NOT_OPEN)
        elif self.phase is Phase.OPEN:
            self.phase = Phase.CLOSING
            self._attend()

    # -- bookies

    def _answered(self, event: AddAnswered) -> None:
        if self.phase is Phase.GIVING_UP:
            return
        if event.reply is Reply.FENCED:
            self._end(Reason.FENCED)
            return
        if event.reply is Reply.OK:
            self._suspects.has_served(event.bookie)
            self._troubled.pop(event.bookie, None)
            is_known = self.may_acknowledge() or self._pending.front_is_reached
            self._pending.acknowledged(event.bookie, event.entry)
            if not is_known and self._pending.front_is_reached:
                self._effects.append(Held(self.lac + 1))
        else:
            self._suspects.has_failed(event.bookie)
            self._pending.failed(event.bookie, event.entry)
            if event.bookie in self.metadata.last_fragment.ensemble:
                self._troubled[event.bookie] = None
        self._go_on()

    def may_send(self) -> bool:
        return not self.is_changing

    def may_acknowledge(self) -> bool:
        return not self.is_changing

    def _go_on(self) -> None:
        if self.may_acknowledge():
            for add in self._pending.reached():
                self.lac, self._lac_length = add.entry, add.length
                self._effects.append(Added(add.token, add.entry))
        self._attend()

    def _attend(self) -> None:
        """To bookies that failed, and to an end that was asked for."""
        if self.is_changing or self.phase is Phase.OVER:
            return
        if self.phase is Phase.CLOSING and not self._pending:
            self._publish(self.metadata.closed(self.lac, self._lac_length))
        elif self._troubled:
            is_hopeless = self._pending.is_hopeless
            ensemble = self.metadata.last_fragment.ensemble
            changed = self._suspects.replace(ensemble, self._troubled, in_need=is_hopeless)
            if changed is not None and self._changes < self._bounds.most_changes:
                self._changes += 1
                self.change(Fragment(self.lac + 1, changed, self._lac_length))
            elif changed is not None or is_hopeless:
                self._give_up(Reason.NOT_ENOUGH_BOOKIES if changed is None else Reason.TOO_MANY_CHANGES)

    def _write_lac(self) -> None:
        if self.may_send() and self.phase is Phase.OPEN:
            self._effects += self._spread.writes(self.metadata.last_fragment.ensemble, self.visible_lac)

    def _lac_written(self, event: LacWritten) -> None:
        """A bookie that fails is replaced when it is needed for an entry."""
        self._spread.written(event)
        if event.reply is Reply.FENCED:
            self._end(Reason.FENCED)

    # -- metadata

    def change(self, fragment: Fragment) -> None:
        """The ensemble, from the fragment's first entry on."""
        self._publish(self.metadata.with_ensemble(fragment))

    def _publish(self, wanted: LedgerMetadata) -> None:
        self._publication = self._publication_type(self.metadata, wanted, self._bounds.most_tries)
        self._settle(self._publication.next_try())

    def _settle(self, came: Effect | Settled | Overtaken) -> None:
        if isinstance(came, Settled):
            self._publication = None
            self._settled(came.metadata)
        elif isinstance(came, Overtaken):
            self._end(Reason.METADATA_SILENT if came.found is None else Reason.OVERTAKEN)
        else:
            self._effects.append(came)

    def _settled(self, metadata: LedgerMetadata) -> None:
        self.metadata = metadata
        if metadata.state is LedgerState.CLOSED:
            self._over(self._reason or Reason.NOT_OPEN)
            return
        fragment = metadata.last_fragment
        self._troubled = {bookie: None for bookie in self._troubled if bookie in fragment.ensemble}
        self._pending.place_anew(fragment)
        self._effects += self._pending.sends()
        self._go_on()

    # -- the end

    def _give_up(self, reason: Reason) -> None:
        """Close with what was acknowledged, so that nobody has to recover it."""
        self._reason = reason
        self._fail(reason)
        self.phase = Phase.GIVING_UP
        self._publish(self.metadata.closed(self.lac, self._lac_length))

    def _end(self, reason: Reason) -> None:
        """At once: the ledger is somebody else's, or it is not known what is in the store."""
        self._fail(reason)
        self._over(self._reason or reason)

    def _fail(self, reason: Reason) -> None:
        for add in self._pending.drop_all():
            is_definite = self.is_definite(reason)
            self._effects.append(Failed(add.token, reason, is_definite=is_definite, entry=add.entry))

    def is_definite(self, reason: Reason) -> bool:
        """Of what was pushed, and has failed for this reason. Never: recovery may have found it."""
        return False

    def _over(self, reason: Reason) -> None:
        if self.phase is not Phase.OVER:
            self._effects.append(Ended(reason))
        self.phase, self._reason, self._publication = Phase.OVER, reason, None
        is_closed = self.metadata.state is LedgerState.CLOSED
        for token in self._closers:
            self._effects.append(
                Closed(token, self.metadata.last_entry) if is_closed else Failed(token, reason, is_definite=False)
            )
        self._closers.clear()
