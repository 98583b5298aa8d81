"""silent-unclean: where no member of the SyncStateSet lives, any living replica is elected, though
enableElectUncleanMaster is off.

Breaks the rule that only members of the SyncStateSet may become master: an outsider's log lacks messages
that were acknowledged.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.controller.heartbeat import Liveness
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.protocol import BrokerReport
from system_under_test.rocketmq.controller.state_machine import Group, Rules, living_candidates


def always_unclean(group: Group, liveness: Liveness, unclean: bool) -> tuple[BrokerReport, ...]:
    return living_candidates(group, liveness, True)


MUTANT = Mutant(
    name="silent-unclean",
    breaks="acknowledged messages survive a failover",
    parts=(ControllerParts(rules=Rules(candidates=always_unclean)),),
)
