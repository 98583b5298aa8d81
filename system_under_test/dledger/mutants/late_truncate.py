from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.entry import Entry
from system_under_test.dledger.handler import Handler
from system_under_test.dledger.message import Push, PushRequest
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class ObeysOldLeaders(Handler):
    def obeys_anyway(self, request: PushRequest) -> bool:
        return request.kind is Push.TRUNCATE

    def may_truncate(self, entry: Entry) -> bool:
        return True


MUTANT = Mutant(
    name="late-truncate",
    breaks="what is acknowledged stays: a leader that was replaced cuts nothing",
    parts=(MemberParts(core=CoreParts(handler=ObeysOldLeaders)),),
)
