"""A connection to MariaDB by aiomysql, as the clients of databases take it. aiomysql repeats nothing by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from workloads.systems.mariadb.nodes import DATABASE, USER
from workloads.systems.sql.session import Lost, Refused

CONNECT_TIMEOUT_S = 2.0
OF_THE_CLIENT = range(2000, 3000)
"""Numbers of errors that no server has answered: there is no connection, or none any more."""


@asynccontextmanager
async def _translated() -> AsyncIterator[None]:
    import pymysql

    try:
        yield
    except pymysql.err.InterfaceError as error:
        raise Lost(str(error)) from error
    except pymysql.MySQLError as error:
        number = error.args[0] if error.args else 0
        if number in OF_THE_CLIENT:
            raise Lost(str(error)) from error
        raise Refused(str(number), str(error.args[-1] if error.args else "")) from error
    except (OSError, EOFError, TimeoutError, RuntimeError) as error:
        raise Lost(str(error) or type(error).__name__) from error


class MariadbSession:
    """`Session`."""

    def __init__(self, node: str, connection: Any) -> None:
        self._node, self._connection = node, connection

    @property
    def node(self) -> str:
        return self._node

    async def begin(self) -> None:
        await self.rows("BEGIN")

    async def rows(self, statement: str, *arguments: Any) -> Sequence[Sequence[Any]]:
        async with _translated():
            cursor = await self._connection.cursor()
            await cursor.execute(statement, arguments or None)
            answered = await cursor.fetchall()
            await cursor.close()
            return answered or ()

    async def commit(self) -> None:
        await self.rows("COMMIT")

    async def rollback(self) -> None:
        await self.rows("ROLLBACK")

    def abandon(self) -> None:
        self._connection.close()


async def connected(node: str, address: str, isolation: str) -> MariadbSession:
    """`address`: where the node is reached from here, `host:port`. Raises Lost."""
    import aiomysql

    host, _, port = address.rpartition(":")
    try:
        async with _translated():
            connection = await aiomysql.connect(
                host=host, port=int(port), user=USER, db=DATABASE, connect_timeout=CONNECT_TIMEOUT_S, autocommit=None
            )
        session = MariadbSession(node, connection)
        await session.rows("SET SESSION sql_notes = 0")  # that a table is there already is no news
        await session.rows(f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation}")
    except Refused as error:  # it is starting, or ending, or takes no more connections
        raise Lost(str(error)) from error
    return session
