"""What a group with members of the public library may legally lose, who do not report what they hold.

The table is that of our own members (`legal_loss`), with more excused where it depends on who held what: what was
written shortly before a member lost its power may have been in the tail that it had not synced, and may have been held
by a bare majority; of a memory store, or of a disk that was damaged or lost, anything may have been. A disk that loses
what was synced loses votes as well, and then nothing is promised any more. Term and vote count as durable otherwise,
and readers as seeing nothing before a majority has it: that the public library keeps neither is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.record.fault_log import ENDS_PROCESSES, FaultWindow
from harness.system import LegalLoss
from workloads.systems.dledger.legal_loss import DAMAGE, UNSYNCED, LostEntries, damaged, excuses_of
from workloads.systems.dledger.settings import GroupOnTrial, Store

TAIL_NS = 1_000_000_000
"""So long before a loss of power what was written may not have been synced: the log is flushed every 10 ms, later on a
machine that is busy."""
STRIKES_WITHIN_NS = 1_000_000_000
"""So long after it began a fault has struck."""
ENDS_A_PROCESS = (*ENDS_PROCESSES, "restart", "rolling-restart")


def original_loss(settings: GroupOnTrial, struck: Sequence[FaultWindow]) -> LegalLoss:
    anything, anything_from_ns = promised_nothing(settings, struck)
    excuses = tuple(excuse for lost in possibly_lost(settings, struck) for excuse in excuses_of(lost))
    return LegalLoss(anything=anything, anything_from_ns=anything_from_ns, excuses=excuses)


def promised_nothing(settings: GroupOnTrial, struck: Sequence[FaultWindow]) -> tuple[str, int]:
    """Why, and from when on: since a disk lost what was synced, among which a vote may have been. Empty: not so."""
    for from_ns, _, words in damaged(settings, struck):
        return f"{words}, among which its vote may have been", from_ns
    return "", 0


def possibly_lost(settings: GroupOnTrial, struck: Sequence[FaultWindow]) -> Iterator[LostEntries]:
    """What members may have lost that too few others held, fault by fault."""
    for fault in struck:
        for kind in fault.kinds:
            nodes = sorted(set(fault.nodes_of(kind)).intersection(settings.names))
            lost = _lost(settings.store, kind, fault.start_ns) if nodes else None
            if lost is not None:
                what, from_ns = lost
                words = f"({kind} at {fault.start_ns / 1e9:.1f} s)"
                yield LostEntries(
                    reason=f"{', '.join(nodes)} lost {what} too few others held {words}",
                    written_ns=from_ns,
                    places_ns=from_ns,
                    last_ns=fault.start_ns + STRIKES_WITHIN_NS,
                    at_ns=fault.start_ns,
                )


def _lost(store: Store, kind: str, at_ns: int) -> tuple[str, int] | None:
    """What a member loses by a fault of this kind, in words, and since when it may have been written."""
    if kind in DAMAGE:
        return "what", 0
    if store is Store.MEMORY and kind in ENDS_A_PROCESS:
        return "what it kept in memory and", 0
    if store is Store.FILE and kind in UNSYNCED:
        return "a tail that it had not synced and", max(0, at_ns - TAIL_NS)
    return None
