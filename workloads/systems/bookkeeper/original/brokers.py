"""Brokers that write by the release's client, as clients ask them: a line of JSON a request, a line the answer.

What can be asked is at the head of `OriginalBroker.java`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from harness.errors import (
    CLIENT_TIMEOUT,
    CONNECT_FAILED,
    CONNECTION_LOST,
    OUTCOME_UNKNOWN,
    SERVICE_NOT_AVAILABLE,
    OperationError,
)
from system_under_test.remoting.json_body import decode_json
from system_under_test.runtime.host import ConnectFailed, Connection, ConnectionClosed
from workloads.systems.bookkeeper.errors import ENTRY_UNREAD, LEDGER_LOST, NOT_SERVING
from workloads.systems.bookkeeper.nodes import BROKER_PORT

ERRORS = {
    "not-serving": NOT_SERVING,
    "malformed": SERVICE_NOT_AVAILABLE,
    "failed": LEDGER_LOST,
    "unread": ENTRY_UNREAD,
}
LONGEST_LINE = 4 * 1024 * 1024


class Brokers:
    """Over one connection to each, with one request at a time on it."""

    def __init__(self, host: Any, names: Sequence[str], patience_s: float) -> None:
        self._host = host
        self._names = names
        self._patience_s = patience_s
        self._connections: dict[str, Connection] = {}
        self._order = list(names)
        """In which they are asked."""

    async def ask(self, broker: str, **request: Any) -> Mapping[str, Any]:
        """Raises OperationError."""
        try:
            answer: Mapping[str, Any] = await self._host.clock.within(self._patience_s, self._answer(broker, request))
        except ConnectFailed as error:
            raise OperationError(CONNECT_FAILED, str(error), node=broker) from error
        except TimeoutError as error:
            self._forget(broker)
            raise OperationError(CLIENT_TIMEOUT, str(error), node=broker) from error
        except (ConnectionClosed, ValueError) as error:
            self._forget(broker)
            raise OperationError(CONNECTION_LOST, str(error), node=broker) from error
        if "error" in answer:
            code = ERRORS.get(answer["error"], OUTCOME_UNKNOWN)
            raise OperationError(code, str(answer.get("detail", "")), node=broker)
        return answer

    async def ask_any(self, **request: Any) -> tuple[str, Mapping[str, Any]]:
        """Who answered, and what. Another one is asked only where one has certainly done nothing; who gave no answer is
        asked last from then on. Raises OperationError."""
        refusal: OperationError | None = None
        for broker in tuple(self._order):
            try:
                answer = await self.ask(broker, **request)
            except OperationError as error:
                self._order.remove(broker)
                self._order.append(broker)
                if not error.error.definite:
                    raise
                refusal = error
                continue
            return broker, answer
        assert refusal is not None
        raise refusal

    async def look(self, **request: Any) -> tuple[str, Mapping[str, Any]]:
        """The same for what may be asked twice: others are asked after one that gives no answer, too."""
        for _ in self._names[1:]:
            with suppress(OperationError):
                return await self.ask_any(**request)
        return await self.ask_any(**request)

    async def owner(self, partition: str) -> str | None:
        """Who says that it owns the partition, if anyone does."""
        for broker in self._names:
            try:
                if (await self.ask(broker, f="owns", partition=partition))["owns"]:
                    return broker
            except OperationError:
                continue
        return None

    async def _answer(self, broker: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Raises ConnectFailed, ConnectionClosed, ValueError."""
        connection = self._connections.get(broker)
        if connection is None or connection.closed:
            connection = await self._host.network.connect(f"{broker}:{BROKER_PORT}", self._patience_s)
            self._connections[broker] = connection
        connection.write(json.dumps(request).encode() + b"\n")
        line = bytearray()
        while not line.endswith(b"\n"):
            if len(line) == LONGEST_LINE:
                raise ValueError(f"an answer is longer than {LONGEST_LINE} bytes")
            line += await connection.read_exactly(1)
        answer = decode_json(bytes(line))
        if not isinstance(answer, dict):
            raise ValueError("an answer is no object of JSON")
        return answer

    def _forget(self, broker: str) -> None:
        """What comes on this connection yet answers nothing that is asked later."""
        if (connection := self._connections.pop(broker, None)) is not None:
            connection.close()

    def close(self) -> None:
        for broker in tuple(self._connections):
            self._forget(broker)
