from __future__ import annotations

from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.pending import PendingAdd, PendingAdds
from system_under_test.node.mutant import Mutant


class CountsTheOld(PendingAdds):
    def kept(self, add: PendingAdd) -> set[str]:
        """Also of those who are not asked for it any more."""
        return add.has


MUTANT = Mutant(
    name="write-set-kept",
    breaks="Qa of the bookies at which readers look have what is acknowledged",
    parts=(LedgerParts(pending=CountsTheOld),),
)
