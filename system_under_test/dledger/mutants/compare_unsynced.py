from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.handler import Handler
from system_under_test.dledger.message import Push, PushRequest
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class AnswersAtOnce(Handler):
    def vouches(self, request: PushRequest) -> bool:
        return request.kind is Push.APPEND


MUTANT = Mutant(
    name="compare-unsynced",
    breaks="what is acknowledged durably is durable: a yes to COMPARE is an acknowledgement",
    parts=(MemberParts(core=CoreParts(handler=AnswersAtOnce)),),
)
