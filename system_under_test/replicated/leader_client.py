"""A client of a Raft group, of which the leader alone answers.

One call sends at most one request that can take effect: a node that cannot be connected, or that
says it is not the leader, has certainly not appended it, so the same call goes on to the next; after
anything else it ends. A lost connection, a time-out, a leader that lost its leadership meanwhile leave
the outcome unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host

_DEFINITE: dict[int, str] = {
    ResponseCode.CONTROLLER_NOT_LEADER: "not-leader",
    ResponseCode.KEY_VALUE_PRECONDITION_FAILED: "precondition-failed",
    ResponseCode.SYSTEM_BUSY: "service-not-available",
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: "service-not-available",
    ResponseCode.CONTROLLER_INVALID_REQUEST: "message-illegal",
}


AVOID_HOME_CALLS = 8
"""A node that did not answer in time is not asked first for so many calls."""


class LeaderClient:
    def __init__(self, host: Host, nodes: Sequence[str], timeout_s: float = 3.0, prefer: str | None = None) -> None:
        """`prefer`: the node that every call asks first, leader or not, so that many clients see all
        nodes, also one that was cut off and does not know that it is deposed. Without it the last
        known leader is asked first."""
        if not nodes:
            raise ValueError("at least one address is needed")
        if prefer is not None and prefer not in nodes:
            raise ValueError(f"{prefer} is none of {', '.join(nodes)}")
        self._clock = host.clock
        self._nodes = tuple(nodes)
        self._timeout_s = timeout_s
        self._home = prefer
        self._avoid_home_calls = 0
        self._leader = prefer or self._nodes[0]
        self._remoting = RemotingClient(host, connect_timeout_s=min(timeout_s, 1.0))

    def close(self) -> None:
        self._remoting.close()

    async def ask(self, command: RemotingCommand, timeout_s: float | None = None) -> RemotingCommand:
        """Its answer, which is a success; `timeout_s`: where it may take longer than others. Raises ClientError."""
        deadline_ns = self._clock.monotonic_ns() + int((timeout_s or self._timeout_s) * 1e9)
        untried = list(self._nodes)
        node = self._first()
        while True:
            untried.remove(node)
            left_s = (deadline_ns - self._clock.monotonic_ns()) / 1e9
            try:
                answer = await self._remoting.invoke(node, command, left_s)
            except ConnectFailed as error:
                failure, hint = ClientError("connect-failed", True, str(error), node), None
                failure.__cause__ = error
            except (ConnectionClosed, TimeoutError) as error:
                self._was_silent(node)
                code = "client-timeout" if isinstance(error, TimeoutError) else "connection-lost"
                raise ClientError(code, False, str(error), node) from error
            else:
                if answer.code == ResponseCode.SUCCESS:
                    self._leader = node
                    return answer
                failure, hint = _failure(answer, node), answer.ext_fields.get("controllerLeaderAddress")
                if failure.code != "not-leader":
                    raise failure
            if not untried or self._clock.monotonic_ns() >= deadline_ns:
                raise failure
            node = next((wanted for wanted in (hint, self._leader) if wanted in untried), None) or untried[0]

    def _first(self) -> str:
        if self._home is None:
            return self._leader
        if self._avoid_home_calls == 0:
            return self._home
        self._avoid_home_calls -= 1
        return self._leader

    def _was_silent(self, node: str) -> None:
        """It may be cut off or paused: begin elsewhere for a while."""
        if node == self._home:
            self._avoid_home_calls = AVOID_HOME_CALLS
        if node == self._leader:
            self._leader = self._nodes[(self._nodes.index(node) + 1) % len(self._nodes)]


def _failure(answer: RemotingCommand, node: str) -> ClientError:
    code = _DEFINITE.get(answer.code)
    return ClientError(code or "outcome-unknown", code is not None, f"{answer.code}: {answer.remark}", node)
