from __future__ import annotations

from system_under_test.bookkeeper.ledger.event import ReadAnswered, Reply
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.verification import Verification
from system_under_test.node.mutant import Mutant


class TakesHarmForAbsence(Verification):
    def reply(self, answer: ReadAnswered) -> Reply:
        reply = super().reply(answer)
        return Reply.NO_SUCH_ENTRY if reply is Reply.CORRUPT else reply


MUTANT = Mutant(
    name="corrupt-is-absent",
    breaks="recovery finds what was acknowledged, also where a copy is harmed",
    parts=(LedgerParts(verification=TakesHarmForAbsence),),
)
