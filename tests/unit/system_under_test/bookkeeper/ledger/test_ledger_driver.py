"""Ledgers on bookies that are processes on simulated hosts, written, ended and read by clients on others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from system_under_test.bookkeeper.bookie.message import (
    BookieAnswer,
    BookieRequest,
    Code,
    ReadManyRequest,
    ReadRequest,
)
from system_under_test.bookkeeper.entry import NOTHING
from system_under_test.bookkeeper.ledger.bookies import REPLIES
from system_under_test.bookkeeper.ledger.driver import LedgerClient, OpenLedger
from system_under_test.bookkeeper.ledger.errors import EntryHarmed, LedgerError
from system_under_test.bookkeeper.ledger.event import Reply
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata, LedgerState, Quorums
from system_under_test.bookkeeper.ledger.placement import bookies_of
from system_under_test.bookkeeper.ledger.writer import Bounds
from tests.unit.system_under_test.bookkeeper.bookie_stage import PORT, Stage, play

BOOKIES = ("b1", "b2", "b3", "b4")


class Ledgers:
    """Clients on hosts of their own, all with one metadata store."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.environment = stage.environment
        self.metadata = stage.metadata
        self.identities: dict[str, str] = {}
        self.clients: list[LedgerClient] = []
        self.over: list[int] = []

    async def begin(self) -> None:
        for name in BOOKIES:
            self.identities[name] = await self.stage.identity(f"{name}:{PORT}")

    async def client(self, quorums: str = "3/3/2", *, explicit_lac_s: float = 0.0) -> LedgerClient:
        ensemble, write, ack = (int(number) for number in quorums.split("/"))
        host = self.environment.client_host(f"client{len(self.clients)}")
        sizes = Quorums(ensemble=ensemble, write=write, ack=ack)
        client = LedgerClient(
            host, self.metadata, sizes, bounds=Bounds(most_tries=3), timeout_s=1.0, explicit_lac_s=explicit_lac_s
        )
        await client.start()
        self.clients.append(client)
        return client

    async def create(self, client: LedgerClient) -> OpenLedger:
        return await client.create(lambda: self.over.append(len(self.over)))

    def bookies(self, names: tuple[str, ...]) -> list[str]:
        """By the names of their nodes."""
        by_identity = {identity: name for name, identity in self.identities.items()}
        return [by_identity[each] for each in names]


def on_stage(story: Callable[[Ledgers], Coroutine[Any, Any, None]]) -> None:
    async def whole(stage: Stage) -> None:
        ledgers = Ledgers(stage)
        await ledgers.begin()
        try:
            await story(ledgers)
        finally:
            for client in ledgers.clients:
                await client.stop()

    play(whole, names=BOOKIES)


async def payloads(client: LedgerClient, metadata: LedgerMetadata) -> list[bytes]:
    entries = await client.read_all(metadata, 0, metadata.last_entry)
    assert [entry.entry for entry in entries] == list(range(metadata.last_entry + 1))
    return [entry.payload for entry in entries]


async def append(ledger: OpenLedger, *texts: bytes) -> list[int]:
    return await asyncio.gather(*(ledger.append(text) for text in texts))


def test_what_was_acknowledged_and_closed_is_read_by_others() -> None:
    async def story(ledgers: Ledgers) -> None:
        writer, reader = await ledgers.client("4/3/2"), await ledgers.client()
        ledger = await ledgers.create(writer)
        assert await append(ledger, b"a", b"b", b"c", b"d") == [0, 1, 2, 3]
        assert (ledger.lac, ledger.lap, ledger.is_over) == (3, 3, False)
        assert await ledger.close() == 3
        assert ledger.is_over and ledgers.over == [0]
        found = await reader.metadata(ledger.ledger)
        assert (found.state, found.last_entry, found.length) == (LedgerState.CLOSED, 3, 4)
        assert await payloads(reader, found) == [b"a", b"b", b"c", b"d"]
        with pytest.raises(LedgerError, match="takes no entries any more") as refused:
            await ledger.append(b"e")
        assert refused.value.is_definite

    on_stage(story)


@pytest.mark.parametrize(("explicit_lac_s", "last_seen"), [(0.0, 1), (0.5, 2)])
def test_a_reader_at_the_bookies_sees_the_last_entry_by_an_explicit_lac(explicit_lac_s: float, last_seen: int) -> None:
    async def story(ledgers: Ledgers) -> None:
        writer, reader = await ledgers.client(explicit_lac_s=explicit_lac_s), await ledgers.client()
        ledger = await ledgers.create(writer)
        found = await reader.metadata(ledger.ledger)
        assert await reader.lac(found) == NOTHING
        for number, payload in enumerate((b"a", b"b", b"c")):
            assert await append(ledger, payload) == [number]
            assert await reader.lac(found) == number - 1
        await ledgers.environment.timeline.sleep(1)
        assert await reader.lac(found) == last_seen
        assert [entry.entry for entry in await reader.read_all(found, 0, last_seen)] == list(range(last_seen + 1))
        assert await append(ledger, b"d") == [3], "nobody was fenced"

    on_stage(story)


def test_what_is_acknowledged_is_not_known_where_too_few_bookies_answer() -> None:
    """Without one of three it is: of an entry that two acknowledged one of the others has heard."""

    async def story(ledgers: Ledgers) -> None:
        writer, reader = await ledgers.client(), await ledgers.client()
        ledger = await ledgers.create(writer)
        await append(ledger, b"a")
        await append(ledger, b"b")
        found = await reader.metadata(ledger.ledger)
        one, other, _ = ledgers.bookies(found.last_fragment.ensemble)
        await ledgers.environment.kill([one])
        assert await reader.lac(found) == 0
        await ledgers.environment.kill([other])
        with pytest.raises(LedgerError, match="too few bookies answered what is acknowledged of ledger"):
            await reader.lac(found)

    on_stage(story)


def test_with_too_few_writable_bookies_nothing_is_stored() -> None:
    async def story(ledgers: Ledgers) -> None:
        client = await ledgers.client("5/3/2")
        with pytest.raises(LedgerError, match="4 bookies are writable, and an ensemble has 5") as refused:
            await ledgers.create(client)
        assert refused.value.is_definite and ledgers.metadata.values("/ledgers/") == {}

    on_stage(story)


def test_a_bookie_that_dies_is_replaced_while_entries_go_on() -> None:
    async def story(ledgers: Ledgers) -> None:
        client = await ledgers.client("3/2/2")
        ledger = await ledgers.create(client)
        await append(ledger, b"a", b"b")
        [victim] = ledgers.bookies(ledger.metadata.last_fragment.ensemble[:1])
        await ledgers.environment.kill([victim])
        await append(ledger, b"c", b"d", b"e", b"f")
        ensembles = [ledgers.bookies(fragment.ensemble) for fragment in ledger.metadata.fragments]
        assert victim in ensembles[0] and victim not in ensembles[-1]
        assert await ledger.close() == 5
        assert await payloads(client, ledger.metadata) == [b"a", b"b", b"c", b"d", b"e", b"f"]

    on_stage(story)


def test_who_takes_over_finds_all_that_was_acknowledged_and_the_first_writer_is_refused() -> None:
    async def story(ledgers: Ledgers) -> None:
        writer, other = await ledgers.client(), await ledgers.client()
        ledger = await ledgers.create(writer)
        acknowledged: list[bytes] = []
        refused: list[LedgerError] = []

        async def write() -> None:
            for number in range(10_000):
                text = b"%d" % number
                try:
                    await ledger.append(text)
                except LedgerError as error:
                    refused.append(error)
                    return
                acknowledged.append(text)

        writing = asyncio.ensure_future(write())
        await ledgers.environment.timeline.sleep(2)
        found = await other.recover(ledger.ledger)
        await writing
        assert len(acknowledged) > 10 and len(refused) == 1 and not refused[0].is_definite
        read = []
        while len(read) <= found.last_entry:
            read += [entry.payload for entry in await other.read_all(found, len(read), found.last_entry)]
        assert read[: len(acknowledged)] == acknowledged and len(read) <= len(acknowledged) + 1
        assert ledgers.over == [0]

    on_stage(story)


def test_two_that_recover_at_once_find_one_end() -> None:
    async def story(ledgers: Ledgers) -> None:
        writer, one, other = [await ledgers.client("4/3/2") for _ in range(3)]
        ledger = await ledgers.create(writer)
        await append(ledger, b"a", b"b", b"c")
        found, found_too = await asyncio.gather(one.recover(ledger.ledger), other.recover(ledger.ledger))
        assert found.last_entry == found_too.last_entry == 2
        assert await payloads(one, found) == await payloads(other, found_too) == [b"a", b"b", b"c"]

    on_stage(story)


@pytest.mark.parametrize("lost", ["create", "change", "close", "mark", "end"])
def test_an_answer_of_the_metadata_store_may_be_lost(lost: str) -> None:
    async def story(ledgers: Ledgers) -> None:
        client = await ledgers.client()

        def lose_if(step: str) -> None:
            ledgers.metadata.loses_answers = int(step == lost)

        lose_if("create")
        ledger = await ledgers.create(client)
        await append(ledger, b"a")
        await ledgers.environment.kill(ledgers.bookies(ledger.metadata.last_fragment.ensemble[:1]))
        lose_if("change")
        await append(ledger, b"b", b"c")
        await ledgers.environment.timeline.sleep(2)
        assert ledgers.metadata.loses_answers == 0 and len(ledger.metadata.fragments) == 2
        if lost in ("mark", "end"):
            ledgers.metadata.loses_answers = 1 if lost == "mark" else 2
            found = await client.recover(ledger.ledger)
        else:
            lose_if("close")
            assert await ledger.close() == 2
            found = ledger.metadata
        assert ledgers.metadata.loses_answers == 0
        assert await payloads(client, found) == [b"a", b"b", b"c"]

    on_stage(story)


def test_a_metadata_store_that_is_away_ends_a_handle_that_has_to_change_its_ensemble() -> None:
    async def story(ledgers: Ledgers) -> None:
        client = await ledgers.client("3/3/3")
        ledger = await ledgers.create(client)
        await append(ledger, b"a")
        await ledgers.environment.kill(ledgers.bookies(ledger.metadata.last_fragment.ensemble[:1]))
        ledgers.metadata.is_away = True
        with pytest.raises(LedgerError, match="the metadata store did not answer") as failed:
            await ledger.append(b"b")
        assert not failed.value.is_definite and ledger.is_over and ledgers.over == [0]
        ledgers.metadata.is_away = False
        assert (await client.recover(ledger.ledger)).last_entry >= 0

    on_stage(story)


def test_a_bookie_that_lost_its_disk_holds_up_no_recovery() -> None:
    """Entry 0 was on all three; b2 and b3 come back empty, as others."""

    async def story(ledgers: Ledgers) -> None:
        writer, other = await ledgers.client("4/3/2"), await ledgers.client()
        ledger = await ledgers.create(writer)
        await append(ledger, b"a")
        wiped = ledgers.bookies(bookies_of(ledger.metadata, 0)[1:])
        await ledgers.environment.power_off(wiped)
        for name in wiped:
            ledgers.environment.disk_of(name).put_back({})
        ledgers.metadata.lose_session()
        await ledgers.environment.boot(wiped)
        for name in wiped:
            await ledgers.stage.identity(f"{name}:{PORT}")
        found = await other.recover(ledger.ledger)
        assert await payloads(other, found) == [b"a"]

    on_stage(story)


def test_a_recovery_that_cannot_decide_is_begun_again_until_it_can() -> None:
    async def story(ledgers: Ledgers) -> None:
        writer, other = await ledgers.client(), await ledgers.client()
        ledger = await ledgers.create(writer)
        await append(ledger, b"a")
        down = ledgers.bookies(ledger.metadata.last_fragment.ensemble[1:])
        await ledgers.environment.kill(down)
        with pytest.raises(LedgerError, match="could not be recovered: too few bookies answered"):
            await other.recover(ledger.ledger)
        recovering = asyncio.ensure_future(other.recover(ledger.ledger))
        await ledgers.environment.timeline.sleep(1)
        await ledgers.environment.boot(down)
        assert await payloads(other, await recovering) == [b"a"]

    on_stage(story)


def test_what_one_bookie_has_is_read_there_and_what_it_does_not_give_at_the_others() -> None:
    async def story(ledgers: Ledgers) -> None:
        client = await ledgers.client()
        ledger = await ledgers.create(client)
        for payload in (b"a", b"b", b"c"):
            await append(ledger, payload)
        await ledger.close()
        first = bookies_of(ledger.metadata, 0)[0]
        held = await client.read_at(ledger.metadata, first, range(1, 3))
        assert [entry.payload for entry in held.values()] == [b"b", b"c"] and sorted(held) == [1, 2]
        assert await payloads(client, ledger.metadata) == [b"a", b"b", b"c"]
        await ledgers.environment.kill(ledgers.bookies((first,)))
        assert await client.read_at(ledger.metadata, first, range(1, 3)) == {}
        assert await payloads(client, ledger.metadata) == [b"a", b"b", b"c"]
        with pytest.raises(LedgerError, match=f"too few bookies answered to read entry 7 of ledger {ledger.ledger}"):
            await client.read(ledger.metadata, 7)
        with pytest.raises(LedgerError, match="there is no ledger 99"):
            await client.metadata(99)

    on_stage(story)


def test_a_reader_that_knows_old_bookies_looks_who_has_the_entry_now() -> None:
    async def story(ledgers: Ledgers) -> None:
        client = await ledgers.client()
        ledger = await ledgers.create(client)
        await append(ledger, b"a")
        await ledger.close()
        closed = await client.metadata(ledger.ledger)
        fragment = replace(closed.fragments[0], ensemble=tuple(f"{number:016x}" for number in range(3)))
        assert (await client.read(replace(closed, fragments=(fragment,)), 0)).payload == b"a"

    on_stage(story)


def test_entries_that_nobody_has_are_passed_over_and_harmed_ones_are_not() -> None:
    async def story(ledgers: Ledgers) -> None:
        client = await ledgers.client()
        ledger = await ledgers.create(client)
        for payload in (b"a", b"b", b"c"):
            await append(ledger, payload)
        await ledger.close()
        lost: dict[int, Code] = {1: Code.NO_SUCH_ENTRY}
        ask = client.bookies.ask

        async def answered(bookie: str, request: BookieRequest) -> tuple[Reply, BookieAnswer]:
            reply, answer = await ask(bookie, request)
            if isinstance(request, ReadRequest) and request.entry in lost:
                return REPLIES[lost[request.entry]], BookieAnswer(lost[request.entry])
            if isinstance(request, ReadManyRequest):
                answer = replace(answer, many=())
            return reply, answer

        client.bookies.ask = answered  # type: ignore[method-assign]
        found = await client.read_all(ledger.metadata, 0, 2)
        assert [None if entry is None else entry.payload for entry in found] == [b"a", None, b"c"]
        lost[1] = Code.CORRUPT
        with pytest.raises(EntryHarmed, match=f"entry 1 of ledger {ledger.ledger} is harmed"):
            await client.read_all(ledger.metadata, 0, 2)

    on_stage(story)


def test_a_client_whose_wait_is_given_up_disturbs_nobody() -> None:
    async def story(ledgers: Ledgers) -> None:
        ledger = await ledgers.create(await ledgers.client())
        waiting = ledger.append(b"a")
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        assert await append(ledger, b"b") == [1]
        assert await ledger.close() == 1

    on_stage(story)
