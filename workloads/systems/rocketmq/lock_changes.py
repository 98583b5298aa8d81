"""When locks of queues may legally be two members' at once: while masters change.

Locks are the master's alone, and in memory. One that takes over gives a queue to the member that asks first, while the
member that has its lock from the master before it may go on until that lock runs out; and the old master, until it
learns that it is none any more, goes on giving it. Strict locks never are: most replicas know each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.record.excuse import Excuse
from workloads.systems.rocketmq.loss_tables import LAST_NS
from workloads.systems.rocketmq.settings import RocketmqSettings

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

Event = Mapping[str, Any]

LIVES_S = 30.0
"""So long a member may begin something by a lock after it last asked for it, at time scale 1."""
MARGIN_S = 1.0
"""A broker says that it is master once it is."""


def overlaps(settings: RocketmqSettings, brokers: Sequence[str], reports: NodeReports) -> Iterator[Excuse]:
    """One for each master but the first of a group of these brokers; none where locks are strict."""
    if settings.strict_locks:
        return
    events = {node: of for node, of in reports.of("role", "recovered").items() if node in brokers}
    masters = sorted((event["time"], node) for node, of in events.items() for event in of if event["role"] == "master")
    margin_ns, lives_ns = round(MARGIN_S * 1e9), round(LIVES_S * settings.time_scale * 1e9)
    for number, (taken_ns, node) in enumerate(masters[1:], start=1):
        ends = [_end(events[earlier], began_ns) for began_ns, earlier in masters[:number] if earlier != node]
        until_ns = max([taken_ns, *(end for end in ends if end > taken_ns)])
        yield Excuse(
            anomalies=("overlap",),
            reason=f"locks are the master's alone, and {node} became master at {taken_ns / 1e9:.1f} s",
            from_ns=max(0, taken_ns - margin_ns),
            until_ns=min(LAST_NS, until_ns + lives_ns + margin_ns),
        )


def _end(events: Sequence[Event], began_ns: int) -> int:
    """When the node's mastership from that time on had ended at the latest: in its next role or life."""
    return min((event["time"] for event in events if event["time"] > began_ns), default=LAST_NS)
