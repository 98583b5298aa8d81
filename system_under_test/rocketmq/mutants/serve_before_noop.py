"""serve-before-noop: a controller serves from the moment it is elected.

It has not committed an entry of its own term yet, so it may not have applied, and not even know to be committed, what
its predecessor acknowledged. Broken rule: a leader serves once its own no-op is applied.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.raft.core import Raft, Role
from system_under_test.rocketmq.controller.parts import ControllerParts


class ServingFromElection(Raft):
    @property
    def is_active(self) -> bool:
        return self.role is Role.LEADER


MUTANT = Mutant(
    name="serve-before-noop",
    breaks="a new leader shows all that was completed before it",
    parts=(ControllerParts(raft_core=ServingFromElection),),
)
