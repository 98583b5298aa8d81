from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.parts import MemberParts
from system_under_test.dledger.transfer import Transfer
from system_under_test.node.mutant import Mutant


class HandsOverToAnyone(Transfer):
    def is_near(self, peer: str) -> bool:
        return True

    def has_caught_up(self, verified: int, end: int) -> bool:
        return True


MUTANT = Mutant(
    name="transfer-without-lag-check",
    breaks="a group that hands over has a leader again",
    parts=(MemberParts(core=CoreParts(transfer=HandsOverToAnyone)),),
)
