"""unclean-though-clean-lives: where unclean election is on, all living replicas are candidates, whether or not a
member of the SyncStateSet lives.

Breaks the rule that an unclean election is the last resort. Reports are as old as the last heartbeat, so an outsider
that lags may look as good as a member, and the lower priority number or id decides.
"""

from __future__ import annotations

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.controller.heartbeat import Liveness
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.protocol import BrokerReport
from system_under_test.rocketmq.controller.state_machine import (
    Group,
    Rules,
    living_candidates,
    living_replicas,
    without_who_learns,
)


def all_that_live(group: Group, liveness: Liveness, unclean: bool) -> tuple[BrokerReport, ...]:
    if not unclean:
        return living_candidates(group, liveness, False)
    return without_who_learns(living_replicas(group, tuple(sorted(group.replicas)), liveness))


MUTANT = Mutant(
    name="unclean-though-clean-lives",
    breaks="acknowledged messages survive as long as a member of the SyncStateSet lives",
    parts=(ControllerParts(rules=Rules(candidates=all_that_live)),),
)
