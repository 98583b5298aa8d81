"""What a group with members of the public library may legally lose, who do not report what they hold.

The table is that of our own members (`legal_loss`), with more excused where it depends on who held what: what was
written shortly before a member lost its power may have been in the tail that it had not synced, and may have been held
by a bare majority; of a memory store, or of a disk that was damaged or lost, anything may have been. A disk that loses
what was synced loses votes as well, and then nothing is promised any more. Term and vote count as durable otherwise,
and readers as seeing nothing before a majority has it: that the public library keeps neither is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.record.excuse import Excuse
from harness.record.fault_log import ENDS_PROCESSES, FaultWindow
from harness.system import LegalLoss
from workloads.systems.dledger.legal_loss import DAMAGE, UNSYNCED, excuses_of
from workloads.systems.dledger.settings import DledgerSettings, Store

TAIL_NS = 1_000_000_000
"""So long before a loss of power what was written may not have been synced: the log is flushed every 10 ms, later on a
machine that is busy."""
STRIKES_WITHIN_NS = 1_000_000_000
"""So long after it began a fault has struck."""
ENDS_A_PROCESS = (*ENDS_PROCESSES, "restart", "rolling-restart")


def original_loss(settings: DledgerSettings, struck: Sequence[FaultWindow]) -> LegalLoss:
    damaged = min(((fault.start_ns, kind) for fault in struck for kind in fault.kinds if kind in DAMAGE), default=None)
    anything, anything_from_ns = "", 0
    if damaged is not None:
        anything_from_ns = damaged[0]
        anything = f"{damaged[1]} at {damaged[0] / 1e9:.1f} s may have taken what a member had synced, its vote as well"
    excuses = tuple(excuse for fault in struck for excuse in _excuses(settings, fault))
    return LegalLoss(anything=anything, anything_from_ns=anything_from_ns, excuses=excuses)


def _excuses(settings: DledgerSettings, fault: FaultWindow) -> Iterator[Excuse]:
    for kind in fault.kinds:
        nodes, words = ", ".join(sorted(fault.nodes_of(kind))), f"({kind} at {fault.start_ns / 1e9:.1f} s)"
        if kind in DAMAGE:
            from_ns, reason = 0, f"{nodes} lost what too few others held {words}"
        elif settings.store is Store.MEMORY and kind in ENDS_A_PROCESS:
            from_ns, reason = 0, f"{nodes} lost what it kept in memory and too few others held {words}"
        elif settings.store is Store.FILE and kind in UNSYNCED:
            from_ns = max(0, fault.start_ns - TAIL_NS)
            reason = f"{nodes} lost a tail that it had not synced and too few others held {words}"
        else:
            continue
        last_ns = fault.start_ns + STRIKES_WITHIN_NS
        yield from excuses_of(reason, from_ns=from_ns, last_ns=last_ns, lost_ns=fault.start_ns)
