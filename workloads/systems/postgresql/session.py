"""A connection to PostgreSQL by asyncpg, as the clients of databases take it.

asyncpg repeats nothing by itself. It tells the server of an abandoned connection nothing either: a request to cancel a
COMMIT that waits for a standby would be answered by a commit that only the primary has.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from workloads.systems.sql.session import Lost, Refused

CONNECT_TIMEOUT_S = 2.0
USER = DATABASE = "postgres"


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    import asyncpg

    try:
        yield
    except asyncpg.PostgresError as error:
        raise Refused(error.sqlstate or "", str(error)) from error
    except (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError) as error:
        raise Lost(str(error) or type(error).__name__) from error


class PostgresqlSession:
    """`Session`."""

    def __init__(self, node: str, connection: Any, isolation: str) -> None:
        self._node, self._connection, self._isolation = node, connection, isolation

    @property
    def node(self) -> str:
        return self._node

    async def begin(self) -> None:
        async with _translated():
            await self._connection.execute(f"BEGIN ISOLATION LEVEL {self._isolation}")

    async def rows(self, statement: str, *arguments: Any) -> Sequence[Sequence[Any]]:
        async with _translated():
            return [tuple(row) for row in await self._connection.fetch(statement, *arguments)]

    async def commit(self) -> None:
        async with _translated():
            said = await self._connection.execute("COMMIT")
        if said != "COMMIT":  # it answers ROLLBACK where a statement before had failed
            raise Refused("25P02", f"COMMIT was answered by {said}")

    async def rollback(self) -> None:
        async with _translated():
            await self._connection.execute("ROLLBACK")

    @property
    def process(self) -> int:
        """Of the server, which carries out what is asked here."""
        return int(self._connection.get_server_pid())

    def abandon(self) -> None:
        self._connection.terminate()


async def connected(node: str, address: str, isolation: str) -> PostgresqlSession:
    """`address`: where the node is reached from here, `host:port`. Raises Lost."""
    import asyncpg

    host, _, port = address.rpartition(":")
    try:
        async with _translated():
            connection = await asyncpg.connect(
                host=host, port=int(port), user=USER, database=DATABASE, ssl=False, timeout=CONNECT_TIMEOUT_S
            )
    except Refused as error:  # it is starting, or ending, or takes no more connections
        raise Lost(str(error)) from error
    return PostgresqlSession(node, connection, isolation)
