"""MariaDB 10.11 on trial, alone, with replicas or as a Galera cluster.

What it promises, in its vendor's words, is in `losses.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

from checkers.transactions.model.lattice import ConsistencyModel
from harness.bounds import Bounds
from harness.client import Client
from harness.client_package import require_package
from harness.errors import UsageError
from harness.record.fault_log import FaultWindow
from harness.record.scenario import SettingValue
from harness.system import Declaration, LegalLoss, NodeSpec
from workloads.systems.mariadb.errors import code_of
from workloads.systems.mariadb.losses import Isolation, legal_loss, promised
from workloads.systems.mariadb.nodes import MEMBERS, PORT, Role, server
from workloads.systems.mariadb.session import MariadbSession, connected
from workloads.systems.sql.client import SqlClient
from workloads.systems.sql.session import Lost, Refused
from workloads.systems.sql.statements import HELD_BY, Dialect, opening_balances, tables

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

DIALECT = Dialect(
    schema=(
        *tables("LONGTEXT"),
        f"INSERT INTO accounts VALUES {opening_balances()} ON DUPLICATE KEY UPDATE id = accounts.id",
    ),
    select="SELECT val FROM {table} WHERE id = %s",
    append="INSERT INTO {table} VALUES (%s, %s) ON DUPLICATE KEY UPDATE val = CONCAT(val, %s)",
    write="INSERT INTO {table} VALUES (%s, %s) ON DUPLICATE KEY UPDATE val = VALUES(val)",
    balances="SELECT id, val FROM {table} WHERE id <= %s",
    set_amount="UPDATE {table} SET val = %s WHERE id = %s",
    add="INSERT INTO {table} VALUES (%s, %s)",
    elements="SELECT val FROM {table} WHERE id = %s",
)
KEYS = 8
"""So few that transactions meet, where a run does not say how many."""
FOLLOWS = "SHOW SLAVE STATUS"
HAS_TABLES = "SELECT 1 FROM accounts LIMIT 1"
"""Asked of servers that get their tables from another."""
CLUSTER_SIZE = "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_cluster_size'"


class Deployment(Enum):
    ALONE = "alone"
    GALERA = "galera"
    REPLICAS = "replicas"


class Reads(Enum):
    """Who carries transactions out that only read."""

    PRIMARY = "primary"
    REPLICA = "replica"
    """A replica, for every second client; the primary for the others."""


@dataclass(frozen=True, kw_only=True)
class MariadbSettings:
    deployment: Deployment = Deployment.ALONE
    """One server; three of a Galera cluster, to all of which clients write; or a primary and two replicas that follow
    it asynchronously, and never take its place."""
    reads_at: Reads = Reads.PRIMARY
    """Where there are replicas."""
    isolation: Isolation = Isolation.REPEATABLE_READ
    """The level of every transaction. The workload demands what the vendor promises for it, unless `model` is set."""
    snapshot_isolation: bool = False
    """`innodb_snapshot_isolation`."""
    flush_log_at_trx_commit: Annotated[int, Bounds(0, 2)] = 1
    """`innodb_flush_log_at_trx_commit`; for Galera the vendor recommends 0."""
    sync_wait: bool = False
    """`wsrep_sync_wait`: a read waits until what was committed at other nodes before is applied."""
    think_ms: Annotated[float, Bounds(0, 1000)] = 3.0
    """How long a transaction waits between two statements."""
    strict: bool = False
    """Judge as if nothing could be lost, and no level allowed more than another, beside what `model` says."""

    def __post_init__(self) -> None:
        if self.reads_at is Reads.REPLICA and self.deployment is not Deployment.REPLICAS:
            raise UsageError("reads_at=replica needs servers that replicate: set deployment=replicas as well")

    @property
    def members(self) -> tuple[str, ...]:
        return MEMBERS[:1] if self.deployment is Deployment.ALONE else MEMBERS

    @property
    def writable(self) -> tuple[str, ...]:
        return MEMBERS if self.deployment is Deployment.GALERA else MEMBERS[:1]

    def role(self, name: str) -> Role:
        if self.deployment is Deployment.GALERA:
            return Role.MEMBER
        if self.deployment is Deployment.ALONE:
            return Role.ALONE
        return Role.PRIMARY if name in self.writable else Role.REPLICA

    @property
    def promised(self) -> ConsistencyModel:
        in_cluster = self.deployment is Deployment.GALERA
        return promised(self.isolation, snapshot_isolation=self.snapshot_isolation, in_cluster=in_cluster)


class Mariadb:
    """`System`."""

    name, settings_type, workloads = "mariadb", MariadbSettings, tuple(HELD_BY)
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: MariadbSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        return tuple(
            server(
                name,
                role=settings.role(name),
                flush_log_at_trx_commit=settings.flush_log_at_trx_commit,
                snapshot_isolation=settings.snapshot_isolation,
                sync_wait=settings.sync_wait,
            )
            for name in settings.members
        )

    def cluster(self, settings: MariadbSettings) -> Declaration:
        voters = ("servers",) if settings.deployment is Deployment.GALERA else ()
        roles = {"primary": "servers", "replica": "servers"} if settings.deployment is Deployment.REPLICAS else {}
        return Declaration(groups=("servers",), data=("servers",), voters=voters, roles=roles)

    def advised(self, settings: MariadbSettings, workload: str) -> Mapping[str, SettingValue]:
        """`Advising`."""
        if workload not in ("list-append", "rw-register"):
            return {}
        return {"model": settings.promised.value, "keys": KEYS}

    def require_clients(self, settings: MariadbSettings, environment: str) -> None:
        require_package("aiomysql", system=self.name)

    def client(self, workload: str, settings: MariadbSettings, host: Any, process: int) -> Client:
        return SqlClient(
            lambda: _first_that_answers(host, settings, process),
            dialect=DIALECT,
            workload=workload,
            code_of=code_of,
            think_s=settings.think_ms / 1e3,
            connect_to_read=(lambda: _at_replica(host, settings, process))
            if _reads_replica(settings, process)
            else None,
        )

    async def ready(self, settings: MariadbSettings, host: Any, workload: str) -> None:
        """All members are in one cluster, in which all tables are there."""
        while not await self._is_ready(settings, host):
            await host.clock.sleep(0.3)

    async def _is_ready(self, settings: MariadbSettings, host: Any) -> bool:
        try:
            for place, name in enumerate(settings.members):
                session = await _session(host, settings, name)
                try:
                    if not await _belongs(session, settings.role(name)):
                        return False
                    for statement in DIALECT.schema if place == 0 else (HAS_TABLES,):
                        await session.rows(statement)
                    await session.commit()
                finally:
                    session.abandon()
        except (Lost, Refused):
            return False
        return True

    async def roles(self, settings: MariadbSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        if settings.deployment is not Deployment.REPLICAS:
            return {}
        return {"primary": settings.writable, "replica": settings.members[1:]}

    def legal_loss(self, settings: MariadbSettings, struck: tuple[FaultWindow, ...], reports: NodeReports) -> LegalLoss:
        if settings.strict:
            return LegalLoss()
        flush = settings.flush_log_at_trx_commit
        cluster = settings.members if settings.deployment is Deployment.GALERA else ()
        may_be_stale = (bool(cluster) and not settings.sync_wait) or settings.reads_at is Reads.REPLICA
        return legal_loss(
            model=settings.promised,
            flush_log_at_trx_commit=flush,
            struck=struck,
            cluster=cluster,
            may_be_stale=may_be_stale,
        )


async def _belongs(session: MariadbSession, role: Role) -> bool:
    """Whether the server is where its role wants it: in a cluster of all, or following the primary."""
    if role is Role.MEMBER:
        return int((await session.rows(CLUSTER_SIZE))[0][0]) == len(MEMBERS)
    return role is not Role.REPLICA or any("Yes" in row for row in await session.rows(FOLLOWS))


async def _session(host: Any, settings: MariadbSettings, name: str) -> MariadbSession:
    """Raises Lost."""
    return await connected(name, host.network.reached_at(f"{name}:{PORT}"), settings.isolation.words)


def _reads_replica(settings: MariadbSettings, process: int) -> bool:
    return settings.reads_at is Reads.REPLICA and process % 2 == 1


async def _at_replica(host: Any, settings: MariadbSettings, process: int) -> MariadbSession:
    """Raises Lost."""
    following = settings.members[1:]
    return await _session(host, settings, following[process // 2 % len(following)])


async def _first_that_answers(host: Any, settings: MariadbSettings, process: int) -> MariadbSession:
    """The process's own server, or the next after it that takes connections. Raises Lost."""
    members = settings.writable
    for turn in range(len(members) - 1):
        try:
            return await _session(host, settings, members[(process + turn) % len(members)])
        except Lost:
            continue
    return await _session(host, settings, members[(process - 1) % len(members)])


SYSTEM = Mariadb()
