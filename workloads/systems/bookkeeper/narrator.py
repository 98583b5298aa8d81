"""What nodes of BookKeeper report, in words for people: who owned a partition, what became of ledgers and entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.narrator import Phrase

Fields = Mapping[str, Any]
ROUTINE = frozenset(
    {
        *("log", "logs", "written", "confirmed", "checkpoint", "remembers", "role", "running"),
        *("metadata_changed", "raft_committed", "term", "vote_persisted"),
    }
)
"""Told of by the other events around them, or too often."""
LONGEST = 200
WORDS: Mapping[str, tuple[str, str, int]] = {
    "leader": ("leads, term {term}", "led the metadata store in term {term}", 6),
    "follower": ("follows, term {term}", "followed a leader of the metadata store in term {term}", 2),
    "voted_in": ("elected", "was elected to lead the metadata store in term {term} by {by}", 5),
    "truncated": ("cuts its log at {to}", "cut its log at entry {to}", 4),
    "deleted": ("begins at {to}", "had no entries of its log before {to} any more", 2),
    "recovered": ("{log} up to {end}", "had these entries of {log} when it started: {entries}", 6),
    "metadata_session": ("session", "got session {session} of the metadata store", 2),
    "metadata_session_lost": ("session over", "learned that session {session} of the metadata store was over", 7),
    "metadata_session_left": ("session left", "could not end session {session}: {reason}", 2),
    "owner": ("owns {partition}", "got the owner's key of {partition}", 8),
    "no_owner": ("owns {partition} no more", "learned that it owned {partition} no more", 8),
    "ledger_listed": ("writes ledger {ledger}", "made ledger {ledger} the last one of {partition}, and wrote there", 6),
    "ledger_lost": ("loses ledger {ledger}", "found that ledger {ledger} of {partition} took no entries any more", 9),
    "partition_interrupted": ("interrupted", "could not go on with {partition}: {reason}", 6),
    "fenced": ("fences ledger {ledger}", "had a durable fence of ledger {ledger}", 8),
    "limbo": ("limbo", "could not say what it had lost of ledgers {ledgers}", 8),
    "limbo_left": ("out of limbo", "had back what it had lost of ledger {ledger}", 5),
    "willing": ("{state}", "said that it was {state}", 5),
    "disk_full": ("disk full", "found no room on its disk: {reason}", 6),
    "bookie_silent": ("{bookie} silent", "got no answer of bookie {bookie}: {reason}", 3),
    "entry_acknowledged": ("acknowledges {entry}", "acknowledged entry {entry} of ledger {ledger}", 3),
    "entry_refused": ("refuses {entry}", "refused entry {entry} of ledger {ledger} for certain", 7),
    "recovery_read": ("{entry}: {reply}", "heard of entry {entry} of ledger {ledger} from bookie {bookie}: {reply}", 5),
    "recovery_ends": ("ends ledger {ledger}", "decided that ledger {ledger} ends with entry {last}", 8),
    "recovery_gave_up": ("gives up ledger {ledger}", "gave up to recover ledger {ledger}: {reason}", 5),
    "recovery_failed": ("cannot end ledger {ledger}", "could not recover ledger {ledger}: {reason}", 5),
    "closed": ("{log} ends at {end}", "knew that {log} was closed before entry {end}", 7),
    "ledger_published": ("ledger {ledger} {state}", "changed the metadata of ledger {ledger}, which is {state}", 6),
    "ledger_handle_ended": ("leaves ledger {ledger}", "gave up to write ledger {ledger}: {reason}", 6),
    "ledger_marked": ("marks ledger {ledger}", "marked ledger {ledger}, which lacks copies at bookies {bookies}", 5),
    "fragment_repaired": ("repairs ledger {ledger}", "named other bookies in an ensemble of ledger {ledger}", 6),
    "repair_round": ("repair: {outcome}", "looked at ledger {ledger} to repair it: {outcome}", 3),
    "repair_failed": ("repair fails", "could not repair ledger {ledger}: {reason}", 4),
    "entry_lost": ("entry {entry} lost", "found that nobody had entry {entry} of ledger {ledger}", 9),
    "ledger_unmarked": ("ledger {ledger} whole", "found that ledger {ledger} lacked nothing any more", 3),
    "malformed_mark": ("malformed mark", "could not read the mark {key}: {reason}", 6),
    "malformed_ledger": ("malformed ledger", "could not read the metadata {key}: {reason}", 6),
    "malformed_raft_message": ("malformed message", "could not read what {remote} sent: {reason}", 6),
    "panic": ("panics", "ended of itself: a panic", 10),
    "stopped": ("stops", "stopped", 3),
}
"""Event -> (label, sentence, weight), with the event's fields by their names."""


class BookkeeperNarrator:
    """`Narrator` of the harness."""

    def narrate(self, node: str, event: str, fields: Fields) -> Phrase | None:
        if event in ROUTINE:
            return None
        if event == "bookie":
            bookie, is_fresh = fields.get("bookie"), fields.get("fresh")
            how = "began with an empty disk" if is_fresh else "came back"
            return Phrase(label=f"bookie {bookie}", sentence=f"{how}, as bookie {bookie}", weight=8 if is_fresh else 4)
        if event == "auditor":
            is_elected = fields.get("elected")
            sentence = "was elected to be the auditor" if is_elected else "learned that it was the auditor no more"
            return Phrase(label="auditor" if is_elected else "no auditor", sentence=sentence, weight=4)
        if event in WORDS:
            label, sentence, weight = WORDS[event]
            in_words = _FieldsInWords({name: _in_words(name, value) for name, value in fields.items()})
            return Phrase(
                label=label.format_map(in_words), sentence=sentence.format_map(in_words)[:LONGEST], weight=weight
            )
        given = ", ".join(f"{name} {value}" for name, value in fields.items())
        return Phrase(label=event.replace("_", " "), sentence=f"reported {event} ({given})"[:LONGEST], weight=2)


class _FieldsInWords(dict[str, str]):
    def __missing__(self, name: str) -> str:
        """A field that the event does not have, as an older one."""
        return "?"


def _in_words(name: str, value: Any) -> str:
    if name == "log":
        return str(value).replace("-", " ")
    if not isinstance(value, list):
        return str(value)
    if name == "entries":
        runs = zip(value[::2], value[1::2], strict=False)
        return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in runs) or "none"
    return ", ".join(map(str, value)) or "none"
