"""A client of the controllers' key-value store.

One call sends at most one request that can take effect. `not-leader` is definite, for the request was not
appended; a lost connection, a time-out or a leader that lost its leadership meanwhile is not. Whom to ask
next is learnt from answers: a hint at the leader is followed, silence moves on to the next controller.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import RequestCode, ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.client.errors import ClientError
from system_under_test.rocketmq.controller import key_value
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host

_DEFINITE = {
    ResponseCode.CONTROLLER_NOT_LEADER: "not-leader",
    ResponseCode.KEY_VALUE_PRECONDITION_FAILED: "precondition-failed",
    ResponseCode.SYSTEM_BUSY: "service-not-available",
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: "service-not-available",
    ResponseCode.CONTROLLER_INVALID_REQUEST: "message-illegal",
}


class KeyValueClient:
    def __init__(
        self, host: Host, controllers: Sequence[str], timeout_s: float = 3.0, prefer: str | None = None
    ) -> None:
        """`prefer`: ask this controller whenever it does not name another, even where it was cut off and an
        answer from elsewhere is known; so that clients spread over all controllers, deposed ones included."""
        if not controllers:
            raise ValueError("at least one controller address is needed")
        if prefer is not None and prefer not in controllers:
            raise ValueError(f"{prefer} is none of the controllers {', '.join(controllers)}")
        self._controllers = tuple(controllers)
        self._timeout_s = timeout_s
        self._home = prefer
        self._target = prefer or controllers[0]
        self._remoting = RemotingClient(host)

    @property
    def target(self) -> str:
        """The controller the next call asks."""
        return self._target

    def close(self) -> None:
        self._remoting.close()

    async def get(self, key: str) -> Any:
        """The value, None if there is none."""
        return await self._ask(RemotingCommand.request(RequestCode.KEY_VALUE_GET, {"key": key}))

    async def put(self, key: str, value: Any) -> None:
        await self._ask(RemotingCommand.request(RequestCode.KEY_VALUE_PUT, body=key_value.put(key, value)))

    async def compare_and_set(self, key: str, expected: Any, value: Any) -> None:
        """`expected` None: not there. Raises ClientError `precondition-failed` where another value was found."""
        body = key_value.compare_and_set(key, expected, value)
        await self._ask(RemotingCommand.request(RequestCode.KEY_VALUE_COMPARE_AND_SET, body=body))

    async def transaction(self, operations: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Operations ["r", key, None] and ["append", key, element], atomically and in this order; they come
        back with each read's list in the place of None (or None where nothing was appended yet)."""
        body = key_value.transaction([list(operation) for operation in operations])
        answer = await self._ask(RemotingCommand.request(RequestCode.KEY_VALUE_TRANSACTION, body=body))
        return [list(operation) for operation in answer]

    async def _ask(self, command: RemotingCommand) -> Any:
        node = self._target
        try:
            answer = await self._remoting.invoke(node, command, self._timeout_s)
        except ConnectFailed as error:
            self._move_on(node)
            raise ClientError("connect-failed", True, str(error), node) from error
        except ConnectionClosed as error:
            self._move_on(node)
            raise ClientError("connection-lost", False, str(error), node) from error
        except TimeoutError as error:
            self._move_on(node)
            raise ClientError("client-timeout", False, str(error), node) from error
        if answer.code == ResponseCode.SUCCESS:
            return json.loads(answer.body)
        raise self._failure(answer, node)

    def _failure(self, answer: RemotingCommand, node: str) -> ClientError:
        code = _DEFINITE.get(ResponseCode(answer.code)) if answer.code in ResponseCode.__members__.values() else None
        if code == "not-leader":
            self._follow(answer.ext_fields, node)
        elif code is None:
            self._move_on(node)
        return ClientError(code or "outcome-unknown", code is not None, f"{answer.code}: {answer.remark}", node)

    def _follow(self, fields: Mapping[str, str], node: str) -> None:
        hint = fields.get("controllerLeaderAddress")
        if hint in self._controllers and hint is not None:
            self._target = hint
        else:
            self._move_on(node)

    def _move_on(self, node: str) -> None:
        """Away from a controller that is of no use now; back home first, then the next in line."""
        if self._home is not None and node != self._home:
            self._target = self._home
        else:
            self._target = self._controllers[(self._controllers.index(node) + 1) % len(self._controllers)]
