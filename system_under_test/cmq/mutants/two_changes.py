from __future__ import annotations

from system_under_test.cmq.parts import CmqParts
from system_under_test.node.mutant import Mutant
from system_under_test.raft.core import Raft


class ChangesAtOnce(Raft):
    @property
    def _is_changing(self) -> bool:
        return False


MUTANT = Mutant(
    name="two-changes",
    breaks="any two majorities that may decide have a node in common",
    parts=(CmqParts(raft_core=ChangesAtOnce),),
)
