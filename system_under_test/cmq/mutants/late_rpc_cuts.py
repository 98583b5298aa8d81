from __future__ import annotations

from system_under_test.cmq.parts import CmqParts
from system_under_test.node.mutant import Mutant
from system_under_test.raft.core import Raft
from system_under_test.raft.message import Append, SnapshotChunk


class EndsWithAppend(Raft):
    def _accept(self, message: Append | SnapshotChunk, match: int) -> None:
        end = max(match, self.commit)
        if isinstance(message, Append) and message.entries and self.log.base_index < end < self.last_index:
            last = self.log.behind(end - 1, 1)
            self._forget_durable(end - 1)
            self.log.put(last)
            self._effects.entries += last
        super()._accept(message, match)


MUTANT = Mutant(
    name="late-rpc-cuts",
    breaks="a majority has what is committed",
    parts=(CmqParts(raft_core=EndsWithAppend),),
)
