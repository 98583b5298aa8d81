"""What nodes of CMQ report, in words for people: who led which group, and what became of its log and its members."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.narrator import Phrase

Fields = Mapping[str, Any]
ROUTINE = frozenset(
    {"log", "written", "confirmed", "raft_committed", "term", "pre_vote", "state", "snapshot", "running"}
)
"""Told of by the other events around them, or too often."""
LONGEST = 200
WORDS: Mapping[str, tuple[str, str, int]] = {
    "leader": ("leads {group}, term {term}", "led group {group} in term {term}, from entry {start} on", 8),
    "follower": ("follows in {group}, term {term}", "led group {group} no more, in term {term}", 6),
    "voted_in": ("elected in {group}", "was elected in group {group} in term {term} by {by}", 7),
    "membership": (
        "{voters} in {group}",
        "took {voters} for the voters of group {group}, and for learners {learners}",
        7,
    ),
    "hands_over": ("hands {group} over", "asked {successor} to stand for election in group {group}", 6),
    "handed_over": ("{group} to {to}: {succeeded}", "had {to} lead group {group}, if that succeeded: {succeeded}", 5),
    "truncated": ("cuts {log} at {to}", "cut its log of group {log} at entry {to}", 9),
    "deleted": ("{log} begins at {to}", "had a snapshot in the place of all entries of group {log} up to {to}", 4),
    "recovered": ("{log} ends at {end}", "found its log of group {log} to end at entry {end} when it started", 7),
    "restored": ("{group} as of {index}", "went back to a snapshot of group {group} as of entry {index}", 7),
    "node_added": ("{node} in {group}", "added {node} to group {group} as a learner", 7),
    "node_promoted": ("{node} votes in {group}", "let {node} vote in group {group}", 7),
    "node_removed": ("{node} out of {group}", "removed {node} from group {group}", 8),
    "malformed_raft_message": ("malformed message", "could not read what {remote} sent: {reason}", 6),
    "malformed_frame": ("malformed frame", "could not read what {remote} sent: {reason}", 6),
    "panic": ("panics", "ended of itself: a panic", 10),
    "stopped": ("stops", "stopped", 3),
}
"""Event -> (label, sentence, weight), with the event's fields by their names."""


class CmqNarrator:
    """`Narrator` of the harness."""

    def narrate(self, node: str, event: str, fields: Fields) -> Phrase | None:
        if event in ROUTINE:
            return None
        if event in WORDS:
            label, sentence, weight = WORDS[event]
            in_words = _FieldsInWords({name: _in_words(value) for name, value in fields.items()})
            return Phrase(
                label=label.format_map(in_words), sentence=sentence.format_map(in_words)[:LONGEST], weight=weight
            )
        of_event = ", ".join(f"{name} {value}" for name, value in fields.items())
        return Phrase(label=event.replace("_", " "), sentence=f"reported {event} ({of_event})"[:LONGEST], weight=2)


class _FieldsInWords(dict[str, str]):
    def __missing__(self, name: str) -> str:
        """A field that the event does not have, as an older one."""
        return "?"


def _in_words(value: Any) -> str:
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)
