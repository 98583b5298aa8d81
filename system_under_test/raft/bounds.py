"""How much at once: what a Raft node keeps in memory, sends ahead, and hands out to be applied."""

from __future__ import annotations

from dataclasses import dataclass, fields

_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    window_entries: int = 4096
    """How far a leader sends ahead of what a follower has acknowledged."""
    batch_entries: int = 512
    """The most entries of one append."""
    batch_bytes: int = _MEBIBYTE
    """The most data of one append, unless a single entry has more."""
    promotion_lag: int = 512
    """A learner that is more entries behind than this does not become a voter: the group might have to wait for it."""
    log_memory_bytes: int = 64 * _MEBIBYTE
    """So much of the log's newest part is kept in memory."""
    applied_entries: int = 1024
    """The most committed entries that one step hands out to be applied, so that messages are answered in between."""
    applied_bytes: int = 4 * _MEBIBYTE
    """The most data of these, unless a single entry has more."""

    def __post_init__(self) -> None:
        for bound in fields(self):
            least, value = int(bound.name != "promotion_lag"), getattr(self, bound.name)
            if value < least:
                raise ValueError(f"{bound.name}: expected at least {least}, got {value}")


USUAL = Bounds()
"""What holds where nothing else is set."""
