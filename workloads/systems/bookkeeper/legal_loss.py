"""What BookKeeper may legally lose under the faults that struck.

An acknowledged entry is on Qa disks at least, and may be lost once all that had it lost it, each by a fault of its own,
before it was copied to others (`entry_losses.py`). Bookies that do not sync their journal lose by a loss of power what
they had not synced yet.

Where as many disks as that are damaged at once, a ledger may never be closed, for nobody can say any more where it
ends, and never get its copies back; and a bookie with a damaged disk may have forgotten a fence.

Bookies of a release do not report what they have: of these nothing is promised any more once as many as that lost what
they had made durable, or had not synced.

A node of the metadata store that loses its disk under its old name has forgotten its vote, and nothing rests on the
metadata any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss
from workloads.systems.bookkeeper.entry_losses import (
    DAMAGE,
    LAST_NS,
    REPLACED,
    UNNOTICED,
    UNSYNCED,
    LostEntries,
    lost_entries,
    struck_by_node,
)
from workloads.systems.bookkeeper.settings import METADATA_NODES, BookkeeperSettings

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

GONE = ("lost-write", "unseen", "dirty-read")
"""An entry is not there any more."""
SKIPPED = ("poll-skip", "internal-skip", "consumer-offset-skip")
"""A reader went on behind it."""
WITHOUT_IT = ("unheld-entry",)
"""An ensemble was changed, and nobody of the new one has the entry."""
ENDED_BEFORE = ("beyond-end",)
"""A ledger was closed without an entry that had been acknowledged."""
FORGOTTEN = ("fenced-add", "forgotten-fence", "forgotten-entry")
"""A bookie does not know a fence any more, or what it had."""
NOT_WHOLE = ("no-progress", "under-replicated", "stuck-replica")
"""A ledger is not closed, cannot be read, or does not get its copies back."""


def legal_loss(settings: BookkeeperSettings, struck: Sequence[FaultWindow], reports: NodeReports) -> LegalLoss:
    void = [
        (one.from_ns, f"the metadata store forgot votes ({node}, {one})")
        for node, of in struck_by_node(struck, DAMAGE, METADATA_NODES).items()
        for one in of
    ]
    if settings.release:
        void += _at_once(settings, struck, DAMAGE if settings.journal_sync else (*DAMAGE, *UNSYNCED))
    from_ns, anything = min(void, default=(0, ""))
    if settings.release:
        return LegalLoss(anything=anything, anything_from_ns=from_ns)
    excuses = [excuse for lost in lost_entries(settings, struck, reports) for excuse in _excuses_of(lost)]
    damaged = _at_once(settings, struck, DAMAGE)
    return LegalLoss(
        anomalies=NOT_WHOLE if damaged else (),
        reason="".join(reason for _, reason in damaged),
        anything=anything,
        anything_from_ns=from_ns,
        excuses=(*excuses, *_of_forgotten_fences(settings, struck)),
    )


def _excuses_of(lost: LostEntries) -> Iterator[Excuse]:
    for first_ns, last_ns in lost.spans_ns:
        yield Excuse(anomalies=GONE, reason=lost.reason, from_ns=first_ns, until_ns=last_ns)
    seen = (*SKIPPED, *WITHOUT_IT, *(ENDED_BEFORE if lost.is_beyond_end else ()))
    from_ns = lost.spans_ns[0][0]
    yield Excuse(anomalies=seen, reason=lost.reason, from_ns=from_ns, until_ns=LAST_NS, seen_from_ns=lost.lost_ns)


def _of_forgotten_fences(settings: BookkeeperSettings, struck: Sequence[FaultWindow]) -> Iterator[Excuse]:
    for node, of in struck_by_node(struck, UNNOTICED, settings.bookie_names).items():
        if of:
            yield Excuse(
                anomalies=FORGOTTEN,
                reason=f"{node} may have forgotten a fence ({of[0]})",
                from_ns=of[0].from_ns,
                until_ns=LAST_NS,
                nodes=(node,),
            )


def _at_once(
    settings: BookkeeperSettings, struck: Sequence[FaultWindow], kinds: Sequence[str]
) -> list[tuple[int, str]]:
    """When as many bookies as an ack quorum were struck by faults of these kinds at one moment, or were replaced, and
    in words; nothing if that never was. One that is replaced is whole again once it was let in."""
    by_node = struck_by_node(struck, (*kinds, *REPLACED), settings.bookie_names)
    until_ns: dict[str, int] = {}
    for one, node in sorted((one, node) for node, of in by_node.items() for one in of):
        until_ns[node] = max(until_ns.get(node, 0), one.until_ns if one.kind in REPLACED else LAST_NS)
        if sum(stop_ns > one.from_ns for stop_ns in until_ns.values()) >= settings.ack_quorum:
            reason = f"{settings.ack_quorum} bookies were damaged at once (the last of them: {node}, {one})"
            return [(one.from_ns, reason)]
    return []
