"""How much at once: what a Raft node keeps in memory, sends ahead, and hands out to be applied."""

from __future__ import annotations

from dataclasses import dataclass

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

    def __post_init__(self) -> None:
        for name in ("window_entries", "batch_entries", "batch_bytes", "log_memory_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if self.promotion_lag < 0:
            raise ValueError(f"promotion_lag: expected at least 0, got {self.promotion_lag}")


USUAL = Bounds()
"""What holds where nothing else is set."""
