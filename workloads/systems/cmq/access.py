"""Asks nodes of CMQ: the leader of a queue's group, as far as the client knows who that is.

One call sends at most one request that can take effect. A node that cannot be reached, or that says it does not lead,
has certainly not appended it, so the same call goes on to the next one; after anything else it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from harness.errors import CLIENT_TIMEOUT, CONNECT_FAILED, CONNECTION_LOST, OUTCOME_UNKNOWN, OperationError
from system_under_test.cmq import wire
from system_under_test.cmq.routing import group_of
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed
from workloads.systems.cmq.errors import NOT_LEADER, error_of
from workloads.systems.cmq.nodes import address

CONNECT_TIMEOUT_S = 1.0
AVOID_HOME_CALLS = 8
"""A home node that did not answer in time is not asked first for so many calls."""
STATUS_PATIENCE_S = 1.0
Status = dict[str, Any]
"""What a node says of one group: `group`, `term`, `leads`, `leader`, `members`, `learners`, `membershipIndex`."""
T = TypeVar("T")


class GroupsClient:
    def __init__(self, host: Any, nodes: Sequence[str], groups: int, home: str | None = None) -> None:
        """`home`: the node that every call asks first, leader or not, so that many clients see all nodes, also one that
        was cut off and does not know that it is deposed. Without it the last leader is asked first."""
        self._clock = host.clock
        self._nodes = tuple(nodes)
        self._groups = groups
        self._home = home
        self._avoid_home_calls = 0
        self._leaders: dict[int, str] = {}
        self._remoting = RemotingClient(host, connect_timeout_s=CONNECT_TIMEOUT_S)

    def close(self) -> None:
        self._remoting.close()

    async def ask(
        self, queue: str, command: RemotingCommand, decode: Callable[[bytes], T], patience_s: float
    ) -> tuple[str, T]:
        """Who answered, and what. Raises OperationError."""
        node, answer = await self.ask_group(group_of(queue, self._groups), command, patience_s)
        return node, _decoded(answer, decode, node)

    async def ask_group(self, group: int, command: RemotingCommand, patience_s: float) -> tuple[str, RemotingCommand]:
        """Its leader, which answered with success, and the answer. Raises OperationError."""
        deadline_ns = self._clock.monotonic_ns() + int(patience_s * 1e9)
        untried = list(self._nodes)
        node = self._first(group)
        while True:
            untried.remove(node)
            left_s = (deadline_ns - self._clock.monotonic_ns()) / 1e9
            try:
                answer = await self._ask(node, command, left_s)
            except OperationError as error:
                if error.error is not CONNECT_FAILED:
                    self._was_silent(group, node)
                    raise
                failure, hint = error, None
            else:
                if answer.code == wire.Code.SUCCESS:
                    self._leaders[group] = node
                    return node, answer
                failure, hint = _refusal(answer, node), answer.ext_fields.get("leader")
                if failure.error is not NOT_LEADER:
                    raise failure
            if not untried or self._clock.monotonic_ns() >= deadline_ns:
                raise failure
            wanted = (hint, self._leaders.get(group))
            node = next((name for name in wanted if name in untried), None) or untried[0]

    async def ask_node(self, node: str, command: RemotingCommand, patience_s: float) -> RemotingCommand:
        """Its answer, which is a success. Raises OperationError."""
        answer = await self._ask(node, command, patience_s)
        if answer.code != wire.Code.SUCCESS:
            raise _refusal(answer, node)
        return answer

    async def status(self, node: str) -> list[Status]:
        """Raises OperationError."""
        return _decoded(await self.ask_node(node, wire.status(), STATUS_PATIENCE_S), wire.decode_status, node)

    async def statuses(self, nodes: Sequence[str]) -> dict[str, list[Status]]:
        """Of those of the nodes that answer."""
        statuses = {}
        for node in nodes:
            with suppress(OperationError):
                statuses[node] = await self.status(node)
        return statuses

    async def _ask(self, node: str, command: RemotingCommand, patience_s: float) -> RemotingCommand:
        try:
            return await self._remoting.invoke(address(node), command, patience_s)
        except ConnectFailed as error:
            raise OperationError(CONNECT_FAILED, str(error), node=node) from error
        except ConnectionClosed as error:
            raise OperationError(CONNECTION_LOST, str(error), node=node) from error
        except TimeoutError as error:
            raise OperationError(CLIENT_TIMEOUT, str(error), node=node) from error

    def _first(self, group: int) -> str:
        leader = self._leaders.get(group, self._home or self._nodes[0])
        if self._home is None:
            return leader
        if self._avoid_home_calls == 0:
            return self._home
        self._avoid_home_calls -= 1
        return leader

    def _was_silent(self, group: int, node: str) -> None:
        """It may be cut off or paused: begin elsewhere for a while."""
        if node == self._home:
            self._avoid_home_calls = AVOID_HOME_CALLS
        self._leaders[group] = self._nodes[(self._nodes.index(node) + 1) % len(self._nodes)]


def leaders_of(statuses: Mapping[str, Sequence[Status]]) -> dict[int, str]:
    """Group -> who says that it leads it, of several the one of the newest term."""
    found = sorted(
        (group["term"], group["group"], node) for node, groups in statuses.items() for group in groups if group["leads"]
    )
    return {number: node for _, number, node in found}


def all_follow(statuses: Mapping[str, Sequence[Status]], nodes: Sequence[str], groups: int) -> bool:
    """Whether each of these nodes has answered, and takes for the leader of each group who leads it."""
    leaders = leaders_of(statuses)
    return (
        len(leaders) == groups
        and statuses.keys() >= set(nodes)
        and all(group["leader"] == leaders[group["group"]] for node in nodes for group in statuses[node])
    )


def _decoded(answer: RemotingCommand, decode: Callable[[bytes], T], node: str) -> T:
    try:
        return decode(answer.body)
    except wire.MalformedAnswer as error:
        raise OperationError(OUTCOME_UNKNOWN, str(error), node=node) from error


def _refusal(answer: RemotingCommand, node: str) -> OperationError:
    return OperationError(error_of(answer.code), answer.remark or f"code {answer.code}", node=node)
