"""What a broker is told of the DLedger group that replicates its log, by RocketMQ's names, spelt as there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from system_under_test.dledger.config import MemberConfig, StoreType
from system_under_test.node.settings import flag, nested, text

_SELF_ID = re.compile(r"[a-zA-Z](\d+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class DledgerSettings:
    is_on: bool = flag("enableDLegerCommitLog", False)
    group: str = text("dLegerGroup", "default")
    peers: str = text("dLegerPeers", "n0-localhost:40911")
    """`ID-ADDRESS:PORT` of each member, with semicolons between."""
    self_id: str = text("dLegerSelfId", "n0")
    """A letter and a number."""
    member: MemberConfig = nested(MemberConfig)
    """Other settings of the member, by DLedger's names, preferredLeaderIds among them."""

    @property
    def broker_id(self) -> int:
        """What clients call this broker while it follows: one more than its number, for 0 is the master. Raises
        ValueError."""
        found = _SELF_ID.fullmatch(self.self_id)
        if found is None:
            raise ValueError(f"dLegerSelfId: expected a letter and a number, as n0, got {self.self_id!r}")
        return int(found[1]) + 1

    def of_member(self, *, batches: bool, file_bytes: int) -> MemberConfig:
        """Raises ValueError for settings that do not go together."""
        member = replace(
            self.member,
            group=self.group,
            node=self.self_id,
            peers=self.peers,
            batches=batches,
            data_file_bytes=file_bytes,
        )
        if member.store_type is not StoreType.FILE:
            raise ValueError("storeType: expected FILE, for a broker keeps its messages in files")
        try:
            member.core()
            member.sizes()
        except ValueError as error:
            raise ValueError(f"enableDLegerCommitLog: {error}") from error
        return member
