"""PostgreSQL 15 on trial. What each isolation level promises, in its vendor's words, is in `losses.py` beside this."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from harness.bounds import Bounds
from harness.client import Client
from harness.client_package import require_package
from harness.record.fault_log import FaultWindow
from harness.record.scenario import SettingValue
from harness.system import Declaration, LegalLoss, NodeSpec
from workloads.systems.postgresql.errors import code_of
from workloads.systems.postgresql.losses import PROMISED, Isolation, legal_loss
from workloads.systems.postgresql.nodes import PORT, SERVER, server
from workloads.systems.postgresql.session import PostgresqlSession, connected
from workloads.systems.sql.client import SqlClient
from workloads.systems.sql.session import Lost, Refused
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
)
KEYS = 8
"""So few that transactions meet, where a run does not say how many."""


@dataclass(frozen=True, kw_only=True)
class PostgresqlSettings:
    isolation: Isolation = Isolation.SERIALIZABLE
    """The level of every transaction. The workload demands what the vendor promises for it, unless `model` is set."""
    synchronous_commit: bool = True
    """Answer once a commit is on the disk."""
    think_ms: Annotated[float, Bounds(0, 1000)] = 3.0
    """Between two statements of a transaction."""
    strict: bool = False
    """Judge as if nothing could be lost, and no level allowed more than another, beside what `model` says."""


class Postgresql:
    """`System`."""

    name, settings_type, workloads = "postgresql", PostgresqlSettings, tuple(HELD_BY)
    mutants: Mapping[str, str] = {}

    def nodes(self, settings: PostgresqlSettings, mutant: str | None) -> tuple[NodeSpec, ...]:
        return (server(synchronous_commit=settings.synchronous_commit),)

    def cluster(self, settings: PostgresqlSettings) -> Declaration:
        return Declaration(groups=("servers",), data=("servers",), roles={"primary": "servers"})

    def advised(self, settings: PostgresqlSettings, workload: str) -> Mapping[str, SettingValue]:
        """`Advising`."""
        if workload not in ("list-append", "rw-register"):
            return {}
        return {"model": PROMISED[settings.isolation].value, "keys": KEYS}

    def require_clients(self, settings: PostgresqlSettings, environment: str) -> None:
        require_package("asyncpg", system=self.name)

    def client(self, workload: str, settings: PostgresqlSettings, host: Any, process: int) -> Client:
        return SqlClient(
            lambda: _session(host, settings),
            dialect=DIALECT,
            workload=workload,
            code_of=code_of,
            think_s=settings.think_ms / 1e3,
        )

    async def ready(self, settings: PostgresqlSettings, host: Any, workload: str) -> None:
        """All tables are there."""
        while True:
            try:
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
        return {"primary": (SERVER,)}

    def legal_loss(
        self, settings: PostgresqlSettings, struck: tuple[FaultWindow, ...], reports: NodeReports
    ) -> LegalLoss:
        if settings.strict:
            return LegalLoss()
        return legal_loss(settings.isolation, settings.synchronous_commit, struck)


async def _session(host: Any, settings: PostgresqlSettings) -> PostgresqlSession:
    """Raises Lost."""
    address = host.network.reached_at(f"{SERVER}:{PORT}")
    return await connected(SERVER, address, settings.isolation.words)


SYSTEM = Postgresql()
