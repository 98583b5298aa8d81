"""What kill, pause, panic and starvation do to a process, and what they leave alone."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import replace

import pytest

from harness.environments.environment import Link
from harness.environments.impairment import SlowNode
from harness.environments.simulated.regime import Regime
from harness.errors import HarnessError
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace


def test_a_killed_process_runs_nothing_any_more_not_even_a_finally(simulate):
    ran: list[str] = []

    async def body(environment, hosts) -> None:
        host = hosts["a"]

        async def work() -> None:
            try:
                while True:
                    await host.clock.sleep(0.1)
                    ran.append("beat")
            finally:
                ran.append("finally")

        host.spawn(work(), "work")
        await environment.timeline.sleep(0.35)
        assert ran == ["beat"] * 3
        effect = await environment.kill(["a"])
        assert effect.happened
        await environment.timeline.sleep(10)

        assert ran == ["beat"] * 3
        assert environment.running() == ("b", "c")
        again = await environment.kill(["a"])
        assert not again.happened

    simulate(body)


def test_the_host_of_a_dead_process_does_nothing(simulate):
    async def body(environment, hosts) -> None:
        old = hosts["a"]
        file = old.disk.open("data")
        file.append(b"alive")
        await environment.kill(["a"])
        file.append(b"dead")
        file.truncate(0)
        old.disk.remove("data")
        old.log("ghost")
        await environment.boot(["a"])
        await environment.timeline.sleep(0)
        assert hosts["a"].disk.open("data").read_at(0, 99) == b"alive"

    simulate(body)


def test_a_paused_process_waits_and_then_does_in_order_what_fell_due(simulate):
    async def body(environment, hosts) -> None:
        host = hosts["a"]
        woke: list[tuple[str, float]] = []

        async def sleeper(name: str, seconds: float) -> None:
            await host.clock.sleep(seconds)
            woke.append((name, environment.timeline.now_ns() / 1e9))

        for name, seconds in (("late", 3.0), ("early", 1.0), ("after", 7.0)):
            host.spawn(sleeper(name, seconds), name)
        await environment.timeline.sleep(0.5)
        assert (await environment.pause(["a"])).happened
        assert not (await environment.pause(["a"])).happened
        await environment.timeline.sleep(4.5)
        assert woke == []
        assert (await environment.resume(["a"])).happened
        await environment.timeline.sleep(0)
        assert [name for name, _ in woke] == ["early", "late"]
        assert {time for _, time in woke} == {5.0}
        await environment.timeline.sleep(3)
        assert woke[2] == ("after", 7.0)

    simulate(body)


def test_the_kernel_of_a_paused_process_goes_on(simulate):
    async def body(environment, hosts) -> None:
        got: list[bytes] = []
        synced: list[int] = []

        async def accept(connection) -> None:
            while True:
                got.append(await connection.read_exactly(1))

        async def write() -> None:
            file = hosts["a"].disk.open("f")
            file.append(b"x" * 10)
            await file.fsync()
            synced.append(environment.timeline.now_ns())

        await hosts["a"].network.listen(1, accept)
        connection = await hosts["b"].network.connect("a:1", 1)
        hosts["a"].spawn(write(), "write")
        await environment.timeline.sleep(0)
        await environment.pause(["a"])
        connection.write(b"123")
        late = await hosts["b"].network.connect("a:1", 1)  # the backlog takes it
        late.write(b"4")
        await environment.timeline.sleep(5)
        assert (got, synced) == ([], [])
        await environment.power_off(["a"])  # what the disk carried over during the pause is durable
        await environment.boot(["a"])
        await environment.timeline.sleep(0)
        assert hosts["a"].disk.open("f").read_at(0, 99) == b"x" * 10
        await environment.kill(["a"])

    simulate(body)


def test_bytes_that_came_during_a_pause_are_read_after_it(simulate):
    async def body(environment, hosts) -> None:
        got: list[bytes] = []

        async def accept(connection) -> None:
            while True:
                got.append(await connection.read_exactly(1))

        await hosts["a"].network.listen(1, accept)
        connection = await hosts["b"].network.connect("a:1", 1)
        await environment.timeline.sleep(1)
        await environment.pause(["a"])
        connection.write(b"123")
        await environment.timeline.sleep(5)
        assert got == []
        await environment.resume(["a"])
        await environment.timeline.sleep(0)
        await environment.timeline.sleep(0)
        assert got == [b"1", b"2", b"3"]

    simulate(body)


def test_a_restarted_process_finds_its_disk_and_none_of_its_memory(simulate):
    async def body(environment, hosts) -> None:
        first = hosts["a"]
        first.disk.open("kept").append(b"written, not synced")
        await environment.kill(["a"])
        assert not first.disk.exists("nothing")
        effect = await environment.boot(["a"])
        assert effect.happened
        await environment.timeline.sleep(0)
        second = hosts["a"]
        assert second is not first
        assert second.disk.open("kept").read_at(0, 99) == b"written, not synced"
        assert second.random.random() != first.random.random()
        assert not (await environment.boot(["a"])).happened

    simulate(body)


def test_a_panic_ends_the_whole_process_and_keeps_its_last_words(simulate, tmp_path):
    async def body(environment, hosts) -> None:
        async def fail() -> None:
            raise RuntimeError("half a node is worse")

        hosts["a"].spawn(fail(), "fail")
        await environment.timeline.sleep(1)
        assert environment.running() == ("b", "c")
        assert "half a node is worse" in environment.panics()["a"]
        assert (await environment.boot(["a"])).happened

    simulate(body)
    assert "half a node is worse" in (tmp_path / "a" / "node.log").read_text()
    events = [json.loads(line) for line in (tmp_path / "a" / "events.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["panic"]


def test_a_starved_process_falls_behind_and_keeps_its_order(simulate):
    async def body(environment, hosts) -> None:
        host, slow = hosts["a"], SlowNode(callback_us=10_000, stretch=1.0)
        done: list[tuple[int, int]] = []

        async def work(number: int) -> None:
            done.append((number, environment.timeline.now_ns() // 1_000_000))

        await environment.impair(["a"], slow)
        for number in range(5):
            host.spawn(work(number), "work")
        await environment.timeline.sleep(1)
        assert [number for number, _ in done] == [0, 1, 2, 3, 4]
        times = [at_ms for _, at_ms in done]
        assert all(later - earlier >= 10 for earlier, later in itertools.pairwise(times))
        await environment.relieve(["a"], slow)
        host.spawn(work(9), "work")
        await environment.timeline.sleep(0)
        assert done[-1] == (9, 1000)

    simulate(body)


def test_whoever_sleeps_on_a_slow_node_wakes_soon_once_it_is_not_slow_any_more(simulate):
    async def body(environment, hosts) -> None:
        host, woken_s = hosts["a"], []
        twice = [SlowNode(callback_us=10, stretch=10.0), SlowNode(callback_us=20, stretch=10.0)]

        async def sleep() -> None:
            await host.clock.sleep(1.0)
            woken_s.append(environment.timeline.now_ns() / 1e9)

        async def wait() -> None:
            with pytest.raises(TimeoutError):
                await host.clock.within(1.0, asyncio.get_running_loop().create_future())
            woken_s.append(environment.timeline.now_ns() / 1e9)

        for slow in twice:
            await environment.impair(["a"], slow)
        host.spawn(sleep(), "sleep")
        host.spawn(wait(), "wait")
        await environment.timeline.sleep(50)
        await environment.relieve(["a"], twice[0])
        await environment.timeline.sleep(2)
        await environment.relieve(["a"], twice[1])
        await environment.timeline.sleep(10)
        assert woken_s == pytest.approx([52.3, 52.3], abs=0.01)  # 50 / 100 + 2 / 10 + 0.3 / 1 = 1

    simulate(body)


def test_a_clean_stop_lets_a_node_finish_and_a_stubborn_one_is_killed(simulate, tmp_path):
    finished: list[str] = []

    async def body(environment, hosts) -> None:
        global stopping
        stopping = finished
        await environment.stop()
        assert environment.running() == ()
        assert environment.timeline.now_ns() == 10_000_000_000
        assert finished == ["a", "b"]

    simulate(body, main=f"{__name__}:stops_slowly")
    assert "stopped cleanly" in (tmp_path / "a" / "node.log").read_text()
    assert "did not stop in time" in (tmp_path / "c" / "node.log").read_text()


stopping: list[str] = []


async def stops_slowly(host, config) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await host.clock.sleep(1e9 if host.name == "c" else 2)
        stopping.append(host.name)


def test_events_are_written_with_true_and_believed_time(simulate, tmp_path):
    async def body(environment, hosts) -> None:
        await environment.set_clock("a", offset_s=60.0, rate=1.0)
        await environment.timeline.sleep(2)
        hosts["a"].log("role", role="master", master_epoch=3)

    simulate(body)
    (event,) = [json.loads(line) for line in (tmp_path / "a" / "events.jsonl").read_text().splitlines()]
    assert event["time"] == 2_000_000_000
    assert event["wall"] == (1_767_225_600 + 62) * 10**9
    assert (event["event"], event["role"], event["master_epoch"]) == ("role", "master", 3)


def test_unknown_names_and_programs_are_errors_of_the_harness(simulate, tmp_path):
    async def body(environment, hosts) -> None:
        with pytest.raises(HarnessError, match="no node is called z"):
            await environment.kill(["z"])
        with pytest.raises(HarnessError, match="no host is called z"):
            await environment.cut([Link("a", "z")])
        with pytest.raises(HarnessError, match="no program"):
            await environment.start(
                [NodeSpec(name="d", groups=(), program=PythonProgram(main="nowhere:main"))], tmp_path
            )
        with pytest.raises(HarnessError, match="two hosts are called 'a'"):
            await environment.start(
                [
                    NodeSpec(
                        name="a",
                        groups=(),
                        program=PythonProgram(main="tests.unit.harness.environments.simulated.lending:lend"),
                    )
                ],
                tmp_path,
            )

    simulate(body)


def test_rare_points_are_taken_by_seed_and_rare_states_counted(simulate):
    answers: list[list[bool]] = []

    async def body(environment, hosts) -> None:
        answers.append([hosts["a"].unusual("short-read") for _ in range(200)])
        hosts["a"].reached("tail-cut")
        hosts["b"].reached("tail-cut")
        assert environment.reached() == {"tail-cut": 2}

    rare = replace(Regime.calm(), unusual_share=1.0, unusual_probability=0.2)
    simulate(body, regime=rare)
    simulate(body, regime=rare)
    simulate(body)
    assert answers[0] == answers[1]
    assert 10 < sum(answers[0]) < 80
    assert not any(answers[2])


def test_regimes_differ_by_seed_and_mostly_lie_near(simulate):
    drawn = [Regime.drawn(Seed(number)) for number in range(300)]
    assert drawn[7] == Regime.drawn(Seed(7))
    assert len({regime.latency_ms for regime in drawn}) == 300
    near = sum(regime.latency_ms <= 20 for regime in drawn)
    assert 180 <= near <= 240
    assert all(0.1 <= regime.latency_ms <= 300 for regime in drawn)
    assert 0 < sum(regime.loss_probability > 0 for regime in drawn) < 300
    assert json.loads(json.dumps(drawn[0].to_json()))["latency_ms"] == drawn[0].latency_ms
    assert Trace().count == 0
