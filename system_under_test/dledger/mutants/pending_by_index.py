from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.parts import MemberParts
from system_under_test.dledger.quorum import Pending, Quorum
from system_under_test.node.mutant import Mutant


class GoesByIndex(Quorum):
    def is_same(self, pending: Pending) -> bool:
        return True

    def abandon(self) -> None:
        self.marks = {}


MUTANT = Mutant(
    name="pending-by-index",
    breaks="an acknowledgement is for the entry that was appended, not for another one at its index",
    parts=(MemberParts(core=CoreParts(quorum=GoesByIndex)),),
)
