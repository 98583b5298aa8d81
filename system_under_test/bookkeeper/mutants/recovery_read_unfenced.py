from __future__ import annotations

from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.recovery import Recovery
from system_under_test.node.mutant import Mutant


class ReadsWithoutFence(Recovery):
    def reads_fence(self) -> bool:
        return False


MUTANT = Mutant(
    name="recovery-read-unfenced",
    breaks="nothing is acknowledged behind the end that recovery found",
    parts=(LedgerParts(recovery=ReadsWithoutFence),),
)
