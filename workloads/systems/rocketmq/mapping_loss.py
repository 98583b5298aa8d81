"""What becomes of a static topic whose mapping is lost: it is a record in a group's log, and as safe as messages there.

Without its newest record a group takes messages for a queue that it had given away, or serves one no more that it had
got: queues begin anew at offsets that were used, segments overlap, or nobody takes messages until an administrator
makes the mapping again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.record.excuse import Excuse
from workloads.systems.rocketmq.damage import LAST_NS
from workloads.systems.rocketmq.loss_tables import ALL

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

OF_A_LOST_MAPPING = (*ALL, "diverging-replicas", "stray-offset", "segment-overlap", "no-progress")


def lost_mappings(losses: Sequence[Excuse], reports: NodeReports) -> Iterator[Excuse]:
    """Of a static topic, where messages of some spans may be lost: one for each in which a mapping was written."""
    told = reports.of("mapped")
    written = sorted(event["time"] for events in told.values() for event in events)
    for loss in losses:
        if "lost-write" in loss.anomalies and any(loss.from_ns <= at_ns <= loss.until_ns for at_ns in written):
            yield Excuse(
                anomalies=OF_A_LOST_MAPPING,
                reason=f"{loss.reason}, and the mapping of a static topic was written then",
                from_ns=0,
                until_ns=LAST_NS,
            )
