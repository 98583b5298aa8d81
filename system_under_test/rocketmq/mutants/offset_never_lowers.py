"""offset-never-lowers: of what a broker reports of its log only the greatest is kept, also over its restarts.

A broker that comes back with less than it had is still ranked by what it had, and may win an election against one that
holds more. Broken rule: the newest report counts.
"""

from __future__ import annotations

from dataclasses import replace

from system_under_test.node.mutant import Mutant
from system_under_test.rocketmq.controller.parts import ControllerParts
from system_under_test.rocketmq.controller.protocol import BrokerReport


def greatest_report(before: BrokerReport | None, report: BrokerReport) -> BrokerReport:
    if before is None or (before.master_epoch, before.max_offset) <= (report.master_epoch, report.max_offset):
        return report
    return replace(
        report,
        master_epoch=before.master_epoch,
        max_offset=before.max_offset,
        confirm_offset=before.confirm_offset,
    )


MUTANT = Mutant(
    name="offset-never-lowers",
    breaks="of those who may be elected the newest log wins",
    parts=(ControllerParts(noted_report=greatest_report),),
)
