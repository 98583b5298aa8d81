from __future__ import annotations

from system_under_test.cmq.parts import CmqParts
from system_under_test.node.mutant import Mutant
from system_under_test.raft.core import Raft
from system_under_test.raft.message import Append, SnapshotChunk


class BelievesTheIndex(Raft):
    def _accept(self, message: Append | SnapshotChunk, match: int) -> None:
        if isinstance(message, Append):
            self._commit_to(min(message.commit, self.last_index))
        super()._accept(message, match)


MUTANT = Mutant(
    name="commit-beyond-verified",
    breaks="committed entries are the same everywhere",
    parts=(CmqParts(raft_core=BelievesTheIndex),),
)
