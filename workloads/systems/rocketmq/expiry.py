"""What is legally lost because messages are kept for a time only.

A broker that deletes files reports it, and up to where: only what was written before its log reached that place may
have expired, and nothing that was written less than the retention time before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from workloads.systems.rocketmq.damage import reached_ns
from workloads.systems.rocketmq.loss_tables import LOST, LOST_AFTER_READ, catch_up_ns, seconds
from workloads.systems.rocketmq.settings import RocketmqSettings

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

EXPIRED = (*LOST, *LOST_AFTER_READ, "passed-over")
"""A message has expired."""
EXPIRED_AFTER_GIVEN_OUT = ("overtaken",)
"""A message expired after it had been given out, however long after it was written: its queue goes on without it."""
EXPIRED_UNEVENLY = (
    *("poll-skip", "consumer-offset-skip"),
    *("torn-batch", "filtered-skip", "key-not-found"),
)
"""A message expired at one replica earlier than at another: a consumer that comes later is sent on to where the queue
begins. Once the last files were deleted everywhere this is not seen any more."""
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
        for anomalies, until_ns in (
            (EXPIRED, expired_ns),
            (EXPIRED_AFTER_GIVEN_OUT, last_ns),
            (EXPIRED_UNEVENLY, last_ns + catch_up_ns(settings)),
        ):
            yield Excuse(anomalies=anomalies, reason=words, from_ns=0, until_ns=until_ns)


def _is_full(settings: RocketmqSettings, struck: Sequence[FaultWindow], node: str, at_ns: int) -> bool:
    return any(
        node in fault.nodes_of("full-disk") and fault.start_ns <= at_ns <= fault.stop_ns + catch_up_ns(settings)
        for fault in struck
        if "full-disk" in fault.kinds
    )
