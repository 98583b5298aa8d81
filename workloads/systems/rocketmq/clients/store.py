"""The workloads that the controllers' store serves with its transactions: one request an invocation.

What only reads waits for a read barrier, whatever else changes goes through the log. Each workload has one function an
operation; it returns the value of the completion.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from harness.errors import UsageError
from harness.operation import Operation
from system_under_test.remoting.client_error import ClientError
from system_under_test.replicated.key_value_client import KeyValueClient
from workloads.systems.rocketmq.clients.connect import key_value_client, operation_error
from workloads.systems.rocketmq.settings import RocketmqSettings

Value = dict[str, Any]
Request = Callable[[KeyValueClient, str, Value], Awaitable[Value]]
"""(store, key, value of the invocation) -> value of the completion. Raises ClientError."""


class StoreClient:
    def __init__(self, host: Any, settings: RocketmqSettings, process: int, requests: Mapping[str, Request]) -> None:
        self._client = key_value_client(host, settings, process)
        self._requests = requests

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._client.close()

    async def invoke(self, operation: Operation) -> Operation:
        request = self._requests.get(operation.f)
        if request is None:
            raise UsageError(f"the store's client knows {', '.join(self._requests)}, not {operation.f!r}")
        try:
            value = await request(self._client, operation.key or "", dict(operation.value or {}))
        except ClientError as error:
            raise operation_error(error) from error
        return operation._replace(type="ok", value=value)


async def _append(store: KeyValueClient, key: str, value: Value) -> Value:
    await store.transaction([["append", key, value["value"]]])
    return value


async def _elements(store: KeyValueClient, key: str, value: Value) -> Value:
    return value | {"values": await store.get(key) or []}


async def _add(store: KeyValueClient, key: str, value: Value) -> Value:
    await store.transaction([["add", key, value["value"]]])
    return value


async def _number(store: KeyValueClient, key: str, value: Value) -> Value:
    return value | {"value": await store.get(key) or 0}


async def _next(store: KeyValueClient, key: str, value: Value) -> Value:
    ((_, _, number),) = await store.transaction([["add", key, 1]])
    return value | {"value": number}


async def _transfer(store: KeyValueClient, key: str, value: Value) -> Value:
    """Accounts are kept as what they differ from the opening balance."""
    payer, payee, amount = _account(value["from"]), _account(value["to"]), value["amount"]
    moved = [["add", payer, -amount], ["add", payee, amount]]
    await store.transaction(moved, guard=[[payer, amount - _opening_balance()]])
    return value


async def _balances(store: KeyValueClient, key: str, value: Value) -> Value:
    accounts = [balance["account"] for balance in value["balances"]]
    shown = await store.transaction([["r", _account(account), None] for account in accounts])
    balances = [
        {"account": account, "amount": _opening_balance() + (difference or 0)}
        for account, (_, _, difference) in zip(accounts, shown, strict=True)
    ]
    return value | {"balances": balances}


def _opening_balance() -> int:
    # Not before: the workload imports its checker, and shell completion imports this module.
    from workloads.bank import OPENING_BALANCE

    return OPENING_BALANCE


def _account(number: int) -> str:
    return f"account {number}"


async def _transaction(store: KeyValueClient, key: str, value: Value) -> Value:
    """Keys of the micro-operations lie within the operation's own, where it has one."""
    asked = value["txn"]
    shown = await store.transaction([[part["f"], f"{key}/{part['key']}", part["value"]] for part in asked])
    answers = [answer for _, _, answer in shown]
    return value | {"txn": [_answered(part, answer) for part, answer in zip(asked, answers, strict=True)]}


def _answered(part: Value, answer: Any) -> Value:
    if part["f"] != "r":
        return part
    return part | {"values" if isinstance(answer, list) else "value": answer}


REQUESTS: Mapping[str, Mapping[str, Request]] = {
    "set": {"add": _append, "read": _elements},
    "counter": {"add": _add, "read": _number},
    "unique-ids": {"generate": _next},
    "bank": {"transfer": _transfer, "read": _balances},
    "list-append": {"txn": _transaction},
    "rw-register": {"txn": _transaction},
    "long-fork": {"write": _transaction, "read": _transaction},
    "causal": {"txn": _transaction},
    "monotonic": {"inc": _next, "read": _number},
}
"""Workload -> f -> request."""
