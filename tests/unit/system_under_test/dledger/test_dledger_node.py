"""A group of DLedger's node programs on simulated hosts, asked by remoting as its public client asks."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.environments.environment import Link
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.dledger.client_message import (
    AppendAnswer,
    AppendRequest,
    ClientRequest,
    EntriesAnswer,
    GetRequest,
    MetadataAnswer,
    MetadataRequest,
    PullRequest,
)
from system_under_test.dledger.config import MemberConfig
from system_under_test.dledger.message import Code, TransferRequest
from system_under_test.dledger.wire import Addressed, decode_answer, encode_request
from system_under_test.node.settings import read_config
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed

NAMES = ("n0", "n1", "n2")
PORT = 20911
PEERS = ";".join(f"{name}-{name}:{PORT}" for name in NAMES)


class Group:
    def __init__(self, environment: SimulatedEnvironment) -> None:
        self.environment = environment
        self._remoting = RemotingClient(environment.client_host("client"))

    async def ask(self, node: str, request: ClientRequest | TransferRequest) -> Any:
        """The answer, or None if there is none; a connection to a process that has ended is not noticed at once."""
        return await self._ask(node, request) or await self._ask(node, request)

    async def _ask(self, node: str, request: ClientRequest | TransferRequest) -> Any:
        code, body = encode_request(Addressed(group="default", to=node, request=request))
        try:
            answer = await self._remoting.invoke(f"{node}:{PORT}", RemotingCommand.request(code, body=body), 5.0)
        except (ConnectFailed, ConnectionClosed, TimeoutError):
            return None
        return decode_answer(request, answer.body)

    async def sleep(self, seconds: float) -> None:
        await self.environment.timeline.sleep(seconds)

    async def leader(self, but: str = "") -> str:
        """That another one than this says it is, once it is so."""
        for _ in range(600):
            for name in NAMES:
                answer = await self.ask(name, MetadataRequest()) if name != but else None
                if isinstance(answer, MetadataAnswer) and answer.leader == name:
                    return name
            await self.sleep(0.1)
        raise AssertionError("nobody leads")

    async def append(self, leader: str, *bodies: bytes) -> AppendAnswer:
        answer = await self.ask(leader, AppendRequest(bodies))
        assert isinstance(answer, AppendAnswer)
        return answer

    async def pulled(self, node: str) -> list[bytes]:
        """All that the member shows."""
        found: list[bytes] = []
        begin = 0
        while True:
            answer = await self.ask(node, PullRequest("client", begin))
            assert isinstance(answer, EntriesAnswer) and answer.code is Code.SUCCESS
            if not answer.entries:
                return found
            found += [entry.body for entry in answer.entries]
            begin = answer.entries[-1].index + 1

    async def isolate(self, node: str) -> None:
        """From the other members; clients still reach it."""
        others = [name for name in NAMES if name != node]
        await self.environment.cut(
            [Link(one, other) for other in others for one, other in ((node, other), (other, node))]
        )


def play(story: Callable[[Group], Coroutine[Any, Any, None]], **settings: object) -> Trace:
    """Of a group of three on a quiet network."""
    trace = Trace()

    def spec(name: str) -> NodeSpec:
        config = {"selfId": name, "peers": PEERS, "mappedFileSizeForEntryData": 4_096, **settings}
        program = PythonProgram(main="system_under_test.dledger.node:member", config=config)
        return NodeSpec(name=name, groups=("members",), program=program, ports=(PORT,))

    async def whole(environment: SimulatedEnvironment) -> None:
        await environment.start([spec(name) for name in NAMES], Path(directory))
        await story(Group(environment))
        await environment.stop()

    with tempfile.TemporaryDirectory() as directory:
        run_simulation(whole, Seed(1), trace, regime=dataclasses.replace(Regime.calm(), fsync_ms=1.0))
    return trace


def test_what_is_appended_is_shown_by_all_members() -> None:
    async def story(group: Group) -> None:
        leader = await group.leader()
        bodies = [b"%d" % number for number in range(200)]
        for body in bodies:
            answer = await group.append(leader, body)
            assert answer.code is Code.SUCCESS
        await group.sleep(2)
        for name in NAMES:
            assert await group.pulled(name) == bodies
        answer = await group.ask(leader, GetRequest(begin=10, max_bytes=1))
        assert [entry.index for entry in answer.entries] == [10]
        follower = next(name for name in NAMES if name != leader)
        assert (await group.ask(follower, GetRequest(begin=0))).code is Code.NOT_LEADER
        assert (await group.append(follower, b"x")).code is Code.NOT_LEADER
        assert (await group.append(leader, b"")).code is Code.REQUEST_WITH_EMPTY_BODYS

    play(story)


@pytest.mark.parametrize("settings", [{"ackDurable": True}, {"isEnableBatchPush": True}, {}], ids=str)
def test_a_group_goes_on_without_its_leader_and_takes_it_back(settings: dict[str, object]) -> None:
    async def story(group: Group) -> None:
        first = await group.leader()
        assert (await group.append(first, b"a", b"b", b"c")).code is Code.SUCCESS
        await group.environment.kill([first])
        second = await group.leader(but=first)
        assert (await group.append(second, b"d")).code is Code.SUCCESS
        await group.environment.boot([first])
        await group.sleep(10)
        for name in NAMES:
            assert await group.pulled(name) == [b"a", b"b", b"c", b"d"]

    play(story, **settings)


def test_what_is_acknowledged_durably_outlasts_the_loss_of_all_power() -> None:
    async def story(group: Group) -> None:
        for round_number in range(5):
            leader = await group.leader()
            assert (await group.append(leader, b"%d" % round_number)).code is Code.SUCCESS
            await group.environment.power_off(list(NAMES))
            await group.environment.boot(list(NAMES))
        await group.sleep(10)
        for name in NAMES:
            assert await group.pulled(name) == [b"0", b"1", b"2", b"3", b"4"]

    play(story, ackDurable=True)


def test_a_leader_without_a_majority_acknowledges_nothing_and_its_entries_go() -> None:
    async def story(group: Group) -> None:
        first = await group.leader()
        assert (await group.append(first, b"kept")).code is Code.SUCCESS
        await group.isolate(first)
        assert (await group.append(first, b"gone")).code in (Code.WAIT_QUORUM_ACK_TIMEOUT, Code.TERM_CHANGED)
        assert b"gone" not in await group.pulled(first)
        second = await group.leader(but=first)
        assert (await group.append(second, b"new")).code is Code.SUCCESS
        await group.environment.heal()
        await group.sleep(15)
        for name in NAMES:
            assert await group.pulled(name) == [b"kept", b"new"]

    play(story)


def test_leadership_is_handed_over_when_asked_for_and_to_who_is_preferred() -> None:
    async def story(group: Group) -> None:
        first = await group.leader()
        to = next(name for name in NAMES if name != first)
        assert (await group.append(first, b"a")).code is Code.SUCCESS
        answer = await group.ask(first, TransferRequest(to))
        assert answer.code is Code.SUCCESS
        assert await group.leader() == to
        assert (await group.append(to, b"b")).code is Code.SUCCESS

    async def preferred(group: Group) -> None:
        await group.leader()
        await group.sleep(15)
        assert await group.leader() == "n2"

    play(story)
    play(preferred, preferredLeaderIds="n2")


def test_the_same_seed_gives_the_same_trace() -> None:
    async def story(group: Group) -> None:
        leader = await group.leader()
        await group.append(leader, b"a")
        await group.environment.kill([leader])
        await group.leader(but=leader)

    assert play(story).digest() == play(story).digest()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"selfId": "n9"}, "peers: expected n9, which selfId names, among n0, n1, n2"),
        ({"peers": "n0-a:1;n1-a:1"}, "peers: two members have the address a:1"),
        ({"peers": "n0-a:1;n0-b:1"}, "peers: n0 is there twice"),
        ({"peers": "n0"}, "peers: expected ID-ADDRESS:PORT with semicolons between, got 'n0'"),
        ({"preferredLeaderIds": "n7"}, "preferredLeaderIds: n7 is none of the members n0, n1, n2"),
        ({"minVoteIntervalMs": 2000}, "minVoteIntervalMs: expected at most maxVoteIntervalMs"),
        ({"version": 1, "isEnableBatchPush": True}, "isEnableBatchPush: members of version 1 know no batches"),
        ({"mappedFileSizeForEntryData": 50}, "mappedFileSizeForEntryData: expected at least 57 bytes, got 50"),
        ({"mappedFileSizeForEntryIndex": 50}, "mappedFileSizeForEntryIndex: expected a multiple of 32 bytes, got 50"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, object], says: str) -> None:
    config = read_config(MemberConfig, {"selfId": "n0", "peers": PEERS, **settings})
    with pytest.raises(ValueError, match=says.replace("(", "\\(")):
        _all_of(config)


def _all_of(config: MemberConfig) -> Sequence[object]:
    return config.core(), config.times(), config.sizes()
