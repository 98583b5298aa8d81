"""A client of Redis: it asks who is the primary (a sentinel, if there are any) and stays with it until an error.

It speaks RESP itself (https://redis.io/docs/latest/develop/reference/protocol-spec/): one request a call, over one
connection, which nothing repeats or replaces unseen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from harness.errors import CONNECT_FAILED, PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed, Host
from workloads.systems.redis.errors import Refused, code_of
from workloads.systems.redis.nodes import SENTINEL_PORT, SENTINELS, SERVER_PORT

ANSWER_TIMEOUT_S = 2.0
CAS = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end redis.call('set', KEYS[1], ARGV[2]) return 1"
Words = Sequence[str | int]
Primary = Callable[[], Awaitable[str]]
"""Who is the primary now. Raises ConnectFailed."""
GARBAGE = -1
"""Stands in a history for what is no number: nobody writes it, so each checker finds it."""


def encoded(words: Words) -> bytes:
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


async def answer(connection: Connection) -> Any:
    """The next answer; one that is an error is a Refused, also within a list of answers."""
    line = bytearray()
    while not line.endswith(b"\r\n"):
        line += await connection.read_exactly(1)
    kind, rest = chr(line[0]), line[1:-2].decode()
    if kind == "-":
        return Refused(rest)
    if rest == "-1":
        return None
    if kind == "*":
        return [await answer(connection) for _ in range(int(rest))]
    if kind == "$":
        return (await connection.read_exactly(int(rest) + 2))[:-2].decode(errors="replace")
    return int(rest) if kind == ":" else rest


async def ask(connection: Connection, *words: str | int) -> Any:
    """Raises Refused."""
    connection.write(encoded(words))
    if isinstance(said := await answer(connection), Refused):
        raise said
    return said


async def transaction(connection: Connection, commands: Sequence[Words]) -> list[Any]:
    """What each of the commands of one MULTI answers. Raises Refused: by the first that was not even queued, for then
    none of them is carried out."""
    connection.write(b"".join(map(encoded, (["MULTI"], *commands, ["EXEC"]))))
    queued = [await answer(connection) for _ in range(1 + len(commands))]
    done = await answer(connection)
    if isinstance(done, Refused):
        raise next((one for one in queued if isinstance(one, Refused)), done)
    if not isinstance(done, list) or any(isinstance(one, Refused) for one in done):
        raise Refused(f"EXEC answered {done}")
    return done


async def asked(host: Host, address: str, *words: str) -> Any:
    """The answer to one command, over a connection of its own. Raises ConnectFailed."""
    connection = await host.network.connect(address, ANSWER_TIMEOUT_S)
    try:
        return await host.clock.within(ANSWER_TIMEOUT_S, ask(connection, *words))
    except (Refused, ConnectionClosed, TimeoutError) as error:
        raise ConnectFailed(f"{address}: {error}") from error
    finally:
        connection.close()


async def primary(host: Host, first: int) -> str:
    """The primary as a sentinel knows it, asked in turn from the first on. Raises ConnectFailed."""
    for turn in range(len(SENTINELS)):
        sentinel = f"{SENTINELS[(first + turn) % len(SENTINELS)]}:{SENTINEL_PORT}"
        with contextlib.suppress(ConnectFailed):
            known = await asked(host, sentinel, "SENTINEL", "get-master-addr-by-name", "redis")
            if known:
                return str(known[0])
    raise ConnectFailed("no sentinel names a primary")


class RedisClient:
    """Client of one process, for all workloads. Keys of registers, sets and lists differ by themselves."""

    def __init__(self, host: Host, find_primary: Primary) -> None:
        self._host, self._find_primary, self._node = host, find_primary, ""
        self._connection: Connection | None = None

    async def open(self) -> None:
        try:
            self._node = await self._find_primary()
            self._connection = await self._host.network.connect(f"{self._node}:{SERVER_PORT}", ANSWER_TIMEOUT_S)
        except ConnectFailed as error:
            raise OperationError(CONNECT_FAILED, str(error)) from error

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def invoke(self, operation: Operation) -> Operation:
        if self._connection is None:
            await self.open()
        assert self._connection is not None
        try:
            value = await self._host.clock.within(ANSWER_TIMEOUT_S, carry_out(self._connection, operation))
        except (Refused, ConnectionClosed, TimeoutError) as error:
            await self.close()
            raise OperationError(code_of(error), str(error), node=self._node) from error
        return operation._replace(type="ok", value=value, node=self._node)


def number(text: str) -> int:
    """What a value is as a history has it."""
    return int(text) if text.isdecimal() and text.isascii() else GARBAGE


async def carry_out(connection: Connection, operation: Operation) -> Mapping[str, Any]:
    """The value of the completion."""
    key, value = operation.key or "", dict(operation.value or {})
    if operation.f == "txn":
        value["txn"] = await _lists(connection, value["txn"])
    elif operation.f == "add":
        await ask(connection, "SADD", key, value["value"])
    elif operation.f == "read" and "values" in value:
        value["values"] = sorted(map(number, await ask(connection, "SMEMBERS", key)))
    elif operation.f == "read":
        shown = await ask(connection, "GET", key)
        value["value"] = None if shown is None else number(shown)
    elif operation.f == "write":
        await ask(connection, "SET", key, value["value"])
    elif not await ask(connection, "EVAL", CAS, 1, key, value["expected"], value["value"]):
        raise OperationError(PRECONDITION_FAILED)
    return value


async def _lists(connection: Connection, txn: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Appends and reads of lists as one MULTI."""
    commands: list[Words] = [
        ("LRANGE", part["key"], 0, -1) if part["f"] == "r" else ("RPUSH", part["key"], part["value"]) for part in txn
    ]
    said = await transaction(connection, commands)
    return [
        {**part, "values": list(map(number, one))} if part["f"] == "r" else dict(part)
        for part, one in zip(txn, said, strict=True)
    ]
