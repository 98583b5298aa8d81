"""Which waiters a flush releases and when, and what a failing disk does."""

from __future__ import annotations

import asyncio

import pytest

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.storage.errors import LogTruncated, StorageFailed
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config, sync_config


def test_one_fsync_releases_every_waiter_who_wrote_before_it_began() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, sync_config(1 << 20))
        store = await machine.boot()
        fsyncs = machine.count_fsyncs()
        first = store.put("t", 0, b"first")
        waiting = asyncio.ensure_future(store.flush_to(first.end_offset, 5))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        crowd = [store.put("t", 0, b"crowd").end_offset for _ in range(50)]
        waits = [asyncio.ensure_future(store.flush_to(offset, 5)) for offset in crowd]
        await waiting
        assert store.flushed_offset == first.end_offset
        assert not any(wait.done() for wait in waits)
        await asyncio.gather(*waits)
        assert store.flushed_offset == crowd[-1]
        assert fsyncs() == 2

    simulate(body)


def test_asynchronous_flush_waits_for_four_dirty_pages_or_ten_seconds() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config(1 << 20))
        store = await machine.boot()
        store.put("t", 0, b"x" * 3 * 4096)
        await machine.clock.sleep(5)
        assert store.flushed_offset == 0
        store.put("t", 0, b"x" * 4096)
        await machine.clock.sleep(0.6)
        assert store.flushed_offset == store.max_offset
        store.put("t", 0, b"x")
        await machine.clock.sleep(9)
        assert store.flushed_offset < store.max_offset
        await machine.clock.sleep(2)
        assert store.flushed_offset == store.max_offset

    simulate(body)


def test_a_slow_fsync_is_a_timeout_and_the_bytes_may_become_durable_later() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, sync_config())
        store = await machine.boot()
        machine.faults.fsync_slow_factor = 100_000.0
        end = store.put("t", 0, b"x").end_offset
        with pytest.raises(TimeoutError):
            await store.flush_to(end, 0.5)
        assert store.flushed_offset < end
        await machine.clock.sleep(3600)
        assert store.flushed_offset == end

    simulate(body)


def test_a_failed_fsync_reaches_every_waiter_and_ends_the_process() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, sync_config())
        store = await machine.boot()
        machine.faults.fsync_error_probability = 1.0
        waits = [store.flush_to(store.put("t", 0, b"x").end_offset, 5) for _ in range(3)]
        outcomes = await asyncio.gather(*waits, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [StorageFailed] * 3
        assert [type(panic) for panic in machine.panics] == [StorageFailed]
        machine.faults.fsync_error_probability = 0.0
        with pytest.raises(StorageFailed):
            store.put("t", 0, b"x")
        with pytest.raises(StorageFailed):
            await store.flush_to(store.max_offset, 5)

    simulate(body)


def test_what_a_failed_fsync_left_in_the_page_cache_alone_is_durable_once_the_next_process_vouches_for_it() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, sync_config())
        store = await machine.boot()
        machine.faults.fsync_error_probability = 1.0
        with pytest.raises(StorageFailed):
            await store.flush_to(store.put("t", 0, b"x").end_offset, 5)
        machine.faults.fsync_error_probability = 0.0
        await machine.kill()
        store = await machine.boot()
        found = store.read_for_transfer(0, store.max_offset)
        assert found
        await machine.lose_power()
        again = await machine.boot()
        assert again.read_for_transfer(0, again.max_offset) == found

    simulate(body)


def test_a_wait_for_bytes_that_are_cut_fails_though_others_take_their_place() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        store = await machine.boot()
        kept = store.put("t", 0, b"kept").end_offset
        waiting = asyncio.ensure_future(store.flush_to(store.put("t", 0, b"cut").end_offset, 5))
        await asyncio.sleep(0)
        await store.truncate(kept)
        store.put("t", 0, b"other")
        with pytest.raises(LogTruncated):
            await waiting

    simulate(body)
