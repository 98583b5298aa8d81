from __future__ import annotations

from system_under_test.bookkeeper.ledger.event import Reply
from system_under_test.bookkeeper.ledger.parts import LedgerParts
from system_under_test.bookkeeper.ledger.tally import EntryTally
from system_under_test.node.mutant import Mutant


class BelievesOne(EntryTally):
    def is_absent(self, replies: list[Reply]) -> bool:
        return any(reply.is_no for reply in replies)


MUTANT = Mutant(
    name="one-no-is-enough",
    breaks="recovery finds what was acknowledged",
    parts=(LedgerParts(entry_tally=BelievesOne),),
)
