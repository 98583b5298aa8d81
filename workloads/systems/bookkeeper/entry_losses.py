"""Which entries faults may have taken for good, by what bookies report of themselves.

A bookie reports each entry that it writes, and after each start which ones it still has; the difference is what it
lost. A loss counts where a fault explains it that takes what the bookie had acknowledged.

    b1: written 41 · disk lost at 3.0 s     b2: written 41 · disk lost at 3.5 s     b3: written 40, 42

Entry 41 is lost legally with an ack quorum of two: as many as acknowledged it have lost it, and nobody has it any more.
Had repair copied it to b4 in between, b4 would have reported that, and somebody would have it.

The ledger cannot be known to go on behind an entry that was lost before the ledger was closed: if it ends there, all
entries behind it went with it. And a bookie whose disk was damaged in part does not know what it lost, fences among it:
a ledger may have been closed before an entry that too few others had.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from harness.membership import SHRINK, WIPE
from harness.record.fault_log import ENDS_PROCESSES, FaultWindow
from system_under_test.bookkeeper.bookie.reports import runs
from workloads.systems.bookkeeper.settings import BookkeeperSettings

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

CANNOT_WRITE = ("full-disk", "failing-fsync", "disk-errors")
"""Faults under which a node may end itself rather than go on."""
HARMING = ("bit-rot", "misdirected-writes", "short-files")
"""Faults after which a bookie may have harmed entries that it takes for whole: it reports that it has them."""
UNNOTICED = (*HARMING, "old-disk")
"""Faults by which a bookie loses what was synced, and does not know that it did."""
DAMAGE = (*UNNOTICED, "lost-disk")
"""Faults by which a disk loses what was synced."""
REPLACED = (SHRINK, WIPE)
"""Faults by which a bookie loses its disk and its identity, as with `lost-disk`."""
UNSYNCED = ("power", "failing-fsync")
"""Faults by which a disk loses what was not synced."""
ENDING = (*ENDS_PROCESSES, "old-disk", *CANNOT_WRITE)
"""Faults that end a bookie, or under which it ends itself: it starts again, unless its disk is damaged."""

LAST_NS = 1 << 62
RUNS_SHOWN = 5
"""So many runs of lost entries are named in a reason."""

Place = tuple[str, int]
"""(Log of a ledger, entry)."""


@dataclass(frozen=True, slots=True, order=True)
class Struck:
    """A fault that takes something from a bookie's disk."""

    from_ns: int
    until_ns: int
    kind: str

    def __str__(self) -> str:
        return f"{self.kind} at {self.from_ns / 1e9:.1f} s"


@dataclass(frozen=True, slots=True)
class Loss:
    """Of one entry, at one bookie."""

    node: str
    struck: Struck
    may_deny: bool
    """The bookie may say that it never had the entry."""


@dataclass(frozen=True, slots=True)
class LostEntries:
    """Entries of one ledger that were lost for the same reason."""

    reason: str
    spans_ns: tuple[tuple[int, int], ...]
    """Each run of them without a hole was written, for the first time, from the first moment to the second."""
    lost_ns: int
    """Until then at least one bookie had each of them and knew of it."""
    is_beyond_end: bool
    """The ledger was closed before them."""


@dataclass
class EntryReports:
    """What bookies say of entries, and who lost which."""

    settings: BookkeeperSettings
    struck: Mapping[str, Sequence[Struck]]
    """Each bookie's faults are in the order in which they began."""
    ended: Mapping[str, Sequence[Struck]]
    """Faults that ended a bookie, by bookies."""
    written_ns: dict[Place, int] = field(default_factory=dict)
    """When an entry was first written anywhere."""
    holders: dict[Place, set[str]] = field(default_factory=lambda: defaultdict(set))
    losses: dict[Place, list[Loss]] = field(default_factory=lambda: defaultdict(list))
    """Those that a fault explains."""

    def follow(self, node: str, events: Sequence[Mapping[str, Any]]) -> None:
        now: dict[str, dict[int, int]] = defaultdict(dict)
        harming = sorted((_harms_until_ns(one), one) for one in self.struck[node] if one.kind in HARMING)
        started_ns = 0
        for event in events:
            at_ns, log = event["time"], event["group"]
            while harming and harming[0][0] <= at_ns:
                self._lose(node, now, harming.pop(0)[1])
            if event["event"] == "written":
                now[log][event["start"]] = at_ns
                place = log, event["start"]
                self.written_ns[place] = min(at_ns, self.written_ns.get(place, at_ns))
            elif event["event"] == "recovered":
                self._keep(node, now, log, _entries(event["members"] or ()), at_ns)
            else:
                for gone in now.keys() - set(event["names"] or ()):
                    self._keep(node, now, gone, frozenset(), at_ns)
                started_ns = at_ns
        for _, one in harming:
            self._lose(node, now, one)
        if self.struck[node] and any(one.from_ns > started_ns for one in self.ended[node]):
            # It never started again, so what it has is not known.
            self._lose(node, now, self.struck[node][-1])
        for log, entries in now.items():
            for entry in entries:
                self.holders[log, entry].add(node)

    def _keep(self, node: str, now: dict[str, dict[int, int]], log: str, kept: frozenset[int], at_ns: int) -> None:
        """It started, and has these entries of a log and no others."""
        for entry in [entry for entry in now[log] if entry not in kept]:
            written_ns = now[log].pop(entry)
            explained = [one for one in self.struck[node] if one.from_ns <= at_ns and written_ns <= one.until_ns]
            if explained:
                one = explained[-1]
                self.losses[log, entry].append(Loss(node, one, may_deny=one.kind in UNNOTICED))

    def _lose(self, node: str, now: dict[str, dict[int, int]], one: Struck) -> None:
        """Whatever it had then."""
        for log, entries in now.items():
            for entry in entries:
                self.losses[log, entry].append(Loss(node, one, may_deny=one.kind in UNNOTICED))
            entries.clear()


def _harms_until_ns(one: Struck) -> int:
    """What is written later stays whole."""
    return one.until_ns if one.kind == "misdirected-writes" else one.from_ns


def _entries(bounds: Sequence[int]) -> frozenset[int]:
    return frozenset(
        entry for first, last in zip(bounds[::2], bounds[1::2], strict=True) for entry in range(first, last + 1)
    )


def lost_entries(
    settings: BookkeeperSettings, struck: Sequence[FaultWindow], reports: NodeReports
) -> Iterator[LostEntries]:
    taking = (*DAMAGE, *REPLACED) if settings.journal_sync else (*DAMAGE, *REPLACED, *UNSYNCED)
    by_node = struck_by_node(struck, taking, settings.bookie_names)
    if not any(by_node.values()):
        return
    seen = EntryReports(settings, by_node, struck_by_node(struck, ENDING, settings.bookie_names))
    events = reports.of("written", "recovered", "logs")
    for node in settings.bookie_names:
        seen.follow(node, events.get(node, ()))
    yield from _together(_lost(seen, _ends(reports)), seen.written_ns)


def struck_by_node(
    struck: Sequence[FaultWindow], kinds: Sequence[str], names: Sequence[str]
) -> dict[str, list[Struck]]:
    by_node: dict[str, list[Struck]] = {node: [] for node in names}
    for fault in struck:
        for kind in fault.kinds:
            for node in fault.nodes_of(kind) if kind in kinds else ():
                if node in by_node:
                    by_node[node].append(Struck(fault.start_ns, fault.stop_ns, kind))
    return {node: sorted(of, key=lambda one: one.from_ns) for node, of in by_node.items()}


def _ends(reports: NodeReports) -> dict[str, tuple[int, int]]:
    """Log -> (its end, when it was first known)."""
    ends: dict[str, tuple[int, int]] = {}
    for events in reports.of("closed").values():
        for event in events:
            log, end = event["group"], (event["end"], event["time"])
            ends[log] = min(ends.get(log, end), end, key=lambda one: one[1])
    return ends


@dataclass(frozen=True, slots=True)
class _Why:
    words: str
    lost_ns: int
    is_beyond_end: bool


def _lost(seen: EntryReports, ends: Mapping[str, tuple[int, int]]) -> Iterator[tuple[Place, _Why]]:
    """In the order of logs and of their entries."""
    for log, places in groupby(sorted(seen.written_ns), key=lambda place: place[0]):
        end, closed_ns = ends.get(log, (LAST_NS, LAST_NS))
        cut: _Why | None = None
        for place in places:
            if place[1] < end:
                why = _without_holders(seen, place, LAST_NS)
            else:
                why = cut or _without_holders(seen, place, closed_ns) or _closed_without(seen, place, closed_ns)
                if place[1] == end:
                    cut = why
                why = why and replace(why, is_beyond_end=True)
            if why is not None:
                yield place, why


def _without_holders(seen: EntryReports, place: Place, until_ns: int) -> _Why | None:
    """As many bookies as an ack quorum lost the entry until then, and nobody else had it."""
    lost, holders = _at(seen, place, until_ns)
    if holders or len(lost) < seen.settings.ack_quorum:
        return None
    return _Why(f"no bookie was left that had it: {_listed(lost)}", _last_ns(lost), is_beyond_end=False)


def _closed_without(seen: EntryReports, place: Place, closed_ns: int) -> _Why | None:
    """A ledger was closed before an entry of which too few bookies knew for certain: one that had it may have said that
    it never did, or have taken it after it had forgotten a fence."""
    lost, holders = _at(seen, place, closed_ns)
    until_ns = max(closed_ns, seen.written_ns[place])
    forgetful = {
        node: next(one for one in of if one.kind in UNNOTICED)
        for node, of in seen.struck.items()
        if any(one.kind in UNNOTICED and one.from_ns <= until_ns for one in of)
    }
    doubtful = {node: forgetful[node] for node in holders if node in forgetful}
    doubtful |= {node: loss.struck for node, loss in lost.items() if loss.may_deny}
    if not doubtful or len(holders - forgetful.keys()) >= seen.settings.ack_quorum:
        return None
    words = ", ".join(f"{node} ({one})" for node, one in sorted(doubtful.items()))
    lost_ns = max(one.from_ns for one in doubtful.values())
    return _Why(f"too few bookies were left that knew of it: {words}", lost_ns, is_beyond_end=False)


def _at(seen: EntryReports, place: Place, until_ns: int) -> tuple[dict[str, Loss], set[str]]:
    """Who had lost an entry by then, and who had it."""
    losses = seen.losses.get(place, ())
    holders = seen.holders.get(place, set()) | {loss.node for loss in losses if loss.struck.from_ns > until_ns}
    return {loss.node: loss for loss in losses if loss.node not in holders}, holders


def _listed(lost: Mapping[str, Loss]) -> str:
    return ", ".join(f"{node} ({loss.struck})" for node, loss in sorted(lost.items()))


def _last_ns(lost: Mapping[str, Loss]) -> int:
    return max(loss.struck.from_ns for loss in lost.values())


def _together(lost: Iterator[tuple[Place, _Why]], written_ns: Mapping[Place, int]) -> Iterator[LostEntries]:
    together: dict[tuple[str, _Why], list[int]] = defaultdict(list)
    for (log, entry), why in lost:
        together[log, why].append(entry)
    for (log, why), entries in together.items():
        without_hole = _runs(entries)
        shown = [str(first) if first == last else f"{first} to {last}" for first, last in without_hole[:RUNS_SHOWN]]
        more = f" and {len(without_hole) - RUNS_SHOWN} more runs" if len(without_hole) > RUNS_SHOWN else ""
        ends_there = ", where the ledger ends" if why.is_beyond_end else ""
        which = "entry" if len(entries) == 1 else "entries"
        yield LostEntries(
            reason=f"{which} {', '.join(shown)}{more} of {log.replace('-', ' ')}{ends_there}: {why.words}",
            spans_ns=tuple((written_ns[log, first], written_ns[log, last]) for first, last in without_hole),
            lost_ns=why.lost_ns,
            is_beyond_end=why.is_beyond_end,
        )


def _runs(entries: Sequence[int]) -> list[tuple[int, int]]:
    """The first and the last one of each run of ascending numbers that has no hole."""
    bounds = runs(entries)
    return list(zip(bounds[::2], bounds[1::2], strict=True))
