from __future__ import annotations

from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.writer import Writer
from system_under_test.node.mutant import Mutant


class AcknowledgesMeanwhile(Writer):
    def may_acknowledge(self) -> bool:
        """Also while the ensemble changes, from where LAC was when that began."""
        return True


MUTANT = Mutant(
    name="ensemble-overtaken",
    breaks="what is acknowledged is where the metadata say",
    parts=(LedgerParts(writer=AcknowledgesMeanwhile),),
)
