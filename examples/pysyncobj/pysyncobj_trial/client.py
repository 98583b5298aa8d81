"""A client of one logical process: it stays with one node, which hands on to the leader what it cannot do itself."""

from __future__ import annotations

import json
from typing import Any

from pysyncobj_trial.errors import code_of, code_of_silence
from pysyncobj_trial.nodes import CLIENT_PORT, NODES
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

ANSWER_TIMEOUT_S = 3.0
"""Longer than a node waits for PySyncObj, so that its own reason comes first."""


class RegisterClient:
    """`stormproof.Client`."""

    def __init__(self, host: Host, process: int) -> None:
        self._host, self._node = host, NODES[process % len(NODES)]
        self._connection: Connection | None = None

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def invoke(self, operation: Operation) -> Operation:
        request = {"f": operation.f, "key": operation.key, **(operation.value or {})}
        try:
            if self._connection is None:
                address = f"{self._node}:{CLIENT_PORT}"
                self._connection = await self._host.network.connect(address, ANSWER_TIMEOUT_S)
            answer = await self._host.clock.within(ANSWER_TIMEOUT_S, asked(self._connection, request))
        except ConnectFailed as error:
            raise OperationError(CONNECT_FAILED, str(error), node=self._node) from error
        except (ConnectionClosed, TimeoutError) as error:
            await self.close()
            raise OperationError(code_of_silence(error), str(error), node=self._node) from error
        if "error" in answer:
            raise OperationError(code_of(answer["error"]), answer["error"], node=self._node)
        if answer.get("done") is False:
            raise OperationError(PRECONDITION_FAILED, node=self._node)
        value = {"value": answer["value"], "expected": None} if operation.f == "read" else operation.value
        return operation._replace(type="ok", value=value, node=self._node)


async def asked(connection: Connection, request: dict[str, Any]) -> dict[str, Any]:
    connection.write(json.dumps(request).encode() + b"\n")
    line = bytearray()
    while not line.endswith(b"\n"):
        line += await connection.read_exactly(1)
    answer: dict[str, Any] = json.loads(line)
    return answer


async def status(host: Host, node: str) -> dict[str, Any]:
    """What a node says of itself; nothing where it does not answer."""
    try:
        connection = await host.network.connect(f"{node}:{CLIENT_PORT}", ANSWER_TIMEOUT_S)
    except ConnectFailed:
        return {}
    try:
        return await host.clock.within(ANSWER_TIMEOUT_S, asked(connection, {"f": "status"}))
    except (ConnectionClosed, TimeoutError):
        return {}
    finally:
        connection.close()
