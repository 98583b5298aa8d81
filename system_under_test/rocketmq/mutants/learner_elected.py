"""learner-elected: where an unclean election looks beyond the SyncStateSet, it takes learners too.

Breaks the rule that no learner is ever master: nobody waits for a learner, so its log may lack anything.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.controller.heartbeat import Liveness
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.protocol import BrokerReport
from system_under_test.rocketmq.controller.state_machine import Group, Rules, living_candidates


def learners_too(group: Group, liveness: Liveness, unclean: bool) -> tuple[BrokerReport, ...]:
    members = living_candidates(group, liveness, False)
    if members or not unclean:
        return members
    reports = (group.living(broker_id, liveness) for broker_id in sorted(group.replicas))
    return tuple(report for report in reports if report is not None)


MUTANT = Mutant(
    name="learner-elected",
    breaks="no learner is ever master",
    parts=(ControllerParts(rules=Rules(candidates=learners_too)),),
)
