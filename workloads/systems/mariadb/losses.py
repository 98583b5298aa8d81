"""What MariaDB 10.11 promises at each isolation level, and what it may legally show, by its vendor's own pages.

SET TRANSACTION (https://mariadb.com/kb/en/set-transaction/): under repeatable read plain reads come from one snapshot,
that of the first of them; statements that write see what was committed last. So a read may show one state and a write
of the same transaction build on another. With `innodb_snapshot_isolation`
(https://mariadb.com/kb/en/innodb-system-variables/) a statement that would write a row which was changed since the
snapshot is refused instead, and repeatable read is snapshot isolation.

innodb_flush_log_at_trx_commit (the same page): with 0 the log is written and flushed once a second, with 2 it is
written at each commit and flushed once a second: a crash of the server (0), or of the machine (0 and 2), may take what
was answered in the last second.

Galera (https://galeracluster.com/library/documentation/isolation-levels.html): transactions of different nodes are
certified against each other by the rows that they wrote, the first committer wins; a read at one node may come before
what was committed at another is applied there, unless `wsrep_sync_wait` says to wait. What a node loses in a crash it
gets from the others, so that losing commits takes a crash of all before any of them has flushed.
"""

from __future__ import annotations

from enum import Enum

from checkers.transactions.model.lattice import ConsistencyModel, implied
from harness.record.fault_log import FaultWindow
from harness.system import LegalLoss
from workloads.systems.sql.lost_commits import ENDS_PROCESSES, LOST_COMMITS, OF_BANK, OF_LONG_FORK, PROCESSES_ALONE


class Isolation(Enum):
    SERIALIZABLE = "serializable"
    REPEATABLE_READ = "repeatable-read"
    READ_COMMITTED = "read-committed"
    READ_UNCOMMITTED = "read-uncommitted"

    @property
    def words(self) -> str:
        """In SQL."""
        return self.value.replace("-", " ").upper()


def promised(isolation: Isolation, *, snapshot_isolation: bool, in_cluster: bool) -> ConsistencyModel:
    """What the vendor's pages say of this level, in the field's terms: not always what the level is called."""
    if isolation is Isolation.READ_UNCOMMITTED:
        return ConsistencyModel.READ_UNCOMMITTED
    if isolation is Isolation.SERIALIZABLE and not in_cluster:
        return ConsistencyModel.SERIALIZABLE
    if isolation is Isolation.REPEATABLE_READ:
        if snapshot_isolation and not in_cluster:
            return ConsistencyModel.SNAPSHOT_ISOLATION
        # Not even read committed, which lets no read miss a transaction that an earlier one has shown: of a row that it
        # has written itself a transaction sees what others wrote last, and of other rows what its snapshot has.
        return ConsistencyModel.PL_2
    return ConsistencyModel.READ_COMMITTED


WEAK_READS = (
    "at this level writes build on what was committed last, whatever the transaction has read (the vendor's page on "
    "SET TRANSACTION)"
)
WITHOUT_FLUSH = (
    "with innodb_flush_log_at_trx_commit other than 1 commits are flushed once a second, and a crash takes the last of "
    "them (the vendor's page on the system variables of InnoDB)"
)
OF_ALL_AT_ONCE = f"{WITHOUT_FLUSH}; a server of a cluster gets them from the others, but all were down at once"
BEFORE_APPLYING = (
    "with wsrep_sync_wait off a read may come before what was committed at another node is applied (the vendor's "
    "page on isolation levels)"
)
BEHIND = "replicas follow asynchronously, and are behind their primary (the vendor's page on replication)"
OF_DIRTY_READS = ("aborted-read",)
"""Anomalies of long-fork where transactions see what others have not committed."""
MACHINES = ENDS_PROCESSES - PROCESSES_ALONE


REJOINING_NS = 60_000_000_000
"""So long after its boot a server may not have yet what the others of its cluster have."""


def legal_loss(
    *,
    model: ConsistencyModel,
    flush_log_at_trx_commit: int,
    struck: tuple[FaultWindow, ...],
    cluster: tuple[str, ...] = (),
    may_be_stale: bool = False,
) -> LegalLoss:
    """`model`: what is promised of isolation; `cluster`: the members of a Galera cluster, none of a server alone;
    `may_be_stale`: a read need not wait for what was committed at other servers."""
    in_workloads: dict[str, tuple[str, ...]] = {}
    reasons = []
    if ConsistencyModel.SNAPSHOT_ISOLATION not in implied(model):
        reasons.append(WEAK_READS)
        dirty = () if ConsistencyModel.PL_2 in implied(model) else OF_DIRTY_READS
        in_workloads |= {"bank": OF_BANK, "long-fork": (*OF_LONG_FORK, *dirty)}
    if may_be_stale:
        reasons.append(BEFORE_APPLYING if cluster else BEHIND)
        in_workloads |= {"set": ("stale",)}
    takes = {0: ENDS_PROCESSES, 1: frozenset[str](), 2: MACHINES}[flush_log_at_trx_commit]
    crashes = [window for window in struck if takes & set(window.kinds)]
    if crashes and (not cluster or _leave_nobody(crashes, cluster)):
        reasons.append(OF_ALL_AT_ONCE if cluster else WITHOUT_FLUSH)
        in_workloads |= LOST_COMMITS
    return LegalLoss(reason="; ".join(reasons), in_workloads=in_workloads)


def _leave_nobody(crashes: list[FaultWindow], cluster: tuple[str, ...]) -> bool:
    """Whether at some moment each of the cluster was down, or had not yet got from the others what it missed."""
    for last in crashes:
        then = last.start_ns
        behind = {
            node
            for window in crashes
            if window.start_ns <= then <= window.stop_ns + REJOINING_NS
            for node in window.nodes
        }
        if behind >= set(cluster):
            return True
    return False
