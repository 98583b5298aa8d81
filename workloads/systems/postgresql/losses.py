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

from checkers.transactions.meanings import OF_LISTS, OF_REGISTERS
from checkers.transactions.model.lattice import ConsistencyModel
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss


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
OF_BANK = ("wrong-total", "negative-balance")
OF_LONG_FORK = ("long-fork",)
UNDER_READ_COMMITTED = (
    "under read committed each statement sees what was committed before it, and no read is protected from writes of "
    "others (the vendor's page on transaction isolation)"
)
ENDED = frozenset({"power", "lost-disk", "old-disk", "short-files", "bit-rot"})
"""After these a server starts with less than it had answered, where answers do not wait for the disk."""
WITHOUT_WAITING = (
    "with synchronous_commit off answers do not wait for the disk, and a crash takes the last of them (the vendor's page "
    "on asynchronous commit)"
)
NEVER_LEGAL = frozenset({"G1a", "G1b", "duplicate-elements", "future-read", "garbage-read", "internal"})


def legal_loss(isolation: Isolation, synchronous_commit: bool, struck: tuple[FaultWindow, ...]) -> LegalLoss:
    kinds = {kind for window in struck for kind in window.kinds}
    # What is not yet written is in the server's own memory: killing it is enough.
    if not synchronous_commit and kinds & (ENDED | {"kill", "restart-loop", "rolling-restart"}):
        return LegalLoss(
            reason=WITHOUT_WAITING,
            in_workloads={
                "list-append": tuple(sorted(OF_LISTS.keys() - NEVER_LEGAL)),
                "rw-register": tuple(sorted(OF_REGISTERS.keys() - NEVER_LEGAL)),
                "bank": OF_BANK[:1] if isolation is Isolation.READ_COMMITTED else (),
            },
        )
    if isolation is Isolation.READ_COMMITTED:
        return LegalLoss(reason=UNDER_READ_COMMITTED, in_workloads={"bank": OF_BANK, "long-fork": OF_LONG_FORK})
    return LegalLoss()
