from __future__ import annotations

from system_under_test.dledger.driver import GroupMember
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class ShowsEverything(GroupMember):
    @property
    def shown_end(self) -> int:
        return self._store.end


MUTANT = Mutant(
    name="uncommitted-get",
    breaks="nobody sees anything before a majority has it",
    parts=(MemberParts(member=ShowsEverything),),
)
