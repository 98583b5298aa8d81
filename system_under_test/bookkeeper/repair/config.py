"""Settings of repair, with the names of BookKeeper's where it has them; times in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

from system_under_test.bookkeeper.repair.auditor import AuditTimes
from system_under_test.node.settings import integer, seconds

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairConfig:
    lost_after_s: float = seconds("lostBookieRecoveryDelay", 0, minimum_ms=0)
    """A bookie that does not live for so long is lost."""
    bookies_every_s: float = seconds("auditorPeriodicBookieCheckInterval", DAY_MS)
    ledgers_every_s: float = seconds("auditorPeriodicCheckInterval", 7 * DAY_MS)
    entries_every_s: float = seconds("auditorReplicasCheckInterval", 0, minimum_ms=0)
    """How often every copy of every entry is looked at; 0: never."""
    grace_s: float = seconds("openLedgerRereplicationGracePeriod", 30_000)
    """How long the last fragment of a ledger that is not closed is left to its writer."""
    retry_s: float = seconds("repairRetryInterval", 5_000)
    """How long a ledger is left alone that could not be repaired now, or that another worker has."""
    most_at_once: int = integer("repairEntriesAtOnce", 16, minimum=1)
    """How many entries of a fragment are looked at, or copied, side by side."""

    def times(self) -> AuditTimes:
        return AuditTimes(
            lost_after_ns=int(self.lost_after_s * 1e9),
            bookies_every_ns=int(self.bookies_every_s * 1e9),
            ledgers_every_ns=int(self.ledgers_every_s * 1e9),
            entries_every_ns=int(self.entries_every_s * 1e9) or None,
        )
