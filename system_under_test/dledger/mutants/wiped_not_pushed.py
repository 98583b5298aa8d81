from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.dispatcher import Dispatcher, Phase
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class TrustsWhatItKnows(Dispatcher):
    def _compare_again(self, wait_ns: int = 0) -> None:
        """But not with a peer that has acknowledged everything, whatever it answers, and as whichever process."""
        if self.phase is Phase.APPEND and self._quorum.marks[self.peer] == self._state.log.end:
            self._in_flight.clear()
        else:
            super()._compare_again(wait_ns)


MUTANT = Mutant(
    name="wiped-not-pushed",
    breaks="a member that lost its disk gets everything again",
    parts=(MemberParts(core=CoreParts(dispatcher=TrustsWhatItKnows)),),
)
