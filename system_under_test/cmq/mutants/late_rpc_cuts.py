from __future__ import annotations

from system_under_test.cmq.parts import CmqParts
from system_under_test.node.mutant import Mutant
from system_under_test.raft.core import Raft
from system_under_test.raft.message import Append, SnapshotChunk


class EndsWithAppend(Raft):
    def _accept(self, message: Append | SnapshotChunk, match: int) -> None:
        if isinstance(message, Append) and message.entries and self.commit < match < self.last_index:
            self._write(self.log.behind(match - 1, 1))
        super()._accept(message, match)


MUTANT = Mutant(
    name="late-rpc-cuts",
    breaks="a majority has what is committed",
    parts=(CmqParts(raft_core=EndsWithAppend),),
)
