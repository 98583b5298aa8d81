from __future__ import annotations

from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata, LedgerState
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.settlement import Publication
from system_under_test.node.mutant import Mutant


class ClosesAnyway(Publication):
    def may_try_again(self, found: LedgerMetadata) -> bool:
        """A ledger is closed with what this one found, whatever is there."""
        return self.wanted.state is LedgerState.CLOSED or super().may_try_again(found)


MUTANT = Mutant(
    name="close-without-cas",
    breaks="a ledger has one last entry",
    parts=(LedgerParts(publication=ClosesAnyway),),
)
