from __future__ import annotations

from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.recovery import Recovery
from system_under_test.node.mutant import Mutant


class BeginsBehindLac(Recovery):
    def first_read(self, lac: int) -> int:
        """Of an empty ensemble, which knows none, from entry 0 on."""
        return lac + 1


MUTANT = Mutant(
    name="recover-from-zero",
    breaks="a ledger whose last ensemble is empty can be recovered",
    parts=(LedgerParts(recovery=BeginsBehindLac),),
)
