"""What CMQ may legally do under the faults that struck: it loses nothing, and gives some messages out too early.

Nothing is lost with processes, power, links, clocks, or disks that are full or fail, on however many nodes at once. A
disk that loses what was synced forgets votes and what it had acknowledged: nothing is promised any more from that
moment on, unless its node is let go for it, and joins anew.

Who holds a message is known to the leader alone. A new one gives out at once what is not acknowledged:

    n1 leads · m is given out at 3.1 s for 1 s · n2 leads from 3.2 s on · m is given out again at 3.3 s

That is legal of messages of this group, if they came once before the new leader was elected and again after it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss
from system_under_test.cmq.config import group_name
from system_under_test.cmq.routing import group_of
from workloads.log import queue_key
from workloads.systems.cmq.settings import CmqSettings, queue_name

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

DAMAGE = ("bit-rot", "short-files", "lost-disk", "old-disk")
"""Faults by which a disk loses what was synced."""
EARLY = ("redelivered-early",)
LAST_NS = 1 << 62
WRITTEN_EARLIER = ("rewritten-log", "diverging-logs")
"""Two entries in one place, each confirmed by somebody: they are dated by when they were written, and one that was
written before the damage may be confirmed only because of it."""


def legal_loss(settings: CmqSettings, struck: Sequence[FaultWindow], reports: NodeReports) -> LegalLoss:
    damaged = sorted(
        (fault.start_ns, f"{kind} at {fault.start_ns / 1e9:.1f} s took what {node} had synced")
        for fault in struck
        for kind in fault.kinds
        if kind in DAMAGE
        for node in fault.nodes_of(kind)
        if node in settings.names
    )
    from_ns, anything = damaged[0] if damaged else (0, "")
    excuses = list(_of_new_leaders(settings, reports))
    if anything:
        excuses.append(Excuse(anomalies=WRITTEN_EARLIER, reason=anything, from_ns=0, until_ns=LAST_NS))
    return LegalLoss(anything=anything, anything_from_ns=from_ns, excuses=tuple(excuses))


def _of_new_leaders(settings: CmqSettings, reports: NodeReports) -> Iterator[Excuse]:
    elected = sorted(
        (event["time"], event["group"], node)
        for node, events in reports.of("leader").items()
        if node in settings.names
        for event in events
    )
    queues: dict[str, list[str]] = defaultdict(list)
    for number in range(settings.queues):
        queues[group_name(group_of(queue_name(number, "pop"), settings.groups))].append(queue_key(number))
    for at_ns, group, node in elected:
        if group in queues:
            yield Excuse(
                anomalies=EARLY,
                reason=f"{node} led group {group} from {at_ns / 1e9:.1f} s on, and did not know who held what",
                from_ns=at_ns,
                until_ns=at_ns,
                keys=tuple(queues[group]),
            )
