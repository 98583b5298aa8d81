"""serve-before-noop: a controller serves from the moment it is elected.

It has not committed an entry of its own term yet, so it may not have applied, and not even know to be committed, what
its predecessor acknowledged. Broken rule: a leader serves once its own no-op is applied.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.raft.core import Raft, Role
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.mutants.mutant import Mutant


class ServingFromElection(Raft):
    @property
    def is_active(self) -> bool:
        return self.role is Role.LEADER


def _controller(parts: ControllerParts) -> ControllerParts:
    return replace(parts, raft_core=ServingFromElection)


MUTANT = Mutant(
    name="serve-before-noop", breaks="a new leader shows all that was completed before it", controller=_controller
)
