"""A client of one logical process: one request an operation, never repeated, and no guess at what became of it.

It speaks the command's protocol itself, as a library might repeat requests unseen.
"""

from __future__ import annotations

from stormproof import (
    CONNECT_FAILED,
    PRECONDITION_FAILED,
    ConnectFailed,
    Connection,
    ConnectionClosed,
    Host,
    Operation,
    OperationError,
)
from stormproof.skeletons.command.errors import code_of, code_of_silence
from stormproof.skeletons.command.nodes import NODE, PORT

ANSWER_TIMEOUT_S = 2.0
CAS = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end redis.call('set', KEYS[1], ARGV[2]) return 1"


class SkeletonClient:
    """`stormproof.Client`."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._connection: Connection | None = None

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def invoke(self, operation: Operation) -> Operation:
        try:
            if self._connection is None:
                self._connection = await self._host.network.connect(f"{NODE}:{PORT}", ANSWER_TIMEOUT_S)
            answer = await self._host.clock.within(ANSWER_TIMEOUT_S, asked(self._connection, *request_of(operation)))
        except ConnectFailed as error:
            raise OperationError(CONNECT_FAILED, str(error), node=NODE) from error
        except (ConnectionClosed, TimeoutError) as error:
            await self.close()
            raise OperationError(code_of_silence(error), str(error), node=NODE) from error
        value = operation.value
        if operation.f == "read":
            value = {"value": None if answer is None else int(answer), "expected": None}
        elif operation.f == "cas" and answer == "0":
            raise OperationError(PRECONDITION_FAILED, node=NODE)
        return operation._replace(type="ok", value=value, node=NODE)


def request_of(operation: Operation) -> tuple[str, ...]:
    key, value = operation.key or "", operation.value or {}
    if operation.f == "read":
        return "GET", key
    if operation.f == "write":
        return "SET", key, str(value["value"])
    return "EVAL", CAS, "1", key, str(value["expected"]), str(value["value"])


async def asked(connection: Connection, *words: str) -> str | None:
    """What is answered to one command. Raises OperationError for an error, ConnectionClosed."""
    parts = "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words)
    connection.write(f"*{len(words)}\r\n{parts}".encode())
    line = bytearray()
    while not line.endswith(b"\r\n"):
        line += await connection.read_exactly(1)
    kind, rest = chr(line[0]), line[1:-2].decode()
    if kind == "-":
        raise OperationError(code_of(rest), rest, node=NODE)
    if kind != "$":
        return rest
    return None if rest == "-1" else (await connection.read_exactly(int(rest) + 2))[:-2].decode()
