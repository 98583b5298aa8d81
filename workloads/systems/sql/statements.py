"""How the operations of a workload become statements within one transaction, on any database that speaks SQL.

A list is a row with its elements as text between commas, to which a statement appends one; a register is a row with a
number; both are spread over a few tables. A transfer of the bank reads both balances, decides, and writes the new ones,
as programs do: between its statements others may do the same. Balances are read by one statement. An element of a
set is a row, and a set is read by one statement.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.errors import PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from workloads.bank import MOST_ACCOUNTS, OPENING_BALANCE
from workloads.systems.sql.session import Session

TABLES = 3
"""How many tables there are of lists, and as many of registers."""
LISTS, REGISTERS, ACCOUNTS, ELEMENTS = "lists", "registers", "accounts", "elements"
HELD_BY = {"list-append": LISTS, "rw-register": REGISTERS, "long-fork": REGISTERS, "bank": ACCOUNTS, "set": ELEMENTS}
"""Workload -> the tables that hold what it reads and writes."""
Pause = Callable[[], Awaitable[None]]
"""Waits between two statements."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The statements that databases write differently; `{table}` is filled in."""

    schema: tuple[str, ...]
    """Make the tables and the accounts, where they are not yet there."""
    select: str
    """The value of a key."""
    append: str
    """Key, text of the first element, text that is put behind what is there."""
    write: str
    """Key, value."""
    balances: str
    """Numbers and amounts of the accounts from 0 up to one."""
    set_amount: str
    """Value, account."""
    add: str
    """Set, element."""
    elements: str
    """The elements of a set."""


def opening_balances() -> str:
    """The rows of all accounts that a run may use."""
    return ", ".join(f"({account}, {OPENING_BALANCE})" for account in range(MOST_ACCOUNTS))


def tables(long_text: str) -> tuple[str, ...]:
    """The statements that make the tables, in any dialect but for the type of long texts."""
    made = "CREATE TABLE IF NOT EXISTS"
    return (
        *(f"{made} {LISTS}{n} (id VARCHAR(64) PRIMARY KEY, val {long_text} NOT NULL)" for n in range(TABLES)),
        *(f"{made} {REGISTERS}{n} (id VARCHAR(64) PRIMARY KEY, val BIGINT NOT NULL)" for n in range(TABLES)),
        f"{made} {ACCOUNTS} (id INT PRIMARY KEY, val BIGINT NOT NULL)",
        f"{made} {ELEMENTS} (id VARCHAR(64), val BIGINT, PRIMARY KEY (id, val))",
    )


def only_reads(operation: Operation) -> bool:
    """Whether the operation changes nothing, so that a server that takes no writes can carry it out."""
    micro_operations = (operation.value or {}).get("txn")
    if micro_operations is None:
        return operation.f == "read"
    return all(part["f"] == "r" for part in micro_operations)


async def carry_out(
    session: Session, dialect: Dialect, kind: str, operation: Operation, pause: Pause
) -> Mapping[str, Any]:
    """Everything between BEGIN and COMMIT; the value of the completion. `kind`: of HELD_BY.

    Raises Refused, Lost, OperationError.
    """
    value = dict(operation.value or {})
    if "txn" in value:
        done = []
        for position, part in enumerate(value["txn"]):
            if position:
                await pause()
            done.append(await _micro_operation(session, dialect, kind, part))
        value["txn"] = done
    elif operation.f == "add":
        await session.rows(dialect.add.format(table=ELEMENTS), operation.key, value["value"])
    elif kind == ELEMENTS:
        value["values"] = [row[0] for row in await session.rows(dialect.elements.format(table=ELEMENTS), operation.key)]
    elif operation.f == "transfer":
        await _transfer(session, dialect, value, pause)
    else:
        accounts = [entry["account"] for entry in value["balances"]]
        rows = await session.rows(dialect.balances.format(table=ACCOUNTS), max(accounts))
        amounts = {account: amount for account, amount in rows}
        value["balances"] = [{"account": account, "amount": amounts.get(account)} for account in accounts]
    return value


async def _micro_operation(session: Session, dialect: Dialect, kind: str, part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part, with what a read shows."""
    key, value = part["key"], part["value"]
    table = f"{kind}{zlib.crc32(key.encode()) % TABLES}"
    if part["f"] == "append":
        await session.rows(dialect.append.format(table=table), key, str(value), f",{value}")
    elif part["f"] == "w":
        await session.rows(dialect.write.format(table=table), key, value)
    else:
        rows = await session.rows(dialect.select.format(table=table), key)
        if kind == LISTS:
            return {**part, "values": [int(element) for row in rows for element in row[0].split(",")]}
        return {**part, "value": rows[0][0] if rows else None}
    return dict(part)


async def _transfer(session: Session, dialect: Dialect, value: Mapping[str, Any], pause: Pause) -> None:
    select, set_amount = (text.format(table=ACCOUNTS) for text in (dialect.select, dialect.set_amount))
    balances = []
    for account in (value["from"], value["to"]):
        balances.append((await session.rows(select, account))[0][0])
        await pause()
    payer, payee = balances
    if payer < value["amount"]:
        raise OperationError(PRECONDITION_FAILED)
    await session.rows(set_amount, payer - value["amount"], value["from"])
    await pause()
    await session.rows(set_amount, payee + value["amount"], value["to"])
