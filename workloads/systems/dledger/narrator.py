"""What members of a group report, in words for people: who led, and what became of their logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.narrator import Phrase

Fields = Mapping[str, Any]
ROUTINE = frozenset({"log", "written", "confirmed", "term", "vote_persisted"})
"""Told of by the other events around them, or too often."""


class DledgerNarrator:
    """`Narrator` of the harness."""

    def narrate(self, node: str, event: str, fields: Fields) -> Phrase | None:
        if event in ROUTINE:
            return None
        term, to = fields.get("term"), fields.get("to")
        match event:
            case "leader":
                start = fields.get("start")
                log = "" if start is None else f", with a log that ended before entry {start}"
                sentence = f"led in term {term}{log}"
                return Phrase(label=f"leads, term {term}", sentence=sentence, weight=8)
            case "voted_in":
                voters = ", ".join(str(voter) for voter in fields.get("by") or ())
                return Phrase(label="elected", sentence=f"was elected in term {term} by {voters}", weight=7)
            case "candidate":
                return Phrase(label=f"stands, term {term}", sentence=f"became a candidate in term {term}", weight=4)
            case "follower":
                return Phrase(label=f"follows, term {term}", sentence=f"followed a leader in term {term}", weight=3)
            case "truncated":
                return Phrase(label=f"cuts its log at {to}", sentence=f"cut its log at entry {to}", weight=9)
            case "deleted":
                return Phrase(label=f"begins at {to}", sentence=f"had no entries before {to} any more", weight=4)
            case "recovered":
                end = fields.get("end")
                sentence = f"found its log to end before entry {end} when it started"
                return Phrase(label=f"log ends at {end}", sentence=sentence, weight=7)
            case "running":
                return Phrase(label="runs", sentence="had started", weight=2)
            case "panic":
                return Phrase(label="panics", sentence="ended of itself: a panic", weight=10)
        given = ", ".join(f"{name} {value}" for name, value in fields.items())
        return Phrase(label=event.replace("_", " "), sentence=f"reported {event} ({given})"[:200], weight=2)
