from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.handler import Handler
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class BelievesTheLeader(Handler):
    def commit(self, index: int) -> None:
        self._state.commit(index)


MUTANT = Mutant(
    name="commit-beyond-end",
    breaks="nothing is taken for committed that the leader has not verified",
    parts=(MemberParts(core=CoreParts(handler=BelievesTheLeader)),),
)
