"""What is legally lost because messages are kept for a time only.

Whoever deletes files says so, and up to where: only what had been written before its log reached that place is gone
for that reason, and nothing that was written less than the retention time before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from workloads.systems.rocketmq.damage import reached_ns
from workloads.systems.rocketmq.loss_tables import READ, UNREAD, catch_up_ns, seconds
from workloads.systems.rocketmq.settings import RocketmqSettings

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

EXPIRED = (*UNREAD, *READ, "passed-over")
OVERTAKEN = ("overtaken",)
"""What becomes of messages that expired after somebody was given them, however long that was after they were written:
the queue goes on without them."""
PASSED_OVER = (
    *("poll-skip", "consumer-offset-skip"),
    *("torn-batch", "filtered-skip", "key-not-found"),
)
"""What becomes of messages that have expired, at one replica earlier than at another; consumers that come later are
sent on to where the queue begins. What was read when the last files had been deleted everywhere passes over nothing."""
CLOCKS_AGREE = 0.99
"""Share of the retention time that must have passed by the harness's clock: clocks of brokers are not quite right."""


def expiries(settings: RocketmqSettings, struck: Sequence[FaultWindow], reports: NodeReports) -> Iterator[Excuse]:
    """What was written so long before files were deleted, by whichever broker, and stood in them; for want of room, all
    that stood in them."""
    kept_ns = round(settings.retention_s * settings.time_scale * 1e9 * CLOCKS_AGREE)
    expired_ns = last_ns = -1
    logs = reports.of("written", "recovered", "truncated")
    for node, events in reports.of("deleted").items():
        for event in events:
            at_ns = event["time"]
            is_full = event["allowed"] and _is_full(settings, struck, node, at_ns)
            gone_ns = at_ns if event["end"] is None else reached_ns(event["end"], node, at_ns, logs)
            expired_ns = max(expired_ns, min(gone_ns, at_ns if is_full else at_ns - kept_ns))
            last_ns = max(last_ns, at_ns)
    if last_ns >= 0:
        words = f"messages expire after {kept_ns / 1e9:.1f} s, and brokers deleted files until {seconds(last_ns)}"
        yield Excuse(anomalies=EXPIRED, reason=words, from_ns=0, until_ns=expired_ns)
        yield Excuse(anomalies=OVERTAKEN, reason=words, from_ns=0, until_ns=last_ns)
        yield Excuse(anomalies=PASSED_OVER, reason=words, from_ns=0, until_ns=last_ns + catch_up_ns(settings))


def _is_full(settings: RocketmqSettings, struck: Sequence[FaultWindow], node: str, at_ns: int) -> bool:
    return any(
        node in fault.nodes_of("full-disk") and fault.start_ns <= at_ns <= fault.stop_ns + catch_up_ns(settings)
        for fault in struck
        if "full-disk" in fault.kinds
    )
