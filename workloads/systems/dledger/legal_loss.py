"""What a group may legally lose under the faults that struck.

An entry is lost legally if a member that held it lost it with its disk, where that may be, and fewer than a majority of
the others held it then: that member and those that lag are a majority without it. What a member lost is seen from its
own reports: where its log ended, and where it ends when it starts again.

    n2: written 41 at 3.1 s · written 42 at 3.2 s · loses power at 3.3 s · recovered to 41 at 5.0 s

Entry 41 is gone there, and is excused if of n1 and n3 only one had it at 3.3 s.

A disk that loses what was synced loses votes as well. Once two members have led in one term, one of them by such a
vote, nothing is promised any more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss
from workloads.systems.dledger.settings import GroupOnTrial, Store

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

LAST_NS = 1 << 62
DAMAGE = ("bit-rot", "short-files", "lost-disk", "old-disk")
"""Faults by which a disk loses what was synced."""
UNSYNCED = ("power", "failing-fsync")
"""Faults by which a disk loses what was not synced."""

LATE_NS = 5_000_000_000
"""How long after a loss a client may still hear that something was appended before it."""

GONE = ("lost-write", "unseen", "dirty-read")
"""An entry is not there any more."""
REUSED = ("inconsistent-offsets", "diverging-replicas", "nonmonotonic-send")
"""Another one is in its place."""
SKIPPED = ("poll-skip", "internal-skip", "consumer-offset-skip", "nonmonotonic-poll")
"""A reader had come beyond the place at which the log goes on."""
REPLACED = (
    *("confirmed-lost", "fenced-write", "diverging-logs", "rewritten-log"),
    *("diverging-commits", "committed-cut", "committed-back"),
)
"""Members have seen one entry committed, and then another one there."""
FORGOTTEN = ("forgotten-vote", "second-vote", "not-durable", "epoch-back")
"""A disk went back to what it was, or was made empty."""
OLD_TERM = ("two-leaders", "electable-laggard")
"""A member that has forgotten its terms leads in one of them once more, while another one has entries of later ones."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A member had an entry."""

    checksum: int
    from_ns: int
    until_ns: int


@dataclass(frozen=True, slots=True)
class _Loss:
    node: str
    at_ns: int
    lost: Mapping[int, _Held]
    reason: str


class _Logs:
    """Which member held which entries when, and what each lost."""

    def __init__(self, settings: GroupOnTrial, struck: Sequence[FaultWindow], reports: NodeReports) -> None:
        self._takes_all = settings.store is Store.MEMORY
        taking = (*DAMAGE, *(() if settings.ack_durable else UNSYNCED))
        self._struck = {
            node: sorted(
                (fault.start_ns, f"{kind} at {fault.start_ns / 1e9:.1f} s")
                for fault in struck
                for kind in fault.kinds
                if (self._takes_all or kind in taking) and node in fault.nodes_of(kind)
            )
            for node in settings.names
        }
        self.held: dict[str, dict[int, list[_Held]]] = {node: defaultdict(list) for node in settings.names}
        self.losses: list[_Loss] = []
        events = reports.of("written", "truncated", "recovered")
        for node in settings.names:
            self._follow(node, events.get(node, ()))

    def _follow(self, node: str, events: Sequence[Mapping[str, Any]]) -> None:
        now: dict[int, _Held] = {}
        known_ns = 0
        for event in events:
            at_ns, end = event["time"], event["end"]
            if end is None:
                continue
            if event["event"] == "recovered":
                struck = self._last_struck(node, at_ns)
                gone_ns = max(struck[0], known_ns) if struck else at_ns
                lost = self._cut(node, now, end, gone_ns)
                if lost and struck:
                    self.losses.append(_Loss(node, gone_ns, lost, f"{node} lost entries ({struck[1]})"))
            elif event["event"] == "truncated":
                self._cut(node, now, end, at_ns)
            else:
                now[end - 1] = _Held(event["checksum"], at_ns, LAST_NS)
            known_ns = at_ns
        unknown = [one for one in self._struck[node] if one[0] >= known_ns]
        if unknown:
            # It never started again, so what it has is not known.
            at_ns, words = unknown[0]
            self.losses.append(_Loss(node, at_ns, self._cut(node, now, 0, at_ns), f"{node} was lost ({words})"))
        self._cut(node, now, 0, LAST_NS)

    def _last_struck(self, node: str, at_ns: int) -> tuple[int, str] | None:
        struck = self._struck[node]
        number = bisect_right(struck, (at_ns, chr(0x10FFFF)))
        if number:
            return struck[number - 1]
        return (at_ns, "it keeps its log in memory") if self._takes_all else None

    def _cut(self, node: str, now: dict[int, _Held], end: int, at_ns: int) -> dict[int, _Held]:
        """What is from this offset on is held no longer."""
        gone = {index: now.pop(index) for index in [index for index in now if index >= end]}
        for index, held in gone.items():
            self.held[node][index].append(_Held(held.checksum, held.from_ns, at_ns))
        return gone

    def holders(self, index: int, checksum: int, at_ns: int) -> list[str]:
        return [
            node
            for node, held in self.held.items()
            for one in held.get(index, ())
            if one.checksum == checksum and one.from_ns <= at_ns < one.until_ns
        ]

    def first_written_ns(self, index: int, checksum: int) -> int:
        return min(
            one.from_ns for held in self.held.values() for one in held.get(index, ()) if one.checksum == checksum
        )

    def first_at_ns(self, index: int) -> int:
        """When anything was written there first."""
        return min(one.from_ns for held in self.held.values() for one in held.get(index, ()))


@dataclass(frozen=True, slots=True)
class LostEntries:
    """Entries that one member lost, and too few others held."""

    reason: str
    written_ns: int
    """When the first of them was written anywhere."""
    places_ns: int
    """When anything was written in their places: what takes them may be older, at a member that lagged."""
    last_ns: int
    """When the member wrote the last of them."""
    at_ns: int
    """When it lost them."""


Damaged = tuple[int, str, str]
"""(When, member, words) of what a fault took that had been synced."""


def legal_loss(settings: GroupOnTrial, struck: Sequence[FaultWindow], reports: NodeReports) -> LegalLoss:
    excuses: list[Excuse] = []
    for lost in lost_entries(settings, struck, reports):
        excuses += excuses_of(lost)
    forgot = damaged(settings, struck)
    anything, anything_from_ns = voided(settings, forgot, reports)
    excuses += of_damaged_disks(forgot)
    return LegalLoss(anything=anything, anything_from_ns=anything_from_ns, excuses=tuple(excuses))


def lost_entries(settings: GroupOnTrial, struck: Sequence[FaultWindow], reports: NodeReports) -> Iterator[LostEntries]:
    logs, majority = _Logs(settings, struck, reports), len(settings.names) // 2 + 1
    for loss in logs.losses:
        few = {
            index: held
            for index, held in loss.lost.items()
            if len(set(logs.holders(index, held.checksum, loss.at_ns)) - {loss.node}) < majority
        }
        if few:
            yield LostEntries(
                reason=f"{loss.reason}, and too few others held entries {min(few)} to {max(few)}",
                written_ns=min(logs.first_written_ns(index, held.checksum) for index, held in few.items()),
                places_ns=min(map(logs.first_at_ns, few)),
                last_ns=max(held.from_ns for held in few.values()),
                at_ns=loss.at_ns,
            )


def damaged(settings: GroupOnTrial, struck: Sequence[FaultWindow]) -> list[Damaged]:
    return sorted(
        (fault.start_ns, node, f"{kind} at {fault.start_ns / 1e9:.1f} s took what {node} had synced")
        for fault in struck
        for kind in fault.kinds
        if kind in DAMAGE
        for node in fault.nodes_of(kind)
        if node in settings.names
    )


def of_damaged_disks(forgot: Sequence[Damaged]) -> Iterator[Excuse]:
    for from_ns, node, reason in forgot:
        yield Excuse(anomalies=FORGOTTEN, reason=reason, from_ns=from_ns, until_ns=LAST_NS, nodes=(node,))
        yield Excuse(anomalies=OLD_TERM, reason=reason, from_ns=0, until_ns=LAST_NS, seen_from_ns=from_ns)


def excuses_of(lost: LostEntries) -> Iterator[Excuse]:
    for anomalies, from_ns, until_ns, seen_from_ns in (
        (GONE, lost.written_ns, lost.last_ns, 0),
        (REUSED, lost.places_ns, lost.at_ns + LATE_NS, 0),
        (SKIPPED, lost.written_ns, LAST_NS, 0),
        (REPLACED, lost.places_ns, LAST_NS, lost.at_ns),
    ):
        yield Excuse(
            anomalies=anomalies, reason=lost.reason, from_ns=from_ns, until_ns=until_ns, seen_from_ns=seen_from_ns
        )


def voided(settings: GroupOnTrial, damaged: Sequence[Damaged], reports: NodeReports) -> tuple[str, int]:
    """Why nothing is promised, and from when on: since a term got a second leader by the vote of a damaged member."""
    if not damaged:
        return "", 0
    elections = sorted(
        (event["time"], node, event["epoch"], event["names"] or ())
        for node, events in reports.of("voted_in").items()
        if node in settings.names
        for event in events
    )
    leaders: dict[int, str] = {}
    for at_ns, node, term, voters in elections:
        forgot = [reason for from_ns, voter, reason in damaged if from_ns <= at_ns and voter in voters]
        if forgot and leaders.get(term, node) != node:
            return f"{forgot[0]}, and by its vote {node} led in term {term} like {leaders[term]}", at_ns
        leaders[term] = node
    return "", 0
