from __future__ import annotations

from collections.abc import Callable

from system_under_test.dledger.driver import GroupMember
from system_under_test.dledger.parts import MemberParts
from system_under_test.node.mutant import Mutant


class AcknowledgesAtOnce(GroupMember):
    def hold_acknowledgement(self, answer: Callable[[], None]) -> None:
        answer()


MUTANT = Mutant(
    name="ack-not-durable",
    breaks="what is acknowledged durably is durable",
    parts=(MemberParts(member=AcknowledgesAtOnce),),
)
