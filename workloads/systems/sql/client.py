"""A client of a database that speaks SQL: an operation is one transaction, over one connection, which nothing repeats.

Operations that only read may have a connection of their own, to a server that only answers reads.

A transaction whose COMMIT was not sent certainly did not happen, whatever ended it: nobody can commit it any more. What
became of one whose COMMIT was sent and not answered is unknown, unless the answer is an error by which the database
says that it has rolled it back.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from harness.errors import CLIENT_TIMEOUT, CONNECT_FAILED, CONNECTION_LOST, OUTCOME_UNKNOWN, ErrorCode, OperationError
from harness.operation import Operation
from workloads.systems.sql.session import Lost, Refused, Session
from workloads.systems.sql.statements import HELD_BY, Dialect, carry_out, only_reads

ANSWER_TIMEOUT_S = 4.0
"""Shorter than the harness waits for an operation, as the harness does not know whether COMMIT was sent."""
CANCELLED_AFTER_S = 1.0
"""How long a COMMIT may wait until clients cancel it, if they cancel."""
ENDING_TIMEOUT_S = 0.5
"""How long an operation under way may take to find its connection gone."""
NEVER_COMMITTED = ErrorCode("never-committed", definite=True)
"""The connection was lost, or given up, before COMMIT was sent."""

Connect = Callable[[], Awaitable[Session]]
Cancel = Callable[[Session], Awaitable[None]]
"""Asks the database to give up what is under way on the session, which it answers there. Raises Refused, Lost."""
Code = Callable[[Refused], ErrorCode]
"""What an error is called; definite where it says that the transaction is rolled back, whenever it comes."""


class Connection:
    """At most one session, made when it is needed."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._session: Session | None = None

    async def session(self) -> Session:
        """Raises OperationError."""
        if self._session is None:
            try:
                self._session = await self._connect()
            except Lost as error:
                raise OperationError(CONNECT_FAILED, str(error)) from error
        return self._session

    def abandon(self) -> None:
        if self._session is not None:
            self._session.abandon()
            self._session = None


class SqlClient:
    """Client of one process, for all workloads."""

    def __init__(
        self,
        connect: Connect,
        *,
        dialect: Dialect,
        workload: str,
        code_of: Code,
        think_s: float,
        connect_to_read: Connect | None = None,
        cancel: Cancel | None = None,
    ) -> None:
        """`connect` raises Lost where nobody takes connections; `think_s`: between two statements of a transaction.

        `connect_to_read`: for operations that only read, where they have a server of their own. `cancel`: of a COMMIT
        that is not answered for CANCELLED_AFTER_S.
        """
        self._dialect, self._kind = dialect, HELD_BY[workload]
        self._code_of, self._think_s, self._cancel = code_of, think_s, cancel
        self._to_write = Connection(connect)
        self._to_read = self._to_write if connect_to_read is None else Connection(connect_to_read)
        self._is_committing = False

    async def open(self) -> None:
        await self._to_write.session()

    async def close(self) -> None:
        self._to_write.abandon()
        self._to_read.abandon()

    async def invoke(self, operation: Operation) -> Operation:
        connection = self._to_read if only_reads(operation) else self._to_write
        session = await connection.session()
        self._is_committing = False
        work = asyncio.ensure_future(self._transaction(connection, session, operation))
        try:
            done, _ = await self._answered(work, session)
        finally:
            if not work.done():
                # The connection first: of a cancelled request that waits a driver would ask the database, over another
                # connection, to give it up, and a COMMIT that waits for a standby is answered at once then.
                connection.abandon()
                await asyncio.wait({work}, timeout=ENDING_TIMEOUT_S)
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
        if not done:
            raise OperationError(CLIENT_TIMEOUT if self._is_committing else NEVER_COMMITTED, node=session.node)
        return operation._replace(type="ok", value=work.result(), node=session.node)

    async def _answered(self, work: asyncio.Future[Any], session: Session) -> tuple[set[Any], set[Any]]:
        if self._cancel is None:
            return await asyncio.wait({work}, timeout=ANSWER_TIMEOUT_S)
        await asyncio.wait({work}, timeout=CANCELLED_AFTER_S)
        if not work.done() and self._is_committing:
            with contextlib.suppress(Refused, Lost):
                await self._cancel(session)
        return await asyncio.wait({work}, timeout=ANSWER_TIMEOUT_S - CANCELLED_AFTER_S)

    async def _transaction(self, connection: Connection, session: Session, operation: Operation) -> Mapping[str, Any]:
        """Raises OperationError, after which no transaction is open on the session."""
        try:
            await session.begin()
            value = await carry_out(session, self._dialect, self._kind, operation, self._think)
            self._is_committing = True
            await session.commit()
            return value
        except OperationError as error:
            await _rolled_back(connection, session)
            raise OperationError(error.error, error.detail, node=session.node) from error
        except Refused as error:
            code = self._code_of(error)
            if self._is_committing:
                connection.abandon()
                known = code if code.definite else OUTCOME_UNKNOWN
                raise OperationError(known, str(error), node=session.node) from error
            await _rolled_back(connection, session)
            raise OperationError(ErrorCode(code.code, definite=True), str(error), node=session.node) from error
        except Lost as error:
            connection.abandon()
            code = CONNECTION_LOST if self._is_committing else NEVER_COMMITTED
            raise OperationError(code, str(error), node=session.node) from error

    async def _think(self) -> None:
        await asyncio.sleep(self._think_s)


async def _rolled_back(connection: Connection, session: Session) -> None:
    try:
        await session.rollback()
    except (Refused, Lost):
        connection.abandon()
