"""What a bookie promises, request by request, over deaths and losses of power."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from system_under_test.bookkeeper.bookie.message import (
    MAX_READ_BYTES,
    AddRequest,
    Code,
    ListRequest,
    ReadLacRequest,
    ReadManyRequest,
    ReadRequest,
)
from system_under_test.bookkeeper.bookie.registration import Willing
from system_under_test.bookkeeper.entry import HEAD_BYTES, NOTHING
from tests.unit.system_under_test.bookkeeper.bookie_machine import GONE, ME, OTHER, BookieMachine, story


def test_what_is_acknowledged_is_read_after_a_loss_of_power() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        assert await machine.added(7, 0, 1, 2, payload=b"abc") is Code.OK
        assert await machine.added(9, 5) is Code.OK
        machine.power_off()
        await machine.boot()
        assert [await machine.read(7, entry) for entry in range(3)] == [b"abc"] * 3
        assert await machine.read(9, 5) == b"payload"
        assert await machine.read(7, 3) is Code.NO_SUCH_ENTRY
        assert await machine.read(8, 0) is Code.NO_SUCH_LEDGER

    for seed in range(10):
        story(body, seed=seed)


def test_adds_that_come_while_an_fsync_runs_share_the_next_one() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        machine.events.clear()
        first = machine.add(1, 0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        crowd = [machine.add(1, entry) for entry in range(1, 100)]
        await first
        assert not any(answer.done() for answer in crowd)
        assert {answer.code for answer in await asyncio.gather(*crowd)} == {Code.OK}
        assert len(machine.named("about-to-flush")) == len(machine.named("flushed")) == 2

    story(body)


def test_nothing_ordinary_passes_a_fence_and_recovery_does() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        assert await machine.added(1, 0, 1, lac=NOTHING) is Code.OK
        assert await machine.lac(1, fences=True) == NOTHING
        assert await machine.added(1, 2) is Code.FENCED
        assert await machine.added(1, 1) is Code.FENCED, "a resend of what is there"
        assert await machine.write_lac(1, 1) is Code.FENCED
        assert await machine.added(2, 0) is Code.OK, "another ledger"
        assert await machine.added(1, 2, is_recovery=True) is Code.OK
        assert await machine.read(1, 2) == b"payload"
        assert await machine.added(1, 3) is Code.FENCED

    story(body)


def test_a_fence_on_a_ledger_that_nobody_wrote_holds() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        assert await machine.read(1, 0, fences=True) is Code.NO_SUCH_ENTRY
        machine.power_off()
        await machine.boot()
        assert await machine.added(1, 0) is Code.FENCED
        assert await machine.lac(1) == NOTHING

    story(body)


def test_a_fence_is_answered_once_it_is_durable_also_to_the_second_who_asks() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        machine.events.clear()
        first = machine.ask(ReadLacRequest(bookie=ME, ledger=1, fences=True))
        await asyncio.sleep(0)
        second = machine.ask(ReadLacRequest(bookie=ME, ledger=1, fences=True))
        unfenced = machine.ask(ReadLacRequest(bookie=ME, ledger=1))
        for _ in range(5):
            await asyncio.sleep(0)
        assert unfenced.done()
        assert not first.done()
        assert not second.done()
        await asyncio.gather(first, second)
        points = [name for name, _ in machine.events]
        assert points.index("fence-written") < points.index("flushed") < points.index("fence-durable")
        assert points.count("fence-durable") == 1

    story(body)


@pytest.mark.parametrize("is_synced", [True, False])
def test_an_answered_fence_outlasts_every_end_and_every_checkpoint(is_synced: bool) -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        assert await machine.fence(1) is Code.OK
        for _ in range(3):
            machine.power_off()
            await machine.boot()
            assert await machine.added(1, 0) is Code.FENCED
            for entry in range(40):
                assert await machine.added(2, entry, payload=bytes(100)) is Code.OK
            await machine.clock.sleep(1)
        assert machine.named("checkpoint")

    story(body, journalMaxSize=1024, journalSyncData=is_synced)


def test_an_add_before_the_fence_is_found_by_the_read_that_fences() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        add = machine.add(1, 0)
        await asyncio.sleep(0)
        assert await machine.read(1, 0, fences=True) == b"payload"
        assert (await add).code is Code.OK

    story(body)


def test_the_lac_is_the_greatest_that_came_with_entries_or_by_itself() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        assert await machine.lac(1) is Code.NO_SUCH_LEDGER
        await machine.added(1, 0, 1)
        assert await machine.lac(1) == NOTHING
        await machine.added(1, 2, lac=1)
        assert await machine.lac(1) == 1
        assert await machine.write_lac(1, 2) is Code.OK
        assert await machine.write_lac(1, 1) is Code.OK
        await machine.added(1, 3, lac=0)
        assert await machine.lac(1) == 2
        machine.power_off()
        await machine.boot()
        assert await machine.lac(1) == 2

    story(body)


def test_entries_are_listed_in_their_order_from_any_one_on() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        assert await machine.listed(1) == (Code.NO_SUCH_LEDGER, ())
        await machine.added(1, 4, 0, 2, 9, 2)
        assert await machine.listed(1) == (Code.OK, (0, 2, 4, 9))
        assert await machine.listed(1, 3) == (Code.OK, (4, 9))

    story(body)


def test_each_request_names_the_bookie_that_it_means() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        data = machine.entry(1, 0)
        for bookie, code in ((OTHER, Code.UNKNOWN), (GONE, Code.WRONG_BOOKIE)):
            for request in (
                AddRequest(bookie=bookie, data=data),
                AddRequest(bookie=bookie, data=data, is_recovery=True),
                ReadRequest(bookie=bookie, ledger=1, entry=0),
                ReadLacRequest(bookie=bookie, ledger=1, fences=True),
                ListRequest(bookie=bookie, ledger=1),
                ReadManyRequest(bookie=bookie, ledger=1, first=0, last=9),
            ):
                assert (await machine.ask(request)).code is code
        assert await machine.listed(1) == (Code.NO_SUCH_LEDGER, ()), "nothing of it was done"

    story(body)


def test_many_entries_are_read_at_once_but_for_those_that_are_harmed() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        for entry in (0, 1, 2, 5, 6):
            await machine.added(1, entry, payload=b"%03d" % entry)
        await machine.clock.sleep(1)
        assert machine.store.rot(machine.files("entries")[0], 4 + 36 + 1)

        async def many(first: int, last: int) -> list[int]:
            answer = await machine.ask(ReadManyRequest(bookie=ME, ledger=1, first=first, last=last))
            assert answer.code is Code.OK
            assert all(data[HEAD_BYTES:] == b"%03d" % entry for entry, data in answer.many)
            return [entry for entry, _ in answer.many]

        assert await many(0, 5) == [1, 2, 5]
        assert await many(2, 2) == [2]
        assert await many(3, 4) == await many(4, 3) == await many(7, 1 << 40) == []

    story(body)


def test_an_answer_with_many_entries_is_bounded() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        for entry in range(5):
            await machine.added(1, entry, payload=bytes(MAX_READ_BYTES // 3))
        answer = await machine.ask(ReadManyRequest(bookie=ME, ledger=1, first=0, last=4))
        assert [entry for entry, _ in answer.many] == [0, 1, 2]

    story(body)


def test_what_was_harmed_on_its_way_is_not_taken() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        data = machine.entry(1, 0)
        for at in range(len(data)):
            harmed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
            assert (await machine.ask(AddRequest(bookie=ME, data=harmed))).code is Code.CORRUPT
        assert await machine.listed(1) == (Code.NO_SUCH_LEDGER, ())

    story(body)


def test_a_harmed_entry_is_corrupt_and_never_absent() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        for entry in range(20):
            await machine.added(1, entry, payload=b"%03d" % entry + bytes(80))
        await machine.clock.sleep(1)
        first = machine.files("entries")[0]
        assert machine.store.rot(first, 4 + 36 + 5)
        assert await machine.read(1, 0) is Code.CORRUPT
        assert isinstance(await machine.read(1, 1), bytes)
        await machine.boot()
        assert await machine.read(1, 0) is Code.CORRUPT
        machine.store.cut_short(first, 60)
        assert await machine.read(1, 1) is Code.CORRUPT
        assert (await machine.listed(1))[1] == tuple(range(20))

    story(body, journalMaxSize=1024)


def test_a_full_disk_makes_it_read_only_which_is_registered_before_anybody_hears_it() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        assert await machine.added(1, 0) is Code.OK
        machine.room(0)
        machine.saying.may_say.clear()
        refused = machine.add(1, 1)
        await machine.clock.sleep(1)
        assert not refused.done()
        machine.saying.may_say.set()
        assert (await refused).code is Code.READ_ONLY
        assert machine.saying.heard == [Willing.READ_ONLY]
        assert len(machine.named("turned-read-only")) == 1
        assert await machine.read(1, 0) == b"payload"
        assert await machine.fence(1) is Code.READ_ONLY, "a fence that is not durable is none"
        assert await machine.read(1, 1) is Code.NO_SUCH_ENTRY
        machine.room(None)
        assert await machine.added(1, 1) is Code.READ_ONLY, "until it is registered as writable"
        await machine.clock.sleep(11)
        assert machine.saying.heard[-1] is Willing.WRITABLE
        assert await machine.added(1, 1) is Code.OK
        machine.power_off()
        await machine.boot()
        assert await machine.listed(1) == (Code.OK, (0, 1))

    story(body)


def test_of_what_found_no_room_nothing_is_left() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        await machine.added(1, 0)
        for room in range(0, 160, 7):
            machine.room(room)
            code = await machine.added(1, 1 + room)
            machine.room(None)
            await machine.clock.sleep(11)
            expected = [0, *(entry for entry in (await machine.listed(1))[1] if entry)]
            assert (1 + room in expected) == (code is Code.OK)
            machine.power_off()
            await machine.boot()
            assert list((await machine.listed(1))[1]) == expected
            for entry in expected:
                assert await machine.read(1, entry) == b"payload"

    story(body)


def test_recovery_takes_what_room_there_is() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        await machine.added(1, 0, payload=bytes(1000))
        machine.store.faults.capacity_bytes = machine.store.used_bytes + 100
        await machine.clock.sleep(11)
        assert machine.saying.heard == [Willing.READ_ONLY]
        assert await machine.added(1, 1, payload=b"") is Code.READ_ONLY
        machine.store.faults.capacity_bytes += 200
        assert await machine.added(1, 1, payload=b"", is_recovery=True) is Code.OK

    story(body, diskUsageThreshold=80)


def test_the_journal_stays_bounded_and_the_logs_hold_everything() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        for entry in range(200):
            assert await machine.added(1 + entry % 3, entry, payload=b"%d" % entry + bytes(60)) is Code.OK
        await machine.clock.sleep(1)
        assert len(machine.files("journal")) <= 2
        assert len(machine.named("checkpoint-written")) > 5
        machine.power_off()
        await machine.boot()
        for entry in range(200):
            assert await machine.read(1 + entry % 3, entry) == b"%d" % entry + bytes(60)

    story(body, journalMaxSize=2048)


def test_an_entry_that_comes_again_takes_the_place_of_the_one_before() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        await machine.added(1, 0, payload=b"one")
        await machine.added(1, 0, payload=b"one", lac=0)
        assert len(machine.named("written")) == 1, "the same again is not reported"
        await machine.added(1, 0, payload=b"two", is_recovery=True)
        assert await machine.read(1, 0) == b"two"
        assert len(machine.named("written")) == 2
        for _ in range(2):
            machine.power_off()
            await machine.boot()
            assert await machine.read(1, 0) == b"two"

    story(body)


def test_without_a_synced_journal_an_unclean_end_puts_unclosed_ledgers_in_limbo() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        assert await machine.added(1, 0, 1, 2) is Code.OK
        machine.power_off()
        await machine.boot(unclosed=[1, 2])
        assert machine.bookie.in_limbo == [1, 2]
        held = (await machine.listed(1))[1]
        for entry in range(3):
            expected = b"payload" if entry in held else Code.UNKNOWN
            assert await machine.read(1, entry) == expected
        assert await machine.listed(1) == (Code.UNKNOWN, held)
        assert await machine.read(2, 0) is Code.UNKNOWN
        assert await machine.lac(2) == NOTHING
        assert await machine.added(1, 3) is Code.FENCED
        assert await machine.added(3, 0) is Code.OK
        assert await machine.added(1, 0, 1, 2, is_recovery=True) is Code.OK
        assert await machine.read(1, 7) is Code.UNKNOWN
        await machine.bookie.leave_limbo(1)
        assert await machine.read(1, 7) is Code.NO_SUCH_ENTRY
        assert await machine.added(1, 3) is Code.FENCED
        machine.power_off()
        await machine.boot(unclosed=[])
        assert machine.bookie.in_limbo == [2]
        assert await machine.read(1, 7) is Code.NO_SUCH_ENTRY
        assert await machine.added(1, 3) is Code.FENCED

    for seed in range(10):
        story(body, seed=seed, journalSyncData=False)


@pytest.mark.parametrize("was_synced", [True, False])
def test_limbo_is_for_unclean_ends_of_processes_that_did_not_sync(was_synced: bool) -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        await machine.added(1, 0)
        await machine.bookie.stop()
        await machine.boot(unclosed=[1])
        assert machine.bookie.in_limbo == [], "it stopped cleanly"
        machine.config = replace(machine.config, is_synced=True)
        machine.power_off()
        await machine.boot(unclosed=[1])
        assert machine.bookie.in_limbo == ([] if was_synced else [1])

    story(body, journalSyncData=was_synced)


def test_a_second_end_during_a_start_does_not_end_the_doubt() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        await machine.added(1, 0)
        machine.power_off()
        bookie = machine.parts.bookie(machine.host(), machine.config, machine.digest)
        await bookie.open()
        machine.power_off()
        await machine.boot(unclosed=[1])
        assert machine.bookie.in_limbo == [1]

    story(body, journalSyncData=False)


def test_a_bookie_reports_its_ledgers_as_logs_that_are_counted_in_entries() -> None:
    async def body(machine: BookieMachine) -> None:
        await machine.boot()
        await machine.added(7, 0, payload=b"a")
        await machine.added(7, 1, payload=b"b", lac=0)
        assert machine.named("log") == [{"log": "ledger-7", "unit": "entries"}]
        assert [(each["log"], each["start"], each["end"]) for each in machine.named("written")] == [
            ("ledger-7", 0, 1),
            ("ledger-7", 1, 2),
        ]
        assert [(each["log"], each["offset"]) for each in machine.named("confirmed")] == [("ledger-7", 1)]
        machine.events.clear()
        await machine.boot()
        assert machine.named("recovered") == [{"log": "ledger-7", "end": 2, "entries": [0, 1]}]
        assert machine.named("logs") == [{"logs": ["ledger-7"]}]

    story(body)
