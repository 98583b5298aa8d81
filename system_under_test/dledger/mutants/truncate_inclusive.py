from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.entry import Entry
from system_under_test.dledger.handler import Handler
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class CutsOneMore(Handler):
    def end_with(self, entry: Entry) -> bool:
        before = self._state.log.entry(entry.index - 1)
        return self._state.log.end_with(entry if before is None else before)


MUTANT = Mutant(
    name="truncate-inclusive",
    breaks="what is acknowledged stays: the entry of a TRUNCATE is kept",
    parts=(MemberParts(core=CoreParts(handler=CutsOneMore)),),
)
