from __future__ import annotations

from system_under_test.bookkeeper.ledger.event import Reason
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.writer import Writer
from system_under_test.node.mutant import Mutant


class RefusesForCertain(Writer):
    def is_definite(self, reason: Reason) -> bool:
        return reason is Reason.FENCED


MUTANT = Mutant(
    name="fenced-is-refused",
    breaks="what was refused for certain is never read",
    parts=(LedgerParts(writer=RefusesForCertain),),
)
