from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.parts import MemberParts
from system_under_test.dledger.quorum import Quorum
from system_under_test.node.mutant import Mutant


class OneTooFew(Quorum):
    def reached(self) -> int:
        return sorted(self.marks.values(), reverse=True)[self._state.config.majority - 2]


MUTANT = Mutant(
    name="minority-commit",
    breaks="a majority has what is acknowledged",
    parts=(MemberParts(core=CoreParts(quorum=OneTooFew)),),
)
