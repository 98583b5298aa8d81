from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.election import Election
from system_under_test.dledger.message import VoteRequest
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class VotesForAnyone(Election):
    def has_longer_log(self, request: VoteRequest) -> bool:
        return False


MUTANT = Mutant(
    name="vote-ignores-log",
    breaks="the leader has all that is committed",
    parts=(MemberParts(core=CoreParts(election=VotesForAnyone)),),
)
