"""A client of the key-value store of a Raft group. `LeaderClient` says what a call may leave open."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.replicated import key_value
from system_under_test.replicated.leader_client import LeaderClient
from system_under_test.runtime.host import Host


class KeyValueClient:
    def __init__(self, host: Host, nodes: Sequence[str], timeout_s: float = 3.0, prefer: str | None = None) -> None:
        """As `LeaderClient`."""
        self._group = LeaderClient(host, nodes, timeout_s, prefer)

    def close(self) -> None:
        self._group.close()

    async def get(self, key: str) -> Any:
        """The value, None if there is none."""
        return await self._ask(RemotingCommand.request(RequestCode.KEY_VALUE_GET, {"key": key}))

    async def put(self, key: str, value: Any) -> None:
        await self._ask(RemotingCommand.request(RequestCode.KEY_VALUE_PUT, body=key_value.put(key, value)))

    async def compare_and_set(self, key: str, expected: Any, value: Any) -> None:
        """`expected` None: not there. Raises ClientError `precondition-failed` where another value was found."""
        body = key_value.compare_and_set(key, expected, value)
        await self._ask(RemotingCommand.request(RequestCode.KEY_VALUE_COMPARE_AND_SET, body=body))

    async def transaction(
        self, operations: Sequence[Sequence[Any]], guard: Sequence[Sequence[Any]] = ()
    ) -> list[list[Any]]:
        """Micro-operations of the store (`key_value.py`), atomically and in this order; they come back with
        what each shows. Raises ClientError `precondition-failed` where the guard [[key, least], …] refused them."""
        body = key_value.transaction([list(operation) for operation in operations], [list(demand) for demand in guard])
        answer = await self._ask(RemotingCommand.request(RequestCode.KEY_VALUE_TRANSACTION, body=body))
        return [list(operation) for operation in answer]

    async def _ask(self, command: RemotingCommand) -> Any:
        return json.loads((await self._group.ask(command)).body.decode())
