"""What a member is made of, where a planted bug may put something else."""

from __future__ import annotations

from dataclasses import dataclass, field

from system_under_test.dledger.core import CoreParts
from system_under_test.dledger.driver import GroupMember


@dataclass(frozen=True, kw_only=True)
class MemberParts:
    core: CoreParts = field(default_factory=CoreParts)
    member: type[GroupMember] = GroupMember
