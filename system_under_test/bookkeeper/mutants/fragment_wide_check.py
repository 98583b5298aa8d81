from __future__ import annotations

from collections.abc import Iterator

from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata
from system_under_test.bookkeeper.repair.holdings import OwnEnds, Span
from system_under_test.bookkeeper.repair.parts import RepairParts
from system_under_test.node.mutant import Mutant


class EndsOfTheFragment(OwnEnds):
    def entries(self, metadata: LedgerMetadata, span: Span, bookie: str) -> Iterator[int]:
        ends = dict.fromkeys((span.fragment.first_entry, span.last_entry))
        return (entry for entry in super().entries(metadata, span, bookie) if entry in ends)


MUTANT = Mutant(
    name="fragment-wide-check",
    breaks="a bookie that lost the first or the last entry that it should hold is found",
    parts=(RepairParts(probes=EndsOfTheFragment()),),
)
