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
    all_living_candidates,
    living_candidates,
)


def all_that_live(group: Group, liveness: Liveness, unclean: bool) -> tuple[BrokerReport, ...]:
    return all_living_candidates(group, liveness) if unclean else living_candidates(group, liveness, False)


MUTANT = Mutant(
    name="unclean-though-clean-lives",
    breaks="acknowledged messages survive as long as a member of the SyncStateSet lives",
    parts=(ControllerParts(rules=Rules(candidates=all_that_live)),),
)
