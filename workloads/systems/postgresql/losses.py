"""What PostgreSQL 15 promises at each isolation level, and what it may legally show, by its vendor's own pages.

Transaction isolation (https://www.postgresql.org/docs/15/transaction-iso.html): serializable transactions have the
effect of some order, one after the other; repeatable read is snapshot isolation, so that two transactions may each
miss what the other writes; under read committed every statement sees what was committed before it began, so that what
one reads twice may change in between, and what a program computes from a read may undo what others wrote.

Asynchronous commit (https://www.postgresql.org/docs/15/wal-async-commit.html): with `synchronous_commit` off the answer
does not wait for the disk, and a crash may take the last transactions that were answered. It takes whole transactions,
the newest first.

Patroni's page on replication modes (https://patroni.readthedocs.io/en/latest/replication_modes.html): in asynchronous
mode "the cluster is allowed to lose some committed transactions to ensure availability"; what was not replicated to the
standby that is promoted remains in a "forked timeline" of the former primary, which pg_rewind erases. How much that is,
`maximum_lag_on_failover` bounds, together with what is written in the last `ttl` seconds. With `synchronous_mode` it
"will not promote a standby unless it is certain that the standby contains all transactions that may have returned a
successful commit status to client", but for those with `synchronous_commit` off. So a former primary that does not yet
know, and its successor, may each answer for a while only in asynchronous mode.
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

    @property
    def words_at_standby(self) -> str:
        """The strictest level that a standby has is repeatable read (the vendor's page on hot standby)."""
        level = Isolation.REPEATABLE_READ if self is Isolation.SERIALIZABLE else self
        return f"{level.words} READ ONLY"


class Replication(Enum):
    """Of servers under Patroni."""

    ASYNCHRONOUS = "asynchronous"
    SYNCHRONOUS = "synchronous"
    STRICTLY_SYNCHRONOUS = "strictly-synchronous"
    """No write is answered either while there is no standby to have it."""


PROMISED: Mapping[Isolation, ConsistencyModel] = {
    Isolation.SERIALIZABLE: ConsistencyModel.SERIALIZABLE,
    Isolation.REPEATABLE_READ: ConsistencyModel.SNAPSHOT_ISOLATION,
    Isolation.READ_COMMITTED: ConsistencyModel.READ_COMMITTED,
}


def promised(isolation: Isolation, *, reads_standbys: bool) -> ConsistencyModel:
    """Of all transactions together: those at standbys see snapshots, and need not fit into an order of serializable
    ones."""
    weaker = isolation is Isolation.SERIALIZABLE and reads_standbys
    return PROMISED[Isolation.REPEATABLE_READ if weaker else isolation]


UNDER_READ_COMMITTED = (
    "under read committed each statement sees what was committed before it, and no read is protected from writes of "
    "others (the vendor's page on transaction isolation)"
)
WITHOUT_WAITING = (
    "with synchronous_commit off answers do not wait for the disk, and a crash takes the last of them (the vendor's "
    "page on asynchronous commit)"
)


IN_A_FORK = (
    "in asynchronous mode a failover leaves what the standby did not have in a forked timeline, which is erased "
    "(Patroni's page on replication modes)"
)
WITHOUT_STANDBY = (
    "transactions with synchronous_commit off do not wait for the standby, and a failover may lose them (Patroni's "
    "page on replication modes)"
)
CANCELLED = (
    "a COMMIT that its client gives up while it waits for a standby has committed locally, and might not have been "
    "replicated (so the server warns, and answers COMMIT)"
)
BEHIND = "a standby shows what was committed a little later than its primary (the vendor's page on hot standby)"
HARMLESS = frozenset({"clock", "strobe", "none"})
"""No failover comes of these: Patroni and etcd count with clocks that do not jump."""


def legal_loss(
    isolation: Isolation,
    synchronous_commit: bool,
    struck: tuple[FaultWindow, ...],
    replication: Replication | None = None,
    *,
    cancels: bool = False,
    reads_standbys: bool = False,
) -> LegalLoss:
    """`replication`: of servers under Patroni; None for one server alone. `cancels`: clients give COMMITs up."""
    kinds = {kind for window in struck for kind in window.kinds}
    allowed: dict[str, tuple[str, ...]] = {}
    reasons = []
    if replication is not None and kinds - HARMLESS:
        if replication is Replication.ASYNCHRONOUS:
            reasons.append(IN_A_FORK)
        elif not synchronous_commit:
            reasons.append(WITHOUT_STANDBY)
        elif cancels:
            reasons.append(CANCELLED)
    # What is not yet written is in the server's own memory: killing it is enough.
    if not synchronous_commit and ENDS_PROCESSES & kinds:
        reasons.append(WITHOUT_WAITING)
    if reasons:
        allowed |= LOST_COMMITS
    if reasons and replication is not None:  # of two timelines each has an order of its own
        allowed["long-fork"] = OF_LONG_FORK
    if reads_standbys:
        reasons.append(BEHIND)
        allowed["set"] = tuple(sorted({*allowed.get("set", ()), "stale"}))
    if isolation is Isolation.READ_COMMITTED:
        reasons.append(UNDER_READ_COMMITTED)
        allowed |= {"bank": OF_BANK, "long-fork": OF_LONG_FORK}
    return LegalLoss(reason="; ".join(reasons), in_workloads=allowed)
