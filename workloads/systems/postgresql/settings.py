"""What can be set of PostgreSQL on trial: how many servers, who replicates to whom, and what transactions ask for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from checkers.transactions.model.lattice import ConsistencyModel
from harness.bounds import Bounds
from harness.errors import UsageError
from workloads.systems.postgresql.losses import Isolation, Replication, promised
from workloads.systems.postgresql.nodes import SERVERS


class Deployment(Enum):
    ALONE = "alone"
    PATRONI = "patroni"


class Reads(Enum):
    """Who carries transactions out that only read."""

    PRIMARY = "primary"
    STANDBY = "standby"
    """A standby, for every second client; the primary for the others."""


@dataclass(frozen=True, kw_only=True)
class PostgresqlSettings:
    deployment: Deployment = Deployment.ALONE
    """One server, or servers under Patroni, which keeps what it knows in etcd; clients use the primary alone."""
    members: Annotated[int, Bounds(2, 3)] = 3
    """Servers under Patroni."""
    etcd_members: Annotated[int, Bounds(1, 3)] = 3
    """How many members the etcd has that Patroni uses: 1 or 3."""
    replication: Replication = Replication.ASYNCHRONOUS
    """Patroni's `synchronous_mode`, and `synchronous_mode_strict`."""
    isolation: Isolation = Isolation.SERIALIZABLE
    """The level of every transaction. The workload demands what the vendor promises for it, unless `model` is set."""
    synchronous_commit: bool = True
    """Answer once a commit is on the disk and, where replication is synchronous, on that of a standby."""
    reads_at: Reads = Reads.PRIMARY
    """Where reads go under Patroni. A standby knows no serializable transactions: they are of repeatable read there."""
    cancels: bool = False
    """Where replication is synchronous: clients give a COMMIT up that waits for a second, as impatient programs do."""
    think_ms: Annotated[float, Bounds(0, 1000)] = 3.0
    """How long a transaction waits between two statements."""
    strict: bool = False
    """Judge as if nothing could be lost, and no level allowed more than another, beside what `model` says."""

    def __post_init__(self) -> None:
        if self.etcd_members == 2:
            raise UsageError("etcd_members takes 1 or 3, of which most can be left when one is gone, got 2")
        if self.replication is not Replication.ASYNCHRONOUS and not self.in_cluster:
            raise UsageError(
                f"replication={self.replication.value} needs servers that replicate: set deployment=patroni as well"
            )
        if self.reads_at is Reads.STANDBY and not self.in_cluster:
            raise UsageError("reads_at=standby needs servers that replicate: set deployment=patroni as well")
        if self.cancels and self.replication is Replication.ASYNCHRONOUS:
            raise UsageError("cancels is about a COMMIT that waits for a standby: set replication=synchronous as well")

    @property
    def in_cluster(self) -> bool:
        return self.deployment is Deployment.PATRONI

    @property
    def promised(self) -> ConsistencyModel:
        return promised(self.isolation, reads_standbys=self.reads_at is Reads.STANDBY)

    @property
    def servers(self) -> tuple[str, ...]:
        return SERVERS[: self.members] if self.in_cluster else SERVERS[:1]
