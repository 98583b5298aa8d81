from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.dispatcher import Dispatcher
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class StartsOver(Dispatcher):
    def nothing_in_common(self) -> None:
        self._compare_index = self.first_compared()


MUTANT = Mutant(
    name="compare-starts-over",
    breaks="a follower that has nothing in common with its leader gets its log",
    parts=(MemberParts(core=CoreParts(dispatcher=StartsOver)),),
)
