"""What BookKeeper may legally lose under the faults that struck.

An acknowledged entry is on Qa disks at least, so as long as fewer bookies than that lost what they had synced, nothing
is lost. Bookies that do not sync their journal lose by a loss of power what others lose with their disk. One that was
replaced counts until its replacement was let in: then all that it held is on others.

A node of the metadata store that loses its disk under its old name has forgotten its vote, and nothing rests on the
metadata any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.membership import SHRINK, WIPE
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss
from workloads.systems.bookkeeper.settings import METADATA_NODES, BookkeeperSettings

DAMAGE = ("bit-rot", "misdirected-writes", "short-files", "lost-disk", "old-disk")
"""Faults by which a disk loses what was synced."""
REPLACED = (SHRINK, WIPE)
"""Faults by which a bookie loses its disk, and whose end is that all it held is on others."""
LAST_NS = 1 << 62
UNSYNCED = ("power", "failing-fsync")
"""Faults by which a disk loses what was not synced."""


def legal_loss(settings: BookkeeperSettings, struck: Sequence[FaultWindow]) -> LegalLoss:
    taking = DAMAGE if settings.journal_sync else (*DAMAGE, *UNSYNCED)
    lost = _damaged_at_once(struck, taking, settings)
    forgot = _struck_first(struck, DAMAGE, METADATA_NODES)
    reasons = []
    if lost is not None:
        from_ns, words = lost
        what = f"{settings.ack_quorum} bookies lost entries, and may have been all that had one"
        reasons.append((from_ns, f"{what} (the last of them: {words})"))
    if forgot:
        from_ns, words = forgot[0]
        reasons.append((from_ns, f"the metadata store forgot votes ({words})"))
    if not reasons:
        return LegalLoss()
    from_ns, reason = min(reasons)
    return LegalLoss(anything=reason, anything_from_ns=from_ns)


def _damaged_at_once(
    struck: Sequence[FaultWindow], taking: Sequence[str], settings: BookkeeperSettings
) -> tuple[int, str] | None:
    """When, and by which fault, as many bookies as an ack quorum were damaged at one moment, if that ever was."""
    until_ns: dict[str, int] = {}
    for fault in sorted(struck, key=lambda fault: fault.start_ns):
        for kind in fault.kinds:
            if kind not in (*taking, *REPLACED):
                continue
            stop_ns = fault.stop_ns if kind in REPLACED else LAST_NS
            for node in fault.nodes_of(kind):
                if node in settings.bookie_names:
                    until_ns[node] = max(until_ns.get(node, 0), stop_ns)
            if sum(stop_ns > fault.start_ns for stop_ns in until_ns.values()) >= settings.ack_quorum:
                return fault.start_ns, f"{kind} at {fault.start_ns / 1e9:.1f} s"
    return None


def _struck_first(struck: Sequence[FaultWindow], kinds: Sequence[str], names: Sequence[str]) -> list[tuple[int, str]]:
    """When and how each of these nodes was struck for the first time, in this order."""
    first: dict[str, tuple[int, str]] = {}
    for fault in sorted(struck, key=lambda fault: fault.start_ns):
        for kind in fault.kinds:
            if kind in kinds:
                for node in fault.nodes_of(kind):
                    if node in names:
                        first.setdefault(node, (fault.start_ns, f"{kind} of {node} at {fault.start_ns / 1e9:.1f} s"))
    return sorted(first.values())
