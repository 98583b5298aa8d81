from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.dispatcher import Dispatcher
from system_under_test.dledger.message import PushAnswer
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class TrustsWhatItKnows(Dispatcher):
    def committed(self, answer: PushAnswer) -> None:
        """The peer's end is not looked at."""


MUTANT = Mutant(
    name="wiped-not-pushed",
    breaks="a member that lost its disk gets everything again",
    parts=(MemberParts(core=CoreParts(dispatcher=TrustsWhatItKnows)),),
)
