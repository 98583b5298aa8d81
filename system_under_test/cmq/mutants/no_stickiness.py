from __future__ import annotations

from system_under_test.cmq.parts import CmqParts
from system_under_test.node.mutant import Mutant
from system_under_test.raft.core import Raft


class StandsUnasked(Raft):
    def _ask_for_pre_votes(self, now_ns: int) -> None:
        self._become_candidate(now_ns)


MUTANT = Mutant(
    name="no-stickiness",
    breaks="who was removed does not disturb a group",
    parts=(CmqParts(raft_core=StandsUnasked),),
)
