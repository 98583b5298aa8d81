"""Bookies as processes on simulated hosts, asked by remoting, with a metadata store that all of them share."""

from __future__ import annotations

import asyncio

import pytest

from harness.environments.impairment import FullDisk
from system_under_test.bookkeeper.bookie.client import BookieSilent
from system_under_test.bookkeeper.bookie.message import Code, ReadLacRequest, ReadRequest
from system_under_test.bookkeeper.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    LedgerState,
    Quorums,
    encode_metadata,
    key_of,
)
from system_under_test.remoting.client import RemotingClient
from system_under_test.remoting.codes import ResponseCode
from system_under_test.remoting.command import RemotingCommand
from tests.unit.system_under_test.bookkeeper.bookie_stage import ADDRESS, Stage, play


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
            described = LedgerMetadata(
                ledger=ledger,
                quorums=Quorums(ensemble=1, write=1, ack=1),
                fragments=(Fragment(0, tuple(ensemble), 0),),
                state=LedgerState(state),
            )
            await stage.metadata.create(key_of(ledger), encode_metadata(described))
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
