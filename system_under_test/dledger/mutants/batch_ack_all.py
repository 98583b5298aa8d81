from __future__ import annotations

from collections.abc import Sequence

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.entry import Entry
from system_under_test.dledger.handler import Handler
from system_under_test.dledger.message import Code
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class TakesAPart(Handler):
    def append(self, entries: Sequence[Entry]) -> Code:
        """The second half of a batch goes, and the answer is the same."""
        return super().append(entries[: (len(entries) + 1) // 2])


MUTANT = Mutant(
    name="batch-ack-all",
    breaks="a batch that was acknowledged is there as a whole",
    parts=(MemberParts(core=CoreParts(handler=TakesAPart)),),
)
