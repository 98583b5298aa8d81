"""A client of one logical process: one request an operation, never repeated, and no guess at what became of it."""

from __future__ import annotations

from collections.abc import Sequence

from stormproof import CONNECT_FAILED, ConnectFailed, Connection, ConnectionClosed, Host, Operation, OperationError
from stormproof.skeletons.python.errors import code_of, code_of_silence
from stormproof.skeletons.python.program import PORT, receive, send

ANSWER_TIMEOUT_S = 2.0


class SkeletonClient:
    """`stormproof.Client`. It stays with a node until that node answers an error, or not at all."""

    def __init__(self, host: Host, nodes: Sequence[str], process: int) -> None:
        self._host, self._nodes, self._next = host, nodes, process
        self._connection: Connection | None = None

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def invoke(self, operation: Operation) -> Operation:
        node = self._nodes[self._next % len(self._nodes)]
        request = {"f": operation.f, "key": operation.key, **(operation.value or {})}
        try:
            if self._connection is None:
                self._connection = await self._host.network.connect(f"{node}:{PORT}", ANSWER_TIMEOUT_S)
            send(self._connection, request)
            answer = await self._host.clock.within(ANSWER_TIMEOUT_S, receive(self._connection))
        except ConnectFailed as error:
            self._next += 1
            raise OperationError(CONNECT_FAILED, str(error), node=node) from error
        except (ConnectionClosed, TimeoutError) as error:
            await self._leave()
            raise OperationError(code_of_silence(error), str(error), node=node) from error
        if "error" in answer:
            if answer["error"] == "not-primary":
                await self._leave()
            raise OperationError(code_of(answer["error"]), node=node)
        value = {"value": answer["value"], "expected": None} if operation.f == "read" else operation.value
        return operation._replace(type="ok", value=value, node=node)

    async def _leave(self) -> None:
        await self.close()
        self._next += 1
