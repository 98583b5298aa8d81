from __future__ import annotations

from system_under_test.cmq.parts import CmqParts
from system_under_test.node.mutant import Mutant
from system_under_test.raft.core import Raft
from system_under_test.raft.message import Append


class BelievesTheIndex(Raft):
    def _on_append(self, message: Append, now_ns: int) -> None:
        super()._on_append(message, now_ns)
        if message.term == self.term:
            self._commit_to(min(message.commit, self.last_index))


MUTANT = Mutant(
    name="commit-beyond-verified",
    breaks="committed entries are the same everywhere",
    parts=(CmqParts(raft_core=BelievesTheIndex),),
)
