"""Bookies as processes on simulated hosts, asked by remoting, with a metadata store that all of them share."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.environments.impairment import FullDisk
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.bookkeeper.bookie.client import BookieClient, BookieSilent
from system_under_test.bookkeeper.bookie.identity import Registered
from system_under_test.bookkeeper.bookie.message import AddRequest, Code, ReadLacRequest, ReadRequest
from system_under_test.bookkeeper.bookie.service import serve
from system_under_test.bookkeeper.entry import NOTHING, Digest, Entry, encode_entry
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import Host
from tests.unit.system_under_test.bookkeeper.metadata_in_memory import MetadataInMemory

PORT = 3181
ADDRESS = f"b1:{PORT}"
SHARED: list[MetadataInMemory] = []
"""The metadata store of the play that is on."""


async def main(host: Host, config: Mapping[str, Any]) -> None:
    await serve(host, config, SHARED[-1])


class Stage:
    def __init__(self, environment: SimulatedEnvironment) -> None:
        self.environment = environment
        self.metadata = SHARED[-1]
        self.host = environment.client_host("client")
        self.client = BookieClient(self.host)

    async def until(self, condition: Callable[[], bool]) -> None:
        for _ in range(600):
            if condition():
                return
            await self.environment.timeline.sleep(0.1)
        raise AssertionError("it does not come to this")

    async def identity(self) -> str:
        """Of the one that is at the address now, once it is up."""
        await self.until(lambda: bool(self.metadata.values("/available/")))
        registered = {key: Registered.decode(value) for key, value in self.metadata.values("/bookies/").items()}
        [found] = [key[9:] for key, each in registered.items() if each.replaced_by is None]
        return found

    async def add(self, bookie: str, entry: int, *, is_recovery: bool = False) -> Code:
        data = encode_entry(Entry(1, entry, NOTHING, 1, b"x"), Digest())
        request = AddRequest(bookie=bookie, data=data, is_recovery=is_recovery)
        return (await self.client.ask(ADDRESS, request, 5.0)).code

    async def read(self, bookie: str, entry: int, *, fences: bool = False) -> Code:
        request = ReadRequest(bookie=bookie, ledger=1, entry=entry, fences=fences)
        return (await self.client.ask(ADDRESS, request, 5.0)).code

    async def again(self, act: str) -> None:
        """The process ends this way, and another one starts."""
        await getattr(self.environment, act)(["b1"])
        self.metadata.lose_session()
        if act != "upgrade":
            await self.environment.boot(["b1"])
        await self.environment.timeline.sleep(5)
        self.client.close()
        self.client = BookieClient(self.host)


def play(story: Callable[[Stage], Coroutine[Any, Any, None]], *, seed: int = 1, **settings: object) -> Trace:
    trace = Trace()
    SHARED.append(MetadataInMemory())
    program = PythonProgram(main=f"{__name__}:main", config=settings)

    async def whole(environment: SimulatedEnvironment) -> None:
        node = NodeSpec(name="b1", groups=("bookies",), program=program, ports=(PORT,))
        await environment.start([node], Path(directory))
        await story(Stage(environment))
        await environment.stop()

    with tempfile.TemporaryDirectory() as directory:
        run_simulation(whole, Seed(seed), trace, regime=dataclasses.replace(Regime.calm(), fsync_ms=1.0))
    return trace


@pytest.mark.parametrize("act", ["kill", "power_off"])
def test_a_bookie_serves_what_it_acknowledged_and_its_fences_after_it_died(act: str) -> None:
    async def story(stage: Stage) -> None:
        me = await stage.identity()
        assert await stage.add(me, 0) is Code.OK
        assert await stage.read(me, 1, fences=True) is Code.NO_SUCH_ENTRY
        await stage.again(act)
        assert await stage.identity() == me
        assert await stage.read(me, 0) is Code.OK
        assert await stage.add(me, 1) is Code.FENCED
        assert await stage.add(me, 1, is_recovery=True) is Code.OK

    play(story)


def test_a_wiped_one_is_another_one_and_says_so() -> None:
    async def story(stage: Stage) -> None:
        first = await stage.identity()
        assert await stage.add(first, 0) is Code.OK
        await stage.environment.power_off(["b1"])
        stage.environment.disk_of("b1").put_back({})
        await stage.again("power_off")
        second = await stage.identity()
        assert second != first
        assert await stage.read(first, 0, fences=True) is Code.WRONG_BOOKIE
        assert await stage.add(first, 1) is Code.WRONG_BOOKIE
        assert await stage.read(second, 0) is Code.NO_SUCH_LEDGER
        assert await stage.read("0" * 16, 0) is Code.UNKNOWN

    play(story)


def test_a_lost_session_is_followed_by_another_registration() -> None:
    async def story(stage: Stage) -> None:
        me = await stage.identity()
        assert stage.metadata.values("/available/") == {f"/available/{me}": "writable"}
        stage.metadata.lose_session()
        assert stage.metadata.values("/available/") == {}
        await stage.until(lambda: stage.metadata.values("/available/") == {f"/available/{me}": "writable"})
        stage.metadata.loses_answers = 1
        stage.metadata.lose_session()
        await stage.until(lambda: stage.metadata.values("/available/") == {f"/available/{me}": "writable"})

    play(story)


def test_a_full_disk_is_registered_before_it_is_answered_and_its_end_as_well() -> None:
    async def story(stage: Stage) -> None:
        me = await stage.identity()
        assert await stage.add(me, 0) is Code.OK
        full = FullDisk(room_bytes=10)
        await stage.environment.impair(["b1"], full)
        stage.metadata.is_away = True
        add = asyncio.ensure_future(stage.add(me, 1))
        await stage.environment.timeline.sleep(2)
        assert not add.done()
        stage.metadata.is_away = False
        assert await add is Code.READ_ONLY
        assert stage.metadata.values("/available/") == {f"/available/{me}": "read-only"}
        assert await stage.read(me, 0) is Code.OK
        await stage.environment.relieve(["b1"], full)
        await stage.until(lambda: stage.metadata.values("/available/") == {f"/available/{me}": "writable"})
        assert await stage.add(me, 1) is Code.OK

    play(story, diskCheckInterval=1_000)


def test_unclosed_ledgers_are_in_limbo_after_a_loss_of_power_without_a_synced_journal() -> None:
    async def story(stage: Stage) -> None:
        me = await stage.identity()
        for ledger, state, ensemble in (
            (1, "open", [me]),
            (2, "closed", [me]),
            (3, "open", ["f" * 16]),
            (4, "in-recovery", ["f" * 16]),
        ):
            value = json.dumps({"state": state, "fragments": [{"first": 0, "ensemble": ensemble}]})
            await stage.metadata.create(f"/ledgers/{ledger:010d}", value)
        assert await stage.add(me, 0) is Code.OK
        await stage.again("power_off")
        for ledger, code in ((1, Code.UNKNOWN), (2, Code.NO_SUCH_LEDGER), (3, Code.NO_SUCH_LEDGER), (4, Code.UNKNOWN)):
            request = ReadRequest(bookie=me, ledger=ledger, entry=9)
            assert (await stage.client.ask(ADDRESS, request, 5.0)).code is code
        assert await stage.add(me, 1) is Code.FENCED

    play(story, journalSyncData=False)


def test_what_is_no_request_is_answered_as_such_and_a_bookie_that_is_down_is_silent() -> None:
    async def story(stage: Stage) -> None:
        me = await stage.identity()
        remoting = RemotingClient(stage.host)
        for command in (RemotingCommand.request(60_001), RemotingCommand.request(10), RemotingCommand.request(60_003)):
            answer = await remoting.invoke(ADDRESS, command, 5.0)
            assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        await stage.environment.kill(["b1"])
        with pytest.raises(BookieSilent):
            await stage.client.ask(ADDRESS, ReadLacRequest(bookie=me, ledger=1), 1.0)
        with pytest.raises(BookieSilent) as caught:
            await stage.client.ask("nobody:1", ReadLacRequest(bookie=me, ledger=1), 1.0)
        assert not caught.value.was_sent

    play(story)


def test_a_clean_stop_leaves_nothing_in_doubt() -> None:
    async def story(stage: Stage) -> None:
        me = await stage.identity()
        await stage.metadata.create("/ledgers/0000000001", '{"state":"in-recovery","fragments":[]}')
        assert await stage.add(me, 0) is Code.OK
        await stage.again("upgrade")
        assert await stage.read(me, 0) is Code.OK
        assert await stage.read(me, 1) is Code.NO_SUCH_ENTRY

    play(story, journalSyncData=False)


def test_the_same_seed_gives_the_same_trace() -> None:
    async def story(stage: Stage) -> None:
        me = await stage.identity()
        for entry in range(30):
            assert await stage.add(me, entry) is Code.OK
        await stage.again("power_off")
        assert await stage.read(me, 29) is Code.OK

    first, second = play(story, seed=5), play(story, seed=5)
    assert first.digest() == second.digest()
