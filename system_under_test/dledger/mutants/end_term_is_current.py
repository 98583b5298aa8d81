from __future__ import annotations

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.election import Election
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class AsOfNow(Election):
    def last_term(self) -> int:
        """Of the member, and not of its last entry."""
        return self._state.term


MUTANT = Mutant(
    name="end-term-is-current",
    breaks="the leader has all that is committed: votes go by the last term of a log",
    parts=(MemberParts(core=CoreParts(election=AsOfNow)),),
)
