"""What a leader knows of a follower."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.raft.snapshot import Outgoing


@dataclass(slots=True)
class Progress:
    next_index: int
    heard_ns: int
    match: int = 0
    round: int = 0
    is_probing: bool = True
    """Looking for the point where the logs agree: one append at a time. Otherwise sending ahead."""
    is_waiting: bool = False
    """A probe is under way; the next goes out with its answer or with the next round."""
    outgoing: Outgoing | None = None
    """The snapshot that is under way, as the next entries are gone; no entries are sent meanwhile."""
