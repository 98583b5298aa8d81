"""Progress of delayed messages: it never runs ahead of what is confirmed and durable, nor of its queue."""

from __future__ import annotations

from harness.environments.simulated.loop import VirtualTimeLoop
from system_under_test.storage.delay_progress import SCHEDULE_TOPIC, DelayProgress
from tests.references.machine_with_disk import simulate
from tests.unit.system_under_test.storage.storage_machine import Machine, async_config, sync_config


def progress_of(loop: VirtualTimeLoop) -> DelayProgress:
    return DelayProgress(Machine(loop, 1, sync_config()).host().disk, "delayOffset.json")


def test_what_was_delivered_is_progress_once_the_log_is_safe_to_the_end_of_its_copy() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        progress = progress_of(loop)
        progress.delivered(1, 1, 100)
        progress.delivered(2, 4, 200)
        progress.delivered(1, 2, 300)
        progress.settle(99)
        assert progress.as_json() == {"offsetTable": {}}
        progress.settle(200)
        assert progress.as_json() == {"offsetTable": {"1": 1, "2": 4}}
        progress.settle(300)
        assert progress.as_json() == {"offsetTable": {"1": 2, "2": 4}}

    simulate(body)


def test_a_cut_takes_back_what_was_delivered_and_what_waited_beyond_it() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        progress = progress_of(loop)
        progress.delivered(1, 1, 100)
        progress.delivered(1, 5, 300)
        progress.settle(100)
        progress.cut(200, lambda topic, queue_id: 9)
        progress.settle(1000)
        assert progress.offset(1) == 1
        progress.cut(150, lambda topic, queue_id: 0)
        assert progress.offset(1) == 0

    simulate(body)


def test_a_cut_of_what_was_confirmed_takes_back_the_progress_that_it_was() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        progress = progress_of(loop)
        for number in range(1, 6):
            progress.delivered(1, number, 100 * number)
            progress.settle(100 * number)
        progress.cut(250, lambda topic, queue_id: 9)
        assert progress.offset(1) == 2

    simulate(body)


def test_a_killed_store_finds_its_progress_and_one_whose_log_lost_more_finds_less() -> None:
    async def body(loop: VirtualTimeLoop) -> None:
        machine = Machine(loop, 1, async_config())
        store = await machine.boot()
        for _ in range(3):
            store.put(SCHEDULE_TOPIC, 0, b"delayed")
        end = store.put("T", 0, b"delivered").end_offset
        store.delay_progress.delivered(1, 3, end)
        await store.checkpoint()
        assert store.delay_progress.offset(1) == 0, "neither confirmed nor durable"
        store.advance_confirm_offset(end)
        await store.flush_to(end, 60.0)
        await store.checkpoint()
        await machine.kill()
        assert (await machine.boot()).delay_progress.offset(1) == 3
        await machine.kill()
        store = await machine.boot()
        await store.truncate(0)
        assert store.delay_progress.offset(1) == 0
        await machine.kill()
        assert (await machine.boot()).delay_progress.offset(1) == 0

    simulate(body)
