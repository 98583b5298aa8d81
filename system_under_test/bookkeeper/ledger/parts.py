"""What writers, recoveries and readers of ledgers are made of, where a planted bug may put something else."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.bookkeeper.entry import Digest
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata
from system_under_test.bookkeeper.ledger.pending import PendingAdds
from system_under_test.bookkeeper.ledger.reader import EntryRead
from system_under_test.bookkeeper.ledger.recovery import Recovery
from system_under_test.bookkeeper.ledger.settlement import Publication
from system_under_test.bookkeeper.ledger.tally import EntryTally
from system_under_test.bookkeeper.ledger.verification import Verification
from system_under_test.bookkeeper.ledger.writer import Bounds, Writer


@dataclass(frozen=True, kw_only=True)
class LedgerParts:
    writer: type[Writer] = Writer
    recovery: type[Recovery] = Recovery
    pending: type[PendingAdds] = PendingAdds
    publication: type[Publication] = Publication
    entry_tally: type[EntryTally] = EntryTally
    verification: type[Verification] = Verification
    digest: type[Digest] = Digest

    def make_writer(self, metadata: LedgerMetadata, bounds: Bounds) -> Writer:
        return self.writer(
            metadata,
            bounds,
            verification=self._verification(metadata),
            pending=self.pending,
            publication=self.publication,
        )

    def make_recovery(self, metadata: LedgerMetadata, bounds: Bounds) -> Recovery:
        return self.recovery(
            metadata,
            bounds,
            verification=self._verification(metadata),
            pending=self.pending,
            publication=self.publication,
            entry_tally=self.entry_tally,
        )

    def make_read(self, metadata: LedgerMetadata, entry: int) -> EntryRead:
        return EntryRead(metadata, entry, verification=self._verification(metadata))

    def _verification(self, metadata: LedgerMetadata) -> Verification:
        return self.verification(metadata.ledger, self.digest())
