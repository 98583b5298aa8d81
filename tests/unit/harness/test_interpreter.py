"""What the interpreter promises clients, the history and the clock, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from harness.errors import CONNECT_FAILED, OUTCOME_UNKNOWN, ErrorCode, HarnessError, OperationError
from harness.generator import (
    Context,
    Emission,
    Generator,
    GeneratorLike,
    any_of,
    clients,
    delay,
    each_thread,
    indexed,
    invoke,
    limit,
    log,
    nemesis,
    phases,
    quiet_until,
    repeat,
    sleep,
    stagger,
    time_limit,
)
from harness.interpreter import Interpreted, run_operations
from harness.operation import Operation
from harness.seed import Seed
from nemesis.schedule import Entry, Schedule, Scheduled
from nemesis.shape import kill
from nemesis.target import Role
from tests.unit.harness.virtual_time import VirtualTimeline, run_virtually

Behaviour = Callable[[Operation], Awaitable[Operation]]


async def works(operation: Operation) -> Operation:
    await asyncio.sleep(0.01)
    return operation._replace(type="ok", node="n1")


@dataclass
class World:
    """Clients with a given behaviour, and what the interpreter did with them."""

    behaviour: Behaviour = works
    opening: Callable[[int], Awaitable[None]] | None = None
    opened: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    history: list[Operation] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def client(self, process: int) -> WorldClient:
        return WorldClient(self, process)

    async def interpret(self, generator: GeneratorLike, **changed: Any) -> Interpreted:
        arguments: dict[str, Any] = {
            "client_factory": self.client,
            "nemesis": None,
            "timeline": VirtualTimeline(),
            "record": self.history.append,
            "concurrency": 1,
            "operation_timeout_s": 1.0,
            "show": self.messages.append,
        }
        return await run_operations(generator, **{**arguments, **changed})

    def run(self, generator: GeneratorLike, **changed: Any) -> Interpreted:
        return run_virtually(self.interpret(generator, **changed))

    def outcomes(self) -> list[tuple[int, str, str | None]]:
        return [(o.process, o.type, o.error) for o in self.history if o.type != "invoke"]


@dataclass
class WorldClient:
    world: World
    process: int

    async def open(self) -> None:
        if self.world.opening is not None:
            await self.world.opening(self.process)
        self.world.opened.append(self.process)

    async def invoke(self, operation: Operation) -> Operation:
        return await self.world.behaviour(operation)

    async def close(self) -> None:
        self.world.closed.append(self.process)


def raising(error: Exception) -> Behaviour:
    async def behaviour(operation: Operation) -> Operation:
        raise error

    return behaviour


async def never(operation: Operation) -> Operation:
    await asyncio.Event().wait()
    return operation


def test_invocation_and_completion_are_recorded_with_the_time_of_the_timeline() -> None:
    world = World()
    interpreted = world.run(delay(0.5, repeat(invoke("read", key="r0"), 2)))
    assert world.history == [
        Operation(0, "invoke", "read", None, "r0", 0),
        Operation(0, "ok", "read", None, "r0", 10_000_000, node="n1"),
        Operation(0, "invoke", "read", None, "r0", 500_000_000),
        Operation(0, "ok", "read", None, "r0", 510_000_000, node="n1"),
    ]
    assert interpreted.operations == 2
    assert not interpreted.crashes


def test_a_definite_error_is_fail_and_the_process_goes_on_with_its_client() -> None:
    world = World(raising(OperationError(ErrorCode("not-master", definite=True), node="b2")))
    world.run(repeat(invoke("send"), 2))
    assert world.outcomes() == [(0, "fail", "not-master"), (0, "fail", "not-master")]
    assert world.history[1].node == "b2"
    assert world.opened == [0]


def test_an_indefinite_error_is_info_and_the_thread_goes_on_as_a_new_process_with_a_new_client() -> None:
    world = World(raising(OperationError(ErrorCode("flush-disk-timeout", definite=False))))
    interpreted = world.run(repeat(invoke("send"), 3), concurrency=2)
    assert world.outcomes() == [(process, "info", "flush-disk-timeout") for process in (0, 1, 2)]
    assert world.opened == [0, 1, 2]
    assert sorted(world.closed) == [0, 1, 2]
    assert interpreted.next_process > max(process for process, _, _ in world.outcomes())


def test_a_client_that_does_not_answer_in_time_is_info_and_closed() -> None:
    world = World(never)
    world.run(limit(2, repeat(invoke("send"))), operation_timeout_s=2.0)
    assert world.outcomes() == [(0, "info", "client-timeout"), (1, "info", "client-timeout")]
    assert [operation.time for operation in world.history] == [0, 2_000_000_000, 2_000_000_000, 4_000_000_000]
    assert world.closed == [0, 1]


def test_failing_to_open_is_a_definite_failure_and_the_same_process_tries_again() -> None:
    attempts = []

    async def third_time_lucky(process: int) -> None:
        attempts.append(process)
        if len(attempts) < 3:
            raise OperationError(CONNECT_FAILED, node="b1")

    world = World(opening=third_time_lucky)
    interpreted = world.run(repeat(invoke("send"), 3))
    assert world.outcomes() == [(0, "fail", "connect-failed"), (0, "fail", "connect-failed"), (0, "ok", None)]
    assert world.history[1].node == "b1"
    assert not interpreted.crashes


def test_opening_that_takes_too_long_is_a_definite_failure_for_nothing_was_sent() -> None:
    async def hangs(process: int) -> None:
        await asyncio.Event().wait()

    world = World(opening=hangs)
    world.run(invoke("send"))
    assert world.outcomes() == [(0, "fail", "connect-failed")]


@pytest.mark.parametrize("error", [RuntimeError("a bug"), asyncio.InvalidStateError("a bug")])
def test_a_client_that_crashes_is_info_and_named_in_the_result(error: Exception) -> None:
    world = World(raising(error))
    interpreted = world.run(invoke("send"))
    assert world.outcomes() == [(0, "info", "client-crashed")]
    assert "client of process 0 crashed in send" in str(interpreted.crashes[0])
    assert "a bug" in interpreted.crashes[0].trace


def test_a_client_that_cancels_its_own_operation_does_not_hang_the_run() -> None:
    async def cancels(operation: Operation) -> Operation:
        raise asyncio.CancelledError

    world = World(cancels)
    interpreted = world.run(repeat(invoke("send"), 2))
    assert world.outcomes() == [(0, "info", "client-crashed"), (1, "info", "client-crashed")]
    assert len(interpreted.crashes) == 2


def test_a_completion_of_something_else_is_a_crash_of_the_client() -> None:
    async def confused(operation: Operation) -> Operation:
        return operation._replace(type="ok", f="poll")

    world = World(confused)
    assert "expected a completion of send" in str(world.run(invoke("send")).crashes[0])
    assert world.outcomes() == [(0, "info", "client-crashed")]


def test_a_client_cannot_change_process_or_time_of_its_operation() -> None:
    async def meddles(operation: Operation) -> Operation:
        return operation._replace(type="ok", process=17, time=99)

    world = World(meddles)
    world.run(invoke("read"))
    assert world.history[1] == Operation(0, "ok", "read", None, None, 0)


def test_threads_work_at_the_same_time() -> None:
    world = World()
    world.run(repeat(invoke("read"), 5), concurrency=5)
    assert {operation.time for operation in world.history} == {0, 10_000_000}


def test_the_nemesis_works_beside_the_clients_as_process_minus_one_and_completes_with_info() -> None:
    world, faults = World(), World(behaviour=works)
    world.run(
        any_of(
            clients(time_limit(1, stagger(0.05, repeat(invoke("read")), seed=Seed(1)))),
            nemesis([sleep(0.4), invoke("start-kill"), sleep(0.2), invoke("stop-kill")]),
        ),
        nemesis=faults.client(-1),
    )
    rows = [(o.type, o.f, o.time) for o in world.history if o.process == -1]
    assert rows == [
        ("invoke", "start-kill", 400_000_000),
        ("info", "start-kill", 410_000_000),
        ("invoke", "stop-kill", 610_000_000),
        ("info", "stop-kill", 620_000_000),
    ]
    assert faults.opened == [-1]
    assert faults.closed == [-1]
    assert sum(o.f == "read" and o.time > 610_000_000 for o in world.history) > 0


def test_a_mistake_in_the_nemesis_is_info_and_named_in_the_result() -> None:
    broken = World(raising(ValueError("no such fault")))
    world = World()
    interpreted = world.run(nemesis(invoke("start-kill")), nemesis=broken.client(-1))
    assert world.outcomes() == [(-1, "info", "client-crashed")]
    assert str(interpreted.crashes[0]) == "nemesis crashed in start-kill: ValueError: no such fault"


def test_an_environment_that_fails_in_a_fault_ends_the_test() -> None:
    broken = World(raising(HarnessError("no such container")))
    world = World()
    with pytest.raises(HarnessError, match="no such container"):
        world.run(nemesis(repeat(invoke("start-kill"))), nemesis=broken.client(-1))
    assert world.outcomes() == []


def test_what_is_open_at_the_end_is_waited_for() -> None:
    world = World()
    world.run(limit(3, repeat(invoke("read"))), concurrency=3)
    assert len(world.outcomes()) == 3


def test_phases_follow_completions() -> None:
    world = World()
    world.run(phases(repeat(invoke("a"), 3), log("now b"), each_thread(invoke("b"))), concurrency=2)
    fs = [operation.f for operation in world.history]
    assert fs == ["a"] * 6 + ["b"] * 4
    assert world.messages == ["now b"]


def test_recorded_time_never_runs_back_even_if_the_timeline_does() -> None:
    readings = iter([50, 60, 40, 70, 30, *range(80, 200)])
    world = World()
    world.run(repeat(invoke("read"), 2), timeline=VirtualTimeline(lambda: next(readings)))
    times = [operation.time for operation in world.history]
    assert times == sorted(times)


def test_a_second_run_goes_on_with_fresh_process_numbers() -> None:
    world = World(raising(OperationError(OUTCOME_UNKNOWN)))

    async def twice() -> None:
        first = await world.interpret(repeat(invoke("send"), 3), concurrency=2)
        await world.interpret(repeat(invoke("send"), 3), concurrency=2, first_process=first.next_process)

    run_virtually(twice())
    used = [process for process, _, _ in world.outcomes()]
    assert len(used) == len(set(used)) == 6


def test_cancelling_closes_clients_and_leaves_open_operations_open() -> None:
    world = World(never)

    async def interrupted() -> None:
        task = asyncio.create_task(world.interpret(repeat(invoke("send")), concurrency=3, operation_timeout_s=60.0))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run_virtually(interrupted())
    assert [operation.type for operation in world.history] == ["invoke"] * 3
    assert sorted(world.closed) == [0, 1, 2]


def test_closing_that_hangs_does_not_hold_the_run() -> None:
    world = World()

    class Clinging(WorldClient):
        async def close(self) -> None:
            await asyncio.Event().wait()

    world.run(invoke("read"), client_factory=lambda process: Clinging(world, process))
    assert world.outcomes() == [(0, "ok", None)]


def test_a_crash_in_closing_is_named_and_does_not_end_the_run() -> None:
    world = World(raising(OperationError(OUTCOME_UNKNOWN)))

    class Exploding(WorldClient):
        async def close(self) -> None:
            raise RuntimeError("cannot close")

    interpreted = world.run(repeat(invoke("read"), 2), client_factory=lambda process: Exploding(world, process))
    assert [process for process, _, _ in world.outcomes()] == [0, 1]
    assert "cannot close" in str(interpreted.crashes[0])


def test_a_generator_may_give_invocations_and_sleeps_only() -> None:
    with pytest.raises(HarnessError, match="neither an invocation nor a sleep"):
        World().run(Operation(0, "info", "start-kill"))


def test_a_generator_that_waits_for_nothing_is_an_error_that_leaves_nothing_running() -> None:
    world = World()
    with pytest.raises(HarnessError, match="wait for ever"):
        world.run([invoke("read"), nemesis(invoke("start-kill"))])
    assert world.closed == [0]


def test_an_exception_of_the_recorder_ends_the_run() -> None:
    def full(operation: Operation) -> None:
        raise HarnessError("history cannot be written")

    with pytest.raises(HarnessError, match="history cannot be written"):
        World().run(invoke("read"), record=full)


def test_the_same_generator_makes_the_same_history_again() -> None:
    def once() -> list[Operation]:
        world = World()
        load = stagger(0.003, indexed(lambda n: invoke("write", {"value": n})), seed=Seed(7))
        world.run(time_limit(5, load), concurrency=4)
        return world.history

    assert once() == once()


@dataclass(frozen=True)
class Talkative:
    """A generator that has to be asked after everything that happens; counts how often it is."""

    generator: Generator
    asked: list[int]

    def op(self, context: Context) -> Emission:
        self.asked.append(context.time)
        emission = self.generator.op(context)
        return None if emission is None else (emission[0], Talkative(emission[1], self.asked))

    def update(self, context: Context, event: Operation) -> Generator:
        return Talkative(self.generator.update(context, event), self.asked)


class Quiet(Talkative):
    """The same, and it may be left alone as long as the generator inside."""

    def op(self, context: Context) -> Emission:
        emission = super().op(context)
        return None if emission is None else (emission[0], Quiet(cast(Talkative, emission[1]).generator, self.asked))

    def update(self, context: Context, event: Operation) -> Generator:
        return Quiet(self.generator.update(context, event), self.asked)

    def quiet_until(self, context: Context) -> int:
        return quiet_until(self.generator, context)


@pytest.mark.parametrize("concurrency", [1, 3, 8])
@pytest.mark.parametrize("faults", [(), (0.2, 0.9, 5.0)])
def test_a_generator_that_tells_how_long_it_is_quiet_makes_the_same_history(
    concurrency: int, faults: tuple[float, ...]
) -> None:
    shape = kill(Role("primary"))
    entries = tuple(Entry.between(at_s, at_s + 0.1, "kill", number, shape) for number, at_s in enumerate(faults))
    due = Schedule(entries, storm_ns=2_000_000_000).due()
    histories, asked = [], []
    for kind in (Talkative, Quiet):
        world, times = World(), list[int]()
        reads = indexed(lambda number: invoke("read", {"number": number}))
        load = clients(time_limit(2, stagger(0.03, reads, seed=Seed(3))))
        storm = any_of(load, nemesis(Scheduled(due, start_ns=0)))
        world.run(kind(storm, times), nemesis=WorldClient(world, -1), concurrency=concurrency)
        histories.append(world.history)
        asked.append(len(times))
    assert histories[0] == histories[1] and len(histories[0]) > 100
    if concurrency > 1 and faults:
        assert asked[1] < 0.7 * asked[0]


def test_a_rate_is_kept_where_every_wait_lasts_too_long() -> None:
    world = World()

    async def late() -> Interpreted:
        running = asyncio.get_running_loop()
        call_at = running.call_at
        running.call_at = lambda when, *rest, **context: call_at(when + 0.004, *rest, **context)  # type: ignore[method-assign]
        return await world.interpret(
            clients(time_limit(10, stagger(0.02, repeat(invoke("read")), seed=Seed(1)))), concurrency=9
        )

    assert 450 < run_virtually(late()).operations < 550


def test_an_exception_of_the_recorder_ends_the_run_while_the_generator_is_quiet() -> None:
    def record(operation: Operation) -> None:
        if operation.type == "ok":
            raise HarnessError("the disk is full")

    with pytest.raises(HarnessError, match="the disk is full"):
        World().run(stagger(1, repeat(invoke("read")), seed=Seed(1)), record=record, concurrency=2)
