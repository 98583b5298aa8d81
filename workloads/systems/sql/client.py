"""A client of a database that speaks SQL: an operation is one transaction, over one connection, which nothing repeats.

A transaction whose COMMIT was not sent certainly did not happen, whatever ended it: nobody can commit it any more. What
became of one whose COMMIT was sent and not answered is unknown, unless the answer is an error by which the database
says that it has rolled it back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from harness.errors import CLIENT_TIMEOUT, CONNECT_FAILED, CONNECTION_LOST, OUTCOME_UNKNOWN, ErrorCode, OperationError
from harness.operation import Operation
from workloads.systems.sql.session import Lost, Refused, Session
from workloads.systems.sql.statements import HELD_BY, Dialect, carry_out

ANSWER_TIMEOUT_S = 4.0
"""Less than the harness gives an operation, which does not know whether COMMIT was sent."""
ENDING_TIMEOUT_S = 0.5
"""For what is under way to find its connection gone."""
NEVER_COMMITTED = ErrorCode("never-committed", definite=True)
"""The connection was lost, or given up, before COMMIT was sent."""

Connect = Callable[[], Awaitable[Session]]
Code = Callable[[Refused], ErrorCode]
"""What an error is called; definite where it says that the transaction is rolled back, whenever it comes."""


class SqlClient:
    """Client of one process, for all workloads."""

    def __init__(self, connect: Connect, *, dialect: Dialect, workload: str, code_of: Code, think_s: float) -> None:
        """`connect` raises Lost where nobody takes connections; `think_s`: between two statements of a transaction."""
        self._connect, self._dialect, self._kind = connect, dialect, HELD_BY[workload]
        self._code_of, self._think_s = code_of, think_s
        self._session: Session | None = None
        self._is_committing = False

    async def open(self) -> None:
        try:
            self._session = await self._connect()
        except Lost as error:
            raise OperationError(CONNECT_FAILED, str(error)) from error

    async def close(self) -> None:
        if self._session is not None:
            self._session.abandon()
            self._session = None

    async def invoke(self, operation: Operation) -> Operation:
        if self._session is None:
            await self.open()
        session = self._session
        assert session is not None
        self._is_committing = False
        work = asyncio.ensure_future(self._transaction(session, operation))
        try:
            done, _ = await asyncio.wait({work}, timeout=ANSWER_TIMEOUT_S)
        finally:
            if not work.done():
                # The connection first: of a cancelled request that waits a driver would ask the database, over another
                # connection, to give it up, and a COMMIT that waits for a standby is answered at once then.
                await self.close()
                await asyncio.wait({work}, timeout=ENDING_TIMEOUT_S)
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
        if not done:
            raise OperationError(CLIENT_TIMEOUT if self._is_committing else NEVER_COMMITTED, node=session.node)
        return operation._replace(type="ok", value=work.result(), node=session.node)

    async def _transaction(self, session: Session, operation: Operation) -> Mapping[str, Any]:
        """Raises OperationError, after which no transaction is open on the session."""
        try:
            await session.begin()
            value = await carry_out(session, self._dialect, self._kind, operation, self._think)
            self._is_committing = True
            await session.commit()
            return value
        except OperationError as error:
            await self._rolled_back(session)
            raise OperationError(error.error, error.detail, node=session.node) from error
        except Refused as error:
            code = self._code_of(error)
            if self._is_committing:
                await self.close()
                known = code if code.definite else OUTCOME_UNKNOWN
                raise OperationError(known, str(error), node=session.node) from error
            await self._rolled_back(session)
            raise OperationError(ErrorCode(code.code, definite=True), str(error), node=session.node) from error
        except Lost as error:
            await self.close()
            code = CONNECTION_LOST if self._is_committing else NEVER_COMMITTED
            raise OperationError(code, str(error), node=session.node) from error

    async def _rolled_back(self, session: Session) -> None:
        try:
            await session.rollback()
        except (Refused, Lost):
            await self.close()

    async def _think(self) -> None:
        await asyncio.sleep(self._think_s)
