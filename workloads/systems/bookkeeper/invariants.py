"""What holds of BookKeeper at every moment, held against what bookies, writers and the metadata store say and do.

What the metadata store holds of a ledger is known from the commands that its nodes apply, in their order. What bookies
answer to a recovery is known from who asked, before the answers are weighed.

A bookie is remembered by its identity: one that began with an empty disk is another one, and owes nothing. What a
bookie held once it counts as holding: what a disk may lose is judged where clients see it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from harness.invariants import Breaches
from harness.record.meaning import Meaning
from harness.watch import ENDED
from system_under_test.bookkeeper.bookie.reports import log_of
from system_under_test.bookkeeper.ledger.event import Reply
from system_under_test.bookkeeper.ledger.metadata import LEDGERS, LedgerMetadata, LedgerState, decode_metadata
from system_under_test.bookkeeper.ledger.placement import bookies_of, write_set
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
    "reopened": Meaning(
        says="A closed ledger is not closed any more, or one that is recovered is open again.",
        usually="The metadata were written without a look at what others had written.",
    ),
    "unproven-end": Meaning(
        says="Recovery closed a ledger before an entry that may have been acknowledged: too few bookies had said that "
        "they do not have it.",
        usually="An error, harm or silence was taken for a no, or one no for enough.",
    ),
    "unfenced-no": Meaning(
        says="A bookie said to recovery that it does not have an entry, and would still have taken it from the writer.",
        usually="The read did not fence, or it was answered before the fence was durable.",
    ),
    "settled-read": Meaning(
        says="Recovery looked for an entry before the last ensemble's first, which was acknowledged long ago.",
        usually="Bookies of an ensemble that has no entries know no LAC, and that was taken for the beginning.",
    ),
    "unheld-ack": Meaning(
        says="A writer acknowledged an entry of which fewer bookies than the ack quorum had a copy where readers look.",
        usually="Answers are counted for an entry, or an ensemble, that they are not about, or one that is not yet in "
        "the metadata.",
    ),
    "unheld-entry": Meaning(
        says="The metadata were changed, and fewer bookies than the ack quorum have an entry where readers look now.",
        usually="Entries were acknowledged while the ensemble changed, or a bookie was named before it had its copies.",
    ),
    "uncopied-replacement": Meaning(
        says="Repair named a bookie in an ensemble that lacks an entry which others have and it should hold.",
        usually="The ensemble was changed before the entries were copied.",
    ),
    "forgotten-entry": Meaning(
        says="A bookie that does not sync its journal took an entry, lost it, and takes it for one that never was.",
        usually="It ended uncleanly, lost what was not synced, and takes what it has for all there was.",
    ),
    "reborn": Meaning(
        says="A bookie with an empty disk took the identity of one that was there before.",
        usually="Bookies are known by their addresses.",
    ),
    "early-lac": Meaning(
        says="A bookie heard that entries are confirmed which nobody has acknowledged.",
        usually="The writer sends what it has pushed in the place of what is acknowledged.",
    ),
    "fenced-add": Meaning(
        says="A bookie took an entry of a ledger's writer after its fence of that ledger was durable.",
        usually="Fence and add are decided apart, or the fence was forgotten with the process.",
    ),
    "forgotten-fence": Meaning(
        says="A bookie came back without a fence that it had answered.",
        usually="The fence was kept in memory alone, and went with the process.",
    ),
    "refused-entry": Meaning(
        says="A writer refused for certain an entry that a bookie has, and recovery may find.",
        usually="An answer that one bookie was fenced was taken for a no of all.",
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
        self._journal_sync = settings.journal_sync
        self._version = 0
        """Of the metadata store, as far as it is known."""
        self._ledgers: dict[str, LedgerMetadata] = {}
        """By their logs, as the metadata store has them."""
        self._answers: dict[tuple[str, int], dict[str, Reply]] = defaultdict(dict)
        """(Log, entry) -> which bookies said to recovery that they do not have it, and how."""
        self._identities: dict[str, str] = {}
        """Node -> which bookie it is now."""
        self._nodes: dict[str, str] = {}
        """Bookie -> the node that was it last."""
        self._lost: set[tuple[str, int]] = set()
        """(Log, entry) of which repair found that nobody has it."""
        self._born: set[str] = set()
        """Bookies that ever were."""
        self._copies: dict[tuple[str, int], dict[str, int]] = defaultdict(dict)
        """(Log of a ledger, entry) -> checksums by bookies."""
        self._taken: dict[tuple[str, int], set[str]] = defaultdict(set)
        """Which bookies have it from its writer; what recovery writes again may overtake a bookie's no to it."""
        self._last_taken: dict[str, dict[str, int]] = defaultdict(dict)
        """By bookie and log, the last of these."""
        self._limbo: dict[str, set[str]] = {}
        """By bookies that start, logs of which they say that they may have lost entries."""
        self._acknowledged: dict[str, int] = defaultdict(lambda: -1)
        """By logs of ledgers, the last entry that was acknowledged."""
        self._ends: dict[str, tuple[int, str]] = {}
        """By logs of ledgers, the last entry of those that are closed, and who was first to say so."""
        self._fenced: set[tuple[str, str]] = set()
        """(Bookie, log) of fences that are durable."""
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
        bookie = self._identities[node] = fields["bookie"]
        self._nodes[bookie] = node
        if fields["fresh"] and bookie in self._born:
            self._says("reborn", (node,), f"{node} has an empty disk, and is {bookie}, which was there before")
        self._born.add(bookie)

    def _written(self, node: str, fields: Mapping[str, Any]) -> None:
        log, entry, checksum = fields["log"], int(fields["start"]), int(fields["checksum"])
        bookie = self._identities[node]
        if (bookie, log) in self._fenced and not fields["is_recovery"]:
            self._says("fenced-add", (node,), f"{node} took entry {entry} of {log} after its fence was durable")
        copies = self._copies[log, entry]
        for other, its in copies.items():
            if its != checksum:
                self._says(
                    "different-copies", (node,), f"{node} has another entry {entry} of {log} than bookie {other}"
                )
                break
        copies[bookie] = checksum
        if not fields["is_recovery"]:
            self._taken[log, entry].add(bookie)
            self._last_taken[bookie][log] = max(self._last_taken[bookie].get(log, entry), entry)

    def _fences(self, node: str, fields: Mapping[str, Any]) -> None:
        self._fenced.add((self._identities[node], log_of(fields["ledger"])))

    def _in_limbo(self, node: str, fields: Mapping[str, Any]) -> None:
        self._limbo[self._identities[node]] = {log_of(ledger) for ledger in fields["ledgers"]}

    def _remembers(self, node: str, fields: Mapping[str, Any]) -> None:
        bookie, remembered = self._identities[node], {log_of(ledger) for ledger in fields["fences"]}
        forgotten = sorted(log for of, log in self._fenced if of == bookie and log not in remembered)
        if forgotten:
            self._says("forgotten-fence", (node,), f"{node} had answered the fence of {forgotten[0]}, and has none")
        self._fenced.update((bookie, log) for log in remembered)
        self._require_known_losses(node, bookie, {log_of(ledger): end for ledger, end in fields["ends"]})

    def _require_known_losses(self, node: str, bookie: str, ends: Mapping[str, int]) -> None:
        """Of a bookie that is back: what it lost of a ledger that counts on it, and has no end yet, it says it may have
        lost."""
        limbo = self._limbo.pop(bookie, set())
        for log, last in self._last_taken[bookie].items() if not self._journal_sync else ():
            ledger = self._ledgers[log]
            is_needed = any(bookie in fragment.ensemble for fragment in ledger.fragments)
            if ledger.state is not LedgerState.CLOSED and is_needed and log not in limbo and ends.get(log, 0) <= last:
                because = f"{node} had taken entry {last} of {log}, is back without it, and does not say so"
                self._says("forgotten-entry", (node,), because)

    def _refused(self, node: str, fields: Mapping[str, Any]) -> None:
        log, entry = log_of(fields["ledger"]), int(fields["entry"])
        if copies := self._copies[log, entry]:
            because = f"{node} refused entry {entry} of {log} for certain, which bookie {min(copies)} has"
            self._says("refused-entry", (node,), because)

    def _confirmed(self, node: str, fields: Mapping[str, Any]) -> None:
        log, lac = fields["log"], int(fields["offset"]) - 1
        end = self._ends[log][0] if log in self._ends else -1
        if lac > max(self._acknowledged[log], end):
            because = f"{node} heard that entry {lac} of {log} is confirmed, and nobody had acknowledged it"
            self._says("early-lac", (node,), because)

    def _holders(self, log: str, entry: int) -> int:
        """Of the bookies at which readers look."""
        copies = self._copies[log, entry]
        return sum(bookie in copies for bookie in bookies_of(self._ledgers[log], entry))

    def _acknowledges(self, node: str, fields: Mapping[str, Any]) -> None:
        log, entry = log_of(fields["ledger"]), int(fields["entry"])
        self._acknowledged[log] = max(self._acknowledged[log], entry)
        holders = self._holders(log, entry)
        if holders < self._ack_quorum:
            because = f"{node} acknowledged entry {entry} of {log}, which {holders} of its bookies had"
            self._says("unheld-ack", (node,), because)
        if log in self._ends and entry > self._ends[log][0]:
            self._beyond(node, log)

    def _closed(self, node: str, fields: Mapping[str, Any]) -> None:
        log, last = fields["log"], int(fields["end"]) - 1
        known, first = self._ends.setdefault(log, (last, node))
        if known != last:
            self._says("two-ends", (first, node), f"{log} ended with entry {known} for {first}, with {last} for {node}")
        if self._acknowledged[log] > last:
            self._beyond(node, log)

    def _beyond(self, node: str, log: str) -> None:
        last, first = self._ends[log]
        because = f"entry {self._acknowledged[log]} of {log} was acknowledged, and {first} closed it with entry {last}"
        self._says("beyond-end", (node,), because)

    def _metadata_changed(self, node: str, fields: Mapping[str, Any]) -> None:
        version = int(fields["version"])
        if version <= self._version:
            return
        self._version = version
        ((kind, arguments),) = json.loads(fields["command"]).items()
        if kind in ("create", "put") and arguments[0].startswith(LEDGERS):
            self._ledger_changed(node, decode_metadata(arguments[1], version))

    def _ledger_changed(self, node: str, metadata: LedgerMetadata) -> None:
        log = log_of(metadata.ledger)
        before, self._ledgers[log] = self._ledgers.get(log, metadata), metadata
        if _ORDER.index(metadata.state) < _ORDER.index(before.state):
            self._says("reopened", (node,), f"{log} was {before.state.value}, and is {metadata.state.value}")
        if metadata.state is LedgerState.CLOSED:
            self._closed(node, {"log": log, "end": metadata.last_entry + 1})
            self._require_held(node, log, metadata.last_entry)
        elif metadata.fragments != before.fragments:
            self._require_held(node, log, self._acknowledged[log])
        if metadata.state is before.state:
            self._require_copied(node, log, before, metadata)

    def _require_held(self, node: str, log: str, last: int) -> None:
        for entry in range(last + 1):
            holders = self._holders(log, entry)
            if holders < self._ack_quorum:
                because = f"entry {entry} of {log} is now at bookies of which {holders} have it"
                self._says("unheld-entry", (node,), because)
                return

    def _require_copied(self, node: str, log: str, before: LedgerMetadata, after: LedgerMetadata) -> None:
        """To bookies that were named in the places of others, of fragments that take no entries any more."""
        ends = [*(fragment.first_entry for fragment in after.fragments[1:]), after.last_entry + 1]
        for old, new, end in zip(before.fragments, after.fragments, ends, strict=False):
            named = set(new.ensemble) - set(old.ensemble)
            for entry in range(new.first_entry, end) if named else ():
                copies = self._copies[log, entry]
                write_to = write_set(after, new, entry)
                lacking = [bookie for bookie in write_to if bookie in named and bookie not in copies]
                if lacking and copies and (log, entry) not in self._lost:
                    because = f"entry {entry} of {log} is now looked for at bookie {lacking[0]}, which lacks it"
                    self._says("uncopied-replacement", (node,), because)
                    return

    def _entry_lost(self, node: str, fields: Mapping[str, Any]) -> None:
        self._lost.add((log_of(fields["ledger"]), int(fields["entry"])))

    def _recovery_ends(self, node: str, fields: Mapping[str, Any]) -> None:
        log, last = log_of(fields["ledger"]), int(fields["last"])
        metadata = self._ledgers[log]
        if metadata.state is not LedgerState.IN_RECOVERY:
            return
        answers, bookies = self._answers[log, last + 1], bookies_of(metadata, last + 1)
        replies = [answers[bookie] for bookie in bookies if bookie in answers]
        noes = sum(reply.is_no for reply in replies)
        if noes < metadata.quorums.explicit_noes and len(replies) < len(bookies):
            because = f"{node} ended {log} with entry {last}, and of the bookies of the next one {noes} had said no"
            self._says("unproven-end", (node,), because)

    def _recovery_read(self, node: str, fields: Mapping[str, Any]) -> None:
        log, entry, bookie, reply = (
            log_of(fields["ledger"]),
            int(fields["entry"]),
            fields["bookie"],
            Reply(fields["reply"]),
        )
        if reply.is_no:
            self._answers[log, entry][bookie] = reply
            if (bookie, log) not in self._fenced:
                because = (
                    f"bookie {bookie} said to {node} that it has no entry {entry} of {log}, which it may still take"
                )
                self._says("unfenced-no", (node,), because)
            self._require_remembered(node, log, entry, bookie)
        elif reply in _LOST:
            self._answers[log, entry].setdefault(bookie, reply)
        ledger = self._ledgers[log]
        if ledger.state is LedgerState.IN_RECOVERY and entry < ledger.last_fragment.first_entry:
            because = f"{node} looked for entry {entry} of {log}, whose last ensemble begins with entry "
            self._says("settled-read", (node,), f"{because}{ledger.last_fragment.first_entry}")

    def _require_remembered(self, node: str, log: str, entry: int, bookie: str) -> None:
        if self._journal_sync or self._ledgers[log].state is LedgerState.CLOSED:
            return
        if bookie in self._taken[log, entry]:
            because = f"bookie {bookie} had taken entry {entry} of {log}, and said to {node} that there is none"
            self._says("forgotten-entry", (self._nodes[bookie],), because)


_ORDER = (LedgerState.OPEN, LedgerState.IN_RECOVERY, LedgerState.CLOSED)
"""States only follow each other so."""
_LOST = (Reply.GONE, Reply.UNKNOWN)
"""A bookie that answers so has lost the entry, or may have, and does not have it."""


_EVENTS: Mapping[str, Callable[[BookkeeperInvariants, str, Mapping[str, Any]], None]] = {
    "metadata_changed": BookkeeperInvariants._metadata_changed,
    "recovery_read": BookkeeperInvariants._recovery_read,
    "entry_lost": BookkeeperInvariants._entry_lost,
    "recovery_ends": BookkeeperInvariants._recovery_ends,
    ENDED: BookkeeperInvariants._ended,
    "bookie": BookkeeperInvariants._is_bookie,
    "written": BookkeeperInvariants._written,
    "fenced": BookkeeperInvariants._fences,
    "limbo": BookkeeperInvariants._in_limbo,
    "remembers": BookkeeperInvariants._remembers,
    "entry_refused": BookkeeperInvariants._refused,
    "confirmed": BookkeeperInvariants._confirmed,
    "entry_acknowledged": BookkeeperInvariants._acknowledges,
    "closed": BookkeeperInvariants._closed,
}
