"""What PostgreSQL 15 promises at each isolation level, and what it may legally show, by its vendor's own pages.

Transaction isolation (https://www.postgresql.org/docs/15/transaction-iso.html): serializable transactions have the
effect of some order, one after the other; repeatable read is snapshot isolation, so that two transactions may each
miss what the other writes; under read committed every statement sees what was committed before it began, so that what
one reads twice may change in between, and what a program computes from a read may undo what others wrote.

Asynchronous commit (https://www.postgresql.org/docs/15/wal-async-commit.html): with `synchronous_commit` off the answer
does not wait for the disk, and a crash may take the last transactions that were answered. It takes whole transactions,
the newest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from checkers.transactions.model.lattice import ConsistencyModel
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss
from workloads.systems.sql.lost_commits import ENDS_PROCESSES, LOST_COMMITS, OF_BANK, OF_LONG_FORK


class Isolation(Enum):
    SERIALIZABLE = "serializable"
    REPEATABLE_READ = "repeatable-read"
    READ_COMMITTED = "read-committed"

    @property
    def words(self) -> str:
        """In SQL."""
        return self.value.replace("-", " ").upper()


PROMISED: Mapping[Isolation, ConsistencyModel] = {
    Isolation.SERIALIZABLE: ConsistencyModel.SERIALIZABLE,
    Isolation.REPEATABLE_READ: ConsistencyModel.SNAPSHOT_ISOLATION,
    Isolation.READ_COMMITTED: ConsistencyModel.READ_COMMITTED,
}
UNDER_READ_COMMITTED = (
    "under read committed each statement sees what was committed before it, and no read is protected from writes of "
    "others (the vendor's page on transaction isolation)"
)
WITHOUT_WAITING = (
    "with synchronous_commit off answers do not wait for the disk, and a crash takes the last of them (the vendor's "
    "page on asynchronous commit)"
)


def legal_loss(isolation: Isolation, synchronous_commit: bool, struck: tuple[FaultWindow, ...]) -> LegalLoss:
    of_level = isolation is Isolation.READ_COMMITTED
    allowed = {"bank": OF_BANK, "long-fork": OF_LONG_FORK} if of_level else {}
    # What is not yet written is in the server's own memory: killing it is enough.
    if not synchronous_commit and any(ENDS_PROCESSES & set(window.kinds) for window in struck):
        reasons = (WITHOUT_WAITING, UNDER_READ_COMMITTED) if of_level else (WITHOUT_WAITING,)
        return LegalLoss(reason="; ".join(reasons), in_workloads={**LOST_COMMITS, **allowed})
    return LegalLoss(reason=UNDER_READ_COMMITTED if of_level else "", in_workloads=allowed)
