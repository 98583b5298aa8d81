"""What holds of BookKeeper at every moment, held against what bookies, writers and the metadata store say and do.

A bookie is remembered by its identity: one that began with an empty disk is another one, and owes nothing. What a
bookie held once it counts as holding: what a disk may lose is judged where clients see it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from harness.invariants import Breaches
from harness.record.meaning import Meaning
from harness.watch import ENDED
from workloads.systems.bookkeeper.settings import BookkeeperSettings

INVARIANTS: Mapping[str, Meaning] = {
    "two-ends": Meaning(
        says="A ledger ended with one entry for one process, and with another one for another.",
        usually="It was closed without a look at whether somebody else had closed it.",
    ),
    "beyond-end": Meaning(
        says="An entry was acknowledged that lies behind the last one of its closed ledger.",
        usually="Recovery took too few answers for the end, or a bookie took adds after it was fenced.",
    ),
    "unheld-ack": Meaning(
        says="A writer acknowledged an entry that fewer bookies had than its ack quorum.",
        usually="Answers are counted for an entry, or an ensemble, that they are not about.",
    ),
    "early-lac": Meaning(
        says="A bookie heard that entries are confirmed which nobody has acknowledged.",
        usually="The writer sends what it has pushed in the place of what is acknowledged.",
    ),
    "fenced-add": Meaning(
        says="A bookie took an entry of a ledger's writer after it had answered a fence of that ledger.",
        usually="Fence and add are decided apart, or the fence was forgotten with the process.",
    ),
    "different-copies": Meaning(
        says="Two bookies hold different entries of one number of one ledger.",
        usually="An entry was taken for another one, or two processes wrote one ledger.",
    ),
    "diverging-metadata": Meaning(
        says="Two nodes of the metadata store had different versions after the same command.",
        usually="They did not apply the same commands, or not to the same state.",
    ),
}


class BookkeeperInvariants:
    """`Invariants` of the harness."""

    def __init__(self, settings: BookkeeperSettings, breaches: Breaches) -> None:
        self._says = breaches.says
        self._ack_quorum = settings.ack_quorum
        self._identities: dict[str, str] = {}
        """Node -> which bookie it is now."""
        self._copies: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
        """(Log of a ledger, entry) -> checksums by bookies."""
        self._acknowledged: dict[str, int] = defaultdict(lambda: -1)
        """By logs of ledgers, the last entry that was acknowledged."""
        self._ends: dict[str, tuple[int, str]] = {}
        """By logs of ledgers, the last entry of those that are closed, and who was first to say so."""
        self._fenced: set[tuple[str, str]] = set()
        """(Bookie, log) of fences that were answered."""
        self._versions: dict[int, tuple[int, str]] = {}
        """By index, the version of the metadata store, and the node that was there first."""

    def saw(self, node: str, event: str, fields: Mapping[str, Any]) -> None:
        handle = _EVENTS.get(event)
        if handle is not None:
            handle(self, node, fields)

    def observe(self, node: str, point: str, values: Mapping[str, int]) -> None:
        if point == "metadata-changed":
            version, first = self._versions.setdefault(values["index"], (values["version"], node))
            if version != values["version"]:
                because = f"after entry {values['index']} {first} had version {version}, and {node} {values['version']}"
                self._says("diverging-metadata", (first, node), because)

    def _ended(self, node: str, fields: Mapping[str, Any]) -> None:
        self._identities.pop(node, None)

    def _is_bookie(self, node: str, fields: Mapping[str, Any]) -> None:
        self._identities[node] = fields["bookie"]

    def _written(self, node: str, fields: Mapping[str, Any]) -> None:
        log, entry, checksum = fields["log"], int(fields["start"]), int(fields["checksum"])
        bookie = self._identities[node]
        if (bookie, log) in self._fenced and not fields["is_recovery"]:
            self._says("fenced-add", (node,), f"{node} took entry {entry} of {log} after it had answered a fence")
        copies = self._copies[log, entry]
        for other, its in copies.items():
            if its != checksum:
                self._says(
                    "different-copies", (node,), f"{node} has another entry {entry} of {log} than bookie {other}"
                )
                break
        copies[bookie] = checksum

    def _fences(self, node: str, fields: Mapping[str, Any]) -> None:
        self._fenced.add((self._identities[node], _log_of(fields)))

    def _confirmed(self, node: str, fields: Mapping[str, Any]) -> None:
        log, lac = fields["log"], int(fields["offset"]) - 1
        end = self._ends[log][0] if log in self._ends else -1
        if lac > max(self._acknowledged[log], end):
            because = f"{node} heard that entry {lac} of {log} is confirmed, and nobody had acknowledged it"
            self._says("early-lac", (node,), because)

    def _acknowledges(self, node: str, fields: Mapping[str, Any]) -> None:
        log, entry = _log_of(fields), int(fields["entry"])
        self._acknowledged[log] = max(self._acknowledged[log], entry)
        holders = len(self._copies[log, entry])
        if holders < self._ack_quorum:
            because = f"{node} acknowledged entry {entry} of {log}, which {holders} bookies had"
            self._says("unheld-ack", (node,), because)
        if log in self._ends and entry > self._ends[log][0]:
            self._beyond(node, log)

    def _closed(self, node: str, fields: Mapping[str, Any]) -> None:
        log, last = _log_of(fields), int(fields["last"])
        known, first = self._ends.setdefault(log, (last, node))
        if known != last:
            self._says("two-ends", (first, node), f"{log} ended with entry {known} for {first}, with {last} for {node}")
        if self._acknowledged[log] > last:
            self._beyond(node, log)

    def _beyond(self, node: str, log: str) -> None:
        last, first = self._ends[log]
        because = f"entry {self._acknowledged[log]} of {log} was acknowledged, and {first} closed it with entry {last}"
        self._says("beyond-end", (node,), because)


def _log_of(fields: Mapping[str, Any]) -> str:
    return f"ledger-{fields['ledger']}"


_EVENTS: Mapping[str, Callable[[BookkeeperInvariants, str, Mapping[str, Any]], None]] = {
    ENDED: BookkeeperInvariants._ended,
    "bookie": BookkeeperInvariants._is_bookie,
    "written": BookkeeperInvariants._written,
    "fenced": BookkeeperInvariants._fences,
    "confirmed": BookkeeperInvariants._confirmed,
    "entry_acknowledged": BookkeeperInvariants._acknowledges,
    "ledger_closed": BookkeeperInvariants._closed,
}
