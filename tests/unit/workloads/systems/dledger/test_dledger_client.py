"""What DLedger's client makes of answers: offsets, ends, and errors that say whether anything may have happened."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment
from harness.errors import OUTCOME_UNKNOWN, OperationError
from harness.generator import invoke
from harness.operation import Operation
from harness.program import PythonProgram
from harness.system import NodeSpec
from system_under_test.dledger.message import Code
from tests.unit.workloads.systems.dledger.members_on_hosts import play
from workloads.systems.dledger.adapter import PATIENCE_S, SYSTEM
from workloads.systems.dledger.client import UNREACHED, LogClient, MemberClient
from workloads.systems.dledger.errors import REFUSALS, error_of
from workloads.systems.dledger.nodes import members
from workloads.systems.dledger.settings import DledgerSettings

SETTINGS = DledgerSettings()
NAMES = SETTINGS.names
Body = Callable[["Asking"], Coroutine[Any, Any, None]]


class Asking:
    """A client of each member's number."""

    def __init__(self, environment: SimulatedEnvironment) -> None:
        self.environment = environment
        self.host = environment.client_host("client")
        self.clients = [LogClient(self.host, NAMES, process, PATIENCE_S) for process in range(len(NAMES))]

    async def ready(self) -> str:
        """The leader."""
        await SYSTEM.ready(SETTINGS, self.host, "log")
        (leader,) = (await SYSTEM.roles(SETTINGS, self.host))["leader"]
        return leader

    async def send(self, message: int, process: int = 0) -> Operation:
        return await self.clients[process].invoke(invoke("send", {"message": message}))

    async def poll(self, process: int) -> tuple[list[tuple[int, int]], int]:
        """(offset, message) of each that came, and from where the next poll asks."""
        done = await self.clients[process].invoke(invoke("poll", {}))
        assert done.value is not None and done.node == NAMES[process]
        return [(one["offset"], one["message"]) for one in done.value["messages"]], done.value["offset"]

    async def last_read(self, f: str, node: str, offset: int) -> Operation:
        value = {"message": None, "offset": offset, "messages": None}
        return await self.clients[0].invoke(invoke(f, value)._replace(node=node))

    async def error(self, asked: Coroutine[Any, Any, Any]) -> OperationError:
        with pytest.raises(OperationError) as raised:
            await asked
        return raised.value

    async def sleep(self, seconds: float) -> None:
        await self.environment.timeline.sleep(seconds)


def asking(body: Body, nodes: Sequence[NodeSpec] | None = None) -> None:
    async def story(environment: SimulatedEnvironment) -> None:
        await body(Asking(environment))

    play(members(SETTINGS, None) if nodes is None else nodes, story)


def test_a_send_gets_its_index_and_every_member_shows_it() -> None:
    async def body(group: Asking) -> None:
        await group.ready()
        sent = [await group.send(number, process=number % 3) for number in range(5)]
        offsets = [one.value["offset"] for one in sent if one.value is not None]
        assert offsets == list(range(offsets[0], offsets[0] + 5))
        await group.sleep(2)
        for process in range(3):
            found, following = await group.poll(process)
            assert found == list(zip(offsets, range(5), strict=True))
            assert following == offsets[-1] + 1
            assert await group.poll(process) == ([], following)

    asking(body)


def test_the_end_is_the_end_of_a_member_and_of_the_leader() -> None:
    async def body(group: Asking) -> None:
        leader = await group.ready()
        value = (await group.send(7)).value
        assert value is not None
        await group.sleep(2)
        for node in NAMES:
            read = await group.last_read("final-poll", node, 0)
            assert read.node == node and read.value is not None
            end = read.value["offset"]
            assert end == value["offset"] + 1
            assert (await group.last_read("caught-up", node, end)).type == "ok"
            assert (await group.error(group.last_read("caught-up", node, value["offset"]))).error.definite
        follower = next(name for name in NAMES if name != leader)
        await group.environment.pause([follower])
        await group.send(8)
        await group.environment.kill([follower])
        await group.environment.boot([follower])
        assert (await group.error(group.last_read("caught-up", follower, end))).error.code == "precondition-failed"

    asking(body)


def test_a_poll_that_its_member_does_not_answer_is_the_last_one_there() -> None:
    async def body(group: Asking) -> None:
        await group.ready()
        await group.send(7)
        await group.environment.kill([NAMES[0]])
        assert (await group.error(group.clients[0].invoke(invoke("poll", {})))).error in UNREACHED
        done = await group.clients[0].invoke(invoke("poll", {}))
        assert done.node == NAMES[1]

    asking(body)


def test_a_send_goes_to_the_new_leader_where_the_old_one_is_not_there_any_more() -> None:
    async def body(group: Asking) -> None:
        old = await group.ready()
        await group.send(7)
        await group.environment.kill([old])
        await group.error(group.send(8))  # the connection that was there breaks
        group.clients[0]._leader = old
        new = old
        while new == old:
            await group.sleep(1)
            new = (await SYSTEM.roles(SETTINGS, group.host)).get("leader", (old,))[0]
        assert (await group.send(9)).node == new

    asking(body)


def test_members_agree_once_all_that_answer_follow_the_same_leader() -> None:
    async def body(group: Asking) -> None:
        asked = MemberClient(group.host, PATIENCE_S)
        leader = await group.ready()
        await group.sleep(2)
        assert await asked.agreed(NAMES)
        others = [name for name in NAMES if name != leader]
        await group.environment.kill([others[0]])
        assert await asked.agreed(NAMES)
        await group.environment.kill([leader])
        await group.sleep(5)
        assert not await asked.agreed(NAMES)

    asking(body)


def test_nobody_is_caught_up_where_nobody_leads() -> None:
    async def body(group: Asking) -> None:
        leader = await group.ready()
        await group.environment.kill([name for name in NAMES if name != leader])
        await group.sleep(5)
        error = await group.error(group.last_read("caught-up", leader, 0))
        assert error.error.code == "not-leader"
        assert await SYSTEM.roles(replace(SETTINGS, preferred=2), group.host) == {"preferred": ("n2",)}

    asking(body)


def test_a_send_that_nobody_answers_may_have_happened_and_one_that_nobody_takes_has_not() -> None:
    async def body(group: Asking) -> None:
        await group.ready()
        await group.environment.pause(list(NAMES))
        unanswered = (await group.error(group.send(1))).error
        assert not unanswered.definite
        await group.environment.kill(list(NAMES))
        await group.sleep(1)
        await group.error(group.send(2))  # the connection that was there breaks
        refused = (await group.error(group.send(2))).error
        assert refused.definite and refused.code == "connect-failed"

    asking(body)


DEFINITE = {
    "INDEX_OUT_OF_RANGE",
    "NOT_LEADER",
    "DISK_FULL",
    "LEADER_PENDING_FULL",
    "LEADER_TRANSFERRING",
    "UNKNOWN_GROUP",
    "UNKNOWN_MEMBER",
    "REQUEST_WITH_EMPTY_BODYS",
    "UNEXPECTED_ARGUMENT",
}


@pytest.mark.parametrize("code", Code, ids=lambda code: code.name)
def test_only_what_is_refused_before_it_is_written_certainly_did_not_happen(code: Code) -> None:
    assert error_of(code).definite is (code.name in DEFINITE)
    assert (error_of(code) is OUTCOME_UNKNOWN) is (code not in REFUSALS)


def answering_with(code: Code, leader: str | None) -> list[NodeSpec]:
    config = {"code": int(code), "leader": leader}
    main = "tests.unit.workloads.systems.dledger.members_on_hosts:answering"
    return [NodeSpec(name=name, groups=(), program=PythonProgram(main=main, config=config)) for name in NAMES]


@pytest.mark.parametrize("code", [Code.TERM_CHANGED, Code.WAIT_QUORUM_ACK_TIMEOUT, Code.DISK_FULL, Code.DISK_ERROR])
def test_a_refusal_is_raised_with_who_refused_and_whom_it_takes_for_the_leader(code: Code) -> None:
    async def body(group: Asking) -> None:
        error = await group.error(group.send(1))
        assert error.error == error_of(code) and error.node == "n1"
        assert code.name in str(error) and "it takes n2 for the leader" in str(error)

    asking(body, answering_with(code, "n2"))


def test_who_is_sent_on_and_on_is_told_that_nobody_takes_it() -> None:
    async def body(group: Asking) -> None:
        error = await group.error(group.send(1))
        assert error.error.code == "not-leader" and error.error.definite

    asking(body, answering_with(Code.NOT_LEADER, "n2"))


def test_a_leader_is_who_says_it_of_itself() -> None:
    async def body(group: Asking) -> None:
        client = MemberClient(group.host, PATIENCE_S)
        assert await client.leader(NAMES) == "n2"
        assert await client.leader(("n1", "n3")) is None

    asking(body, answering_with(Code.SUCCESS, "n2"))
