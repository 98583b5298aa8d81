"""A bookie's settings, with the names of BookKeeper's where it has them."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.node.settings import flag, integer, path, port, seconds

LEAST_FILE_BYTES = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class BookieConfig:
    port: int = port("bookiePort", 3181)
    directory: str = path("ledgerDirectory", "bookie")
    is_synced: bool = flag("journalSyncData", True)
    """Whether the journal is durable before an add is acknowledged; for fences it is in any case."""
    file_bytes: int = integer("journalMaxSize", 64 * 1024 * 1024, minimum=LEAST_FILE_BYTES, maximum=1024**3)
    """How many bytes the journal or an entry log may have before a checkpoint; they go on growing while it lasts."""
    full_percent: int = integer("diskUsageThreshold", 95, minimum=1, maximum=100)
    """When more of the disk is in use, the bookie is for reading alone."""
    disk_check_s: float = seconds("diskCheckInterval", 10_000)

    @property
    def full_share(self) -> float:
        return self.full_percent / 100
