from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.entry import Entry
from system_under_test.dledger.handler import Handler
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class TruncatesAnything(Handler):
    def may_truncate(self, entry: Entry) -> bool:
        return True


MUTANT = Mutant(
    name="late-truncate-same-term",
    breaks="what is acknowledged stays: a TRUNCATE that comes late cuts nothing of its own term",
    parts=(MemberParts(core=CoreParts(handler=TruncatesAnything)),),
)
