"""The client of databases, against a session of a few lines: what is sent, and what is made of each way of failing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from harness.errors import OperationError
from harness.operation import Operation
from workloads.systems.mariadb.adapter import DIALECT as MARIADB
from workloads.systems.mariadb.errors import code_of as mariadb_code_of
from workloads.systems.postgresql.adapter import DIALECT as POSTGRESQL
from workloads.systems.postgresql.errors import code_of as postgresql_code_of
from workloads.systems.sql import client as client_module
from workloads.systems.sql.client import Code, SqlClient
from workloads.systems.sql.session import Lost, Refused
from workloads.systems.sql.statements import HELD_BY

LISTS = [
    {"f": "append", "key": "k1", "value": 7, "values": None},
    {"f": "r", "key": "k1", "value": None, "values": None},
]
REGISTERS = [
    {"f": "w", "key": "k1", "value": 7, "values": None},
    {"f": "r", "key": "k1", "value": None, "values": None},
]
WAITS = TimeoutError()
"""At this step nothing is answered."""


class Scripted:
    """A session that answers SELECTs in turn, and fails once, at a step."""

    node = "n1"

    def __init__(self, answers: Sequence[Any] = (), at: str = "", failure: Exception | None = None) -> None:
        self.answers, self.at, self.failure = list(answers), at, failure
        self.sent: list[str] = []
        self.abandoned = False
        self._end = asyncio.Event()

    async def _step(self, words: str) -> None:
        self.sent.append(words)
        if self.at and words.startswith(self.at) and self.failure is not None:
            if self.failure is WAITS:
                await self._end.wait()
                raise Lost("abandoned")
            raise self.failure

    async def begin(self) -> None:
        await self._step("BEGIN")

    async def rows(self, statement: str, *arguments: Any) -> Sequence[Sequence[Any]]:
        await self._step(f"{statement.partition(' ')[0]} {arguments}")
        return self.answers.pop(0) if statement.startswith("SELECT") else []

    async def commit(self) -> None:
        await self._step("COMMIT")

    async def rollback(self) -> None:
        await self._step("ROLLBACK")

    def abandon(self) -> None:
        self.abandoned = True
        self._end.set()


def carried_out(
    session: Scripted, workload: str, value: Any, f: str = "txn", code_of: Code = postgresql_code_of
) -> Operation:
    async def invoked() -> Operation:
        async def connect() -> Scripted:
            return session

        client = SqlClient(connect, dialect=POSTGRESQL, workload=workload, code_of=code_of, think_s=0.0)
        await client.open()
        return await client.invoke(Operation(process=0, type="invoke", f=f, value=value))

    return asyncio.run(invoked())


def ended(at: str, failure: Exception, code_of: Code = postgresql_code_of) -> tuple[str, bool, Scripted]:
    """The code of a transaction in which a step fails so, whether it is definite, and the session."""
    session = Scripted([[("7",)]], at, failure)
    with pytest.raises(OperationError) as raised:
        carried_out(session, "list-append", {"txn": LISTS}, code_of=code_of)
    return raised.value.error.code, raised.value.error.definite, session


def test_a_transaction_is_begun_and_committed_once_and_its_reads_are_whole_lists() -> None:
    session = Scripted([[("3,7",)]])
    completion = carried_out(session, "list-append", {"txn": LISTS})
    assert completion.type == "ok" and completion.node == "n1"
    assert [part["values"] for part in completion.value["txn"]] == [None, [3, 7]]
    assert session.sent == ["BEGIN", "INSERT ('k1', '7', ',7')", "SELECT ('k1',)", "COMMIT"]


@pytest.mark.parametrize(("rows", "value"), [([(7,)], 7), ([], None)])
def test_a_register_that_has_no_row_is_read_as_null(rows: list[Any], value: int | None) -> None:
    completion = carried_out(Scripted([rows]), "rw-register", {"txn": REGISTERS})
    assert completion.value["txn"][1]["value"] == value


def test_an_element_of_a_set_is_a_row_and_a_set_is_read_whole() -> None:
    session = Scripted([[(3,), (7,)]])
    added = carried_out(session, "set", {"value": 7, "values": None}, f="add")
    read = carried_out(session, "set", {"value": None, "values": None}, f="read")
    assert added.value["value"] == 7 and read.value["values"] == [3, 7]
    assert session.sent == ["BEGIN", "INSERT (None, 7)", "COMMIT", "BEGIN", "SELECT (None,)", "COMMIT"]


def test_a_list_that_has_no_row_is_read_as_empty() -> None:
    completion = carried_out(Scripted([[]]), "list-append", {"txn": LISTS})
    assert completion.value["txn"][1]["values"] == []


def test_a_transfer_writes_what_it_has_computed_from_what_it_read() -> None:
    session = Scripted([[(10,)], [(4,)]])
    carried_out(session, "bank", {"from": 1, "to": 2, "amount": 5, "balances": None}, f="transfer")
    assert session.sent == ["BEGIN", "SELECT (1,)", "SELECT (2,)", "UPDATE (5, 1)", "UPDATE (9, 2)", "COMMIT"]


def test_a_transfer_of_more_than_there_is_fails_and_is_rolled_back() -> None:
    session = Scripted([[(4,)], [(4,)]])
    with pytest.raises(OperationError) as raised:
        carried_out(session, "bank", {"from": 1, "to": 2, "amount": 5, "balances": None}, f="transfer")
    assert raised.value.error.code == "precondition-failed"
    assert session.sent[-1] == "ROLLBACK" and not session.abandoned


@pytest.mark.parametrize("at", ["BEGIN", "INSERT", "SELECT"])
@pytest.mark.parametrize(
    "failure", [Refused("XX000", "anything"), Lost("gone"), WAITS], ids=["error", "end", "silence"]
)
def test_whatever_ends_a_transaction_before_its_commit_was_sent_it_has_failed(
    monkeypatch: pytest.MonkeyPatch, at: str, failure: Exception
) -> None:
    monkeypatch.setattr(client_module, "ANSWER_TIMEOUT_S", 0.05)
    _, definite, session = ended(at, failure)
    assert definite and "COMMIT" not in session.sent
    assert "ROLLBACK" in session.sent or session.abandoned


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (Refused("57P01", "shutting down"), "outcome-unknown"),
        (Refused("40003", "unknown"), "outcome-unknown"),
        (Lost("gone"), "connection-lost"),
        (WAITS, "client-timeout"),
    ],
)
def test_what_became_of_a_commit_without_a_clear_answer_nobody_knows(
    monkeypatch: pytest.MonkeyPatch, failure: Exception, code: str
) -> None:
    monkeypatch.setattr(client_module, "ANSWER_TIMEOUT_S", 0.05)
    assert ended("COMMIT", failure)[:2] == (code, False)


@pytest.mark.parametrize(
    ("code_of", "number", "code"),
    [
        (postgresql_code_of, "40001", "serialization-failure"),
        (postgresql_code_of, "40P01", "deadlock-detected"),
        (postgresql_code_of, "25P02", "in-failed-transaction"),
        (mariadb_code_of, "1213", "deadlock"),
    ],
)
def test_a_commit_that_is_answered_by_a_rollback_has_failed(code_of: Code, number: str, code: str) -> None:
    assert ended("COMMIT", Refused(number, ""), code_of)[:2] == (code, True)


@pytest.mark.parametrize("number", ["1205", "1020", "1047", "1180", "2999"])
def test_other_answers_of_mariadb_to_a_commit_leave_it_open(number: str) -> None:
    assert ended("COMMIT", Refused(number, ""), mariadb_code_of)[:2] == ("outcome-unknown", False)


@pytest.mark.parametrize("dialect", [POSTGRESQL, MARIADB], ids=["postgresql", "mariadb"])
def test_what_is_made_twice_stays_as_it_was(dialect: Any) -> None:
    *tables, accounts = dialect.schema
    assert all(table.startswith("CREATE TABLE IF NOT EXISTS") for table in tables)
    assert "ON CONFLICT DO NOTHING" in accounts or "ON DUPLICATE KEY UPDATE id = accounts.id" in accounts
    assert set(HELD_BY) == {"list-append", "rw-register", "long-fork", "bank", "set"}


READ = {"txn": [{"f": "r", "key": "k1", "value": None, "values": None}]}


def test_what_only_reads_goes_to_the_server_that_answers_reads_and_nothing_else_does() -> None:
    primary, standby = Scripted([[("7",)]]), Scripted([[("7",)]])

    async def story() -> list[Operation]:
        async def to_write() -> Scripted:
            return primary

        async def to_read() -> Scripted:
            return standby

        client = SqlClient(
            to_write,
            dialect=POSTGRESQL,
            workload="list-append",
            code_of=postgresql_code_of,
            think_s=0.0,
            connect_to_read=to_read,
        )
        await client.open()
        return [
            await client.invoke(Operation(process=0, type="invoke", f="txn", value=value))
            for value in (READ, {"txn": LISTS})
        ]

    assert all(completion.type == "ok" for completion in asyncio.run(story()))
    assert standby.sent == ["BEGIN", "SELECT ('k1',)", "COMMIT"]
    assert [words.partition(" ")[0] for words in primary.sent] == ["BEGIN", "INSERT", "SELECT", "COMMIT"]


class Waiting(Scripted):
    """Its COMMIT is answered once it is given up."""

    async def commit(self) -> None:
        self.sent.append("COMMIT")
        await self._end.wait()


def test_a_commit_that_is_given_up_counts_as_what_the_database_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CANCELLED_AFTER_S", 0.02)
    session = Waiting([[("7",)]])

    async def invoked() -> Operation:
        async def connect() -> Scripted:
            return session

        async def cancel(given_up: Any) -> None:
            given_up.sent.append("CANCEL")
            session._end.set()

        client = SqlClient(
            connect,
            dialect=POSTGRESQL,
            workload="list-append",
            code_of=postgresql_code_of,
            think_s=0.0,
            cancel=cancel,
        )
        return await client.invoke(Operation(process=0, type="invoke", f="txn", value={"txn": LISTS}))

    assert asyncio.run(invoked()).type == "ok"
    assert session.sent[-2:] == ["COMMIT", "CANCEL"]
