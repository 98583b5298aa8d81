from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.parts import MemberParts
from system_under_test.dledger.quorum import Quorum
from system_under_test.node.mutant import Mutant


class AnyTerm(Quorum):
    def may_commit(self, index: int) -> bool:
        return True


MUTANT = Mutant(
    name="commit-old-term",
    breaks="what is committed stays: entries of older terms are committed only with one of the own",
    parts=(MemberParts(core=CoreParts(quorum=AnyTerm)),),
)
