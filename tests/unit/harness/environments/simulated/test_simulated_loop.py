"""The loop of virtual time: order, jumps, and the two ways in which it refuses to hang."""

from __future__ import annotations

import asyncio
import time

import pytest

from harness.environments.simulated import loop as loop_module
from harness.environments.simulated.loop import VirtualTimeLoop
from harness.errors import HarnessError


def run(main):
    loop = VirtualTimeLoop()
    try:
        return loop.run(main)
    finally:
        loop.close()


def test_a_year_passes_at_once_and_exactly():
    async def main() -> float:
        await asyncio.sleep(365 * 86_400)
        return asyncio.get_running_loop().time()

    before = time.perf_counter()
    assert run(main()) == 365 * 86_400
    assert time.perf_counter() - before < 5


def test_timers_of_the_same_moment_fire_in_the_order_they_were_set():
    async def main() -> list[int]:
        fired: list[int] = []
        loop = asyncio.get_running_loop()
        for number in range(20):
            loop.call_later(1.0, fired.append, number)
        await asyncio.sleep(1.0)
        return fired

    assert run(main()) == list(range(20))


def test_what_asyncio_offers_works_in_virtual_time():
    async def main() -> None:
        queue: asyncio.Queue[int] = asyncio.Queue(maxsize=1)
        event = asyncio.Event()

        async def produce() -> None:
            for number in range(3):
                await queue.put(number)
                await asyncio.sleep(1)
            event.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            assert [await queue.get() for _ in range(3)] == [0, 1, 2]
        assert event.is_set()
        assert await asyncio.gather(asyncio.sleep(2, "a"), asyncio.sleep(1, "b")) == ["a", "b"]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await asyncio.get_running_loop().create_future()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(10), 1)
        done, pending = await asyncio.wait([asyncio.create_task(asyncio.sleep(1))], timeout=5)
        assert len(done) == 1
        assert not pending

    run(main())


def test_a_failing_task_group_cancels_its_tasks_in_the_order_of_their_birth():
    async def main() -> list[int]:
        cancelled: list[int] = []

        async def wait(number: int) -> None:
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                cancelled.append(number)
                raise

        async def fail() -> None:
            await asyncio.sleep(1)
            raise RuntimeError

        async def whole() -> None:
            async with asyncio.TaskGroup() as group:
                for number in range(50):
                    group.create_task(wait(number))
                group.create_task(fail())

        with pytest.raises(ExceptionGroup):
            await whole()
        return cancelled

    assert run(main()) == run(main()) == list(range(50))


def test_a_deadlock_names_who_waits_and_where():
    async def main() -> None:
        async def forgotten() -> None:
            await asyncio.Event().wait()

        task = asyncio.create_task(forgotten(), name="forgotten-task")
        await asyncio.sleep(3)
        await task

    with pytest.raises(
        HarnessError, match=r"(?s)nothing is left to happen at 3\.0.*test_simulated_loop\.py.*forgotten-task"
    ):
        run(main())


def test_a_livelock_ends_the_simulation(monkeypatch):
    monkeypatch.setattr(loop_module, "LIVELOCK_CALLBACKS", 1000)

    async def main() -> None:
        while True:  # noqa: ASYNC110 - spinning is the point
            await asyncio.sleep(0)

    with pytest.raises(HarnessError, match=r"1000 callbacks ran at 0\.000000 s without time moving on"):
        run(main())


def test_an_error_of_the_main_task_comes_out_and_the_rest_is_cancelled():
    cleaned: list[str] = []

    async def main() -> None:
        async def background() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                await asyncio.sleep(1)
                cleaned.append("background")

        task = asyncio.create_task(background())
        await asyncio.sleep(1)
        assert not task.done()
        raise KeyError("main")

    with pytest.raises(KeyError, match="main"):
        run(main())
    assert cleaned == ["background"]


def test_an_interrupt_lets_the_main_task_clean_up():
    cleaned: list[str] = []

    async def interrupted() -> None:
        raise KeyboardInterrupt

    async def main() -> None:
        try:
            task = asyncio.create_task(interrupted())
            await asyncio.sleep(10)
            await task
        finally:
            await asyncio.sleep(1)
            cleaned.append("main")

    with pytest.raises(KeyboardInterrupt):
        run(main())
    assert cleaned == ["main"]


def test_cancelled_timers_do_not_pile_up():
    async def main() -> int:
        for _ in range(20_000):
            async with asyncio.timeout(1000):
                await asyncio.sleep(0)
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        return len(loop._timers)

    assert run(main()) < 5000


def test_a_simulation_within_a_running_loop_is_refused():
    async def inner() -> None:
        pass

    async def outer() -> None:
        with pytest.raises(HarnessError, match="running event loop"):
            VirtualTimeLoop().run(inner())

    asyncio.run(outer())
