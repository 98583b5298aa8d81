"""PostgreSQL 15 on trial, alone or under Patroni. What it promises, in its vendors' words, is in `losses.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness.client import Client
from harness.client_package import require_package
from harness.record.fault_log import FaultWindow
from harness.record.scenario import SettingValue
from harness.system import Declaration, LegalLoss, NodeSpec
from workloads.systems.postgresql import patroni, patroni_nodes
from workloads.systems.postgresql.errors import code_of
from workloads.systems.postgresql.losses import Replication, legal_loss
from workloads.systems.postgresql.nodes import PORT, server
from workloads.systems.postgresql.session import PostgresqlSession, connected
from workloads.systems.postgresql.settings import PostgresqlSettings, Reads
from workloads.systems.sql.client import SqlClient
from workloads.systems.sql.session import Lost, Refused, Session
from workloads.systems.sql.statements import HELD_BY, Dialect, opening_balances, tables

if TYPE_CHECKING:
    from harness.record.node_reports import NodeReports

DIALECT = Dialect(
    schema=(*tables("TEXT"), f"INSERT INTO accounts VALUES {opening_balances()} ON CONFLICT DO NOTHING"),
    select="SELECT val FROM {table} WHERE id = $1",
    append="INSERT INTO {table} AS t VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET val = t.val || $3",
    write="INSERT INTO {table} VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET val = EXCLUDED.val",
    balances="SELECT id, val FROM {table} WHERE id <= $1",
    set_amount="UPDATE {table} SET val = $1 WHERE id = $2",
    add="INSERT INTO {table} VALUES ($1, $2)",
    elements="SELECT val FROM {table} WHERE id = $1",
)
KEYS = 8
"""So few that transactions meet, where a run does not say how many."""


class Postgresql:
    """`System`."""

    name, settings_type, workloads = "postgresql", PostgresqlSettings, tuple(HELD_BY)
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: PostgresqlSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        if not settings.in_cluster:
            return (server(synchronous_commit=settings.synchronous_commit),)
        return patroni_nodes.cluster(
            members=settings.members,
            etcd_members=settings.etcd_members,
            replication=settings.replication,
            synchronous_commit=settings.synchronous_commit,
        )

    def cluster(self, settings: PostgresqlSettings) -> Declaration:
        if settings.in_cluster:
            return Declaration(
                groups=("servers", "etcd"),
                data=("servers",),
                voters=("etcd",),
                roles={patroni.PRIMARY: "servers", patroni.REPLICA: "servers"},
            )
        return Declaration(groups=("servers",), data=("servers",), roles={"primary": "servers"})

    def advised(self, settings: PostgresqlSettings, workload: str) -> Mapping[str, SettingValue]:
        """`Advising`."""
        if workload not in ("list-append", "rw-register"):
            return {}
        return {"model": settings.promised.value, "keys": KEYS}

    def require_clients(self, settings: PostgresqlSettings, environment: str) -> None:
        require_package("asyncpg", system=self.name)
        if settings.in_cluster:
            require_package("aiohttp", system=self.name)

    def client(self, workload: str, settings: PostgresqlSettings, host: Any, process: int) -> Client:
        return SqlClient(
            lambda: _session(host, settings),
            dialect=DIALECT,
            workload=workload,
            code_of=code_of,
            think_s=settings.think_ms / 1e3,
            connect_to_read=(lambda: _at_standby(host, settings, process))
            if _reads_standby(settings, process)
            else None,
            cancel=(lambda session: _cancelled(host, session)) if settings.cancels else None,
        )

    async def ready(self, settings: PostgresqlSettings, host: Any, workload: str) -> None:
        """All tables are there; under Patroni all servers are as well, and follow one primary."""
        while True:
            try:
                if settings.in_cluster:
                    await _until_whole(settings, host)
                session = await _session(host, settings)
                try:
                    await session.begin()
                    for statement in DIALECT.schema:
                        await session.rows(statement)
                    await session.commit()
                    return
                finally:
                    session.abandon()
            except (Lost, Refused):
                await host.clock.sleep(0.2)

    async def roles(self, settings: PostgresqlSettings, host: Any) -> Mapping[str, tuple[str, ...]]:
        if settings.in_cluster:
            return await patroni.roles(host, settings.servers)
        return {patroni.PRIMARY: settings.servers}

    def legal_loss(
        self, settings: PostgresqlSettings, struck: tuple[FaultWindow, ...], reports: NodeReports
    ) -> LegalLoss:
        if settings.strict:
            return LegalLoss()
        replication = settings.replication if settings.in_cluster else None
        return legal_loss(
            settings.isolation,
            settings.synchronous_commit,
            struck,
            replication,
            cancels=settings.cancels,
            reads_standbys=settings.reads_at is Reads.STANDBY,
        )


async def _session(host: Any, settings: PostgresqlSettings) -> PostgresqlSession:
    """With the primary. Raises Lost."""
    name = await _primary(host, settings)
    address = host.network.reached_at(f"{name}:{PORT}")
    return await connected(name, address, settings.isolation.words)


def _reads_standby(settings: PostgresqlSettings, process: int) -> bool:
    return settings.reads_at is Reads.STANDBY and process % 2 == 1


async def _at_standby(host: Any, settings: PostgresqlSettings, process: int) -> PostgresqlSession:
    """Raises Lost."""
    following = await patroni.replicas(host, settings.servers)
    if not following:
        raise Lost("no server says that it is a replica")
    name = following[process // 2 % len(following)]
    return await connected(name, host.network.reached_at(f"{name}:{PORT}"), settings.isolation.words_at_standby)


async def _cancelled(host: Any, session: Session) -> None:
    """Over another connection, as a driver does it whose user has waited long enough. Raises Refused, Lost."""
    assert isinstance(session, PostgresqlSession)
    beside = await connected(session.node, host.network.reached_at(f"{session.node}:{PORT}"), "READ COMMITTED")
    try:
        await beside.rows("SELECT pg_cancel_backend($1)", session.process)
    finally:
        beside.abandon()


async def _primary(host: Any, settings: PostgresqlSettings) -> str:
    """Raises Lost."""
    if not settings.in_cluster:
        return settings.servers[0]
    leading = await patroni.primaries(host, settings.servers)
    if not leading:
        raise Lost("no server says that it is the primary")
    return leading[0]


async def _until_whole(settings: PostgresqlSettings, host: Any) -> None:
    synchronous = settings.replication is not Replication.ASYNCHRONOUS
    while not patroni.is_whole(
        await patroni.members(host, settings.servers), servers=settings.members, synchronous=synchronous
    ):
        await host.clock.sleep(0.3)


SYSTEM = Postgresql()
