"""What a node of a Raft group answers: the outcome of a request, or the response that says why there is none.

Certainly nothing was changed by a node that is not the leader, or that has too many requests to decide. A request that
is not seen applied in time, or whose leader was deposed, may have taken effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from system_under_test.raft.driver import LeadershipLost, NotLeader
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import Host

A = TypeVar("A")
T = TypeVar("T")


class Busy(Exception):
    """Too many requests wait to be decided."""


class Answers:
    """`not_leader` turns a client away, to the leader if it is known; `timeout_s` is for how long a client is kept."""

    def __init__(
        self, host: Host, timeout_s: Callable[[], float], not_leader: Callable[[str | None], RemotingCommand]
    ) -> None:
        self._host = host
        self._timeout_s = timeout_s
        self.not_leader = not_leader
        self._asked_before = 0
        """How many requests were taken up."""
        self.applied = 0
        """Index of the entry that was applied last."""

    async def wait(self, ask: Callable[[A], Awaitable[T]], argument: A) -> T | RemotingCommand:
        serial = self.take_up()
        try:
            awaitable = ask(argument)
        except NotLeader as error:
            return self.not_leader(error.leader)
        except Busy:
            return RemotingCommand.response(ResponseCode.SYSTEM_BUSY, remark="too many requests")
        return await self.within_time(awaitable, serial)

    def take_up(self) -> int:
        self._asked_before += 1
        self._host.reached("request-taken-up", serial=self._asked_before)
        return self._asked_before

    async def within_time(self, awaitable: Awaitable[T], serial: int) -> T | RemotingCommand:
        """Of the request with this number."""
        timeout_s = self._timeout_s()
        try:
            answer = await self._host.clock.within(timeout_s, awaitable)
        except NotLeader as error:
            return self.not_leader(error.leader)
        except LeadershipLost:
            return outcome_unknown("the leadership ended while the request was under way")
        except TimeoutError:
            return outcome_unknown(f"not done within {timeout_s} s")
        self._host.reached("request-decided", serial=serial, applied=self.applied)
        return answer


def not_leader(node: str, leader: str | None, address: str | None, remark: str) -> RemotingCommand:
    """Turns a client of `node` away, to the leader if it is another one and its address is known."""
    fields = {}
    if leader is not None and address is not None and leader != node:
        fields = {"controllerLeaderId": leader, "controllerLeaderAddress": address}
    return RemotingCommand.response(ResponseCode.CONTROLLER_NOT_LEADER, fields, remark=remark)


def outcome_unknown(remark: str) -> RemotingCommand:
    return RemotingCommand.response(ResponseCode.CONTROLLER_APPLY_TIMEOUT, remark=remark)
