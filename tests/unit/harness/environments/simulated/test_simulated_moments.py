"""The simulator lets the harness see a moment and act in it, outside of the node whose step it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from harness.environments.simulated.loop import OWNER
from harness.errors import HarnessError


def test_points_are_seen_at_once_and_counted_by_host(simulate) -> None:
    async def body(environment, hosts) -> None:
        seen = []
        hosts["a"].reached("early")
        environment.moments.on_point(lambda node, point: seen.append((node, point)))
        hosts["a"].reached("tail-cut")
        assert seen == [("a", "tail-cut")]
        hosts["b"].reached("tail-cut")
        environment.client_host("client").reached("tail-cut")
        assert seen == [("a", "tail-cut"), ("b", "tail-cut")]
        assert environment.moments.counts() == {
            ("a", "early"): 1,
            ("a", "tail-cut"): 1,
            ("b", "tail-cut"): 1,
            ("client", "tail-cut"): 1,
        }
        assert environment.reached() == {"early": 1, "tail-cut": 3}

    simulate(body)


def test_counts_go_on_over_the_lives_of_a_node_and_the_dead_reach_nothing(simulate) -> None:
    async def body(environment, hosts) -> None:
        dead = hosts["a"]
        dead.reached("tail-cut")
        await environment.kill(["a"])
        dead.reached("tail-cut")
        await environment.boot(["a"])
        await environment.timeline.sleep(0)
        hosts["a"].reached("tail-cut")
        assert environment.moments.counts() == {("a", "tail-cut"): 2}

    simulate(body)


def test_the_watch_is_fed_events_of_nodes_and_what_is_done_to_them_once(simulate) -> None:
    async def body(environment, hosts) -> None:
        seen = []
        environment.moments.watch = lambda node, event, fields: seen.append((node, event, dict(fields)))
        hosts["a"].log("ready", number=1)
        environment.client_host("client").log("ready")
        for verb in (environment.pause, environment.resume, environment.kill, environment.boot, environment.power_off):
            await verb(["b"])
            await verb(["b"])
        assert [(node, event.removeprefix("environment:"), fields) for node, event, fields in seen] == [
            ("a", "ready", {"number": 1}),
            ("b", "paused", {}),
            ("b", "resumed", {}),
            ("b", "ended", {"how": "killed"}),
            ("b", "booted", {}),
            ("b", "ended", {"how": "power lost"}),
        ]

    simulate(body)


@pytest.mark.parametrize("error", [HarnessError("no such word"), KeyError("role")])
def test_an_error_of_the_harness_in_a_nodes_step_ends_the_simulation_and_not_the_node(simulate, error) -> None:
    async def body(environment, hosts) -> None:
        def fail(node: str, event: str, fields: object) -> None:
            raise error

        environment.moments.watch = fail
        hosts["a"].log("ready")
        await environment.timeline.sleep(1)

    with pytest.raises(HarnessError, match=r"no such word|KeyError: 'role'"):
        simulate(body)


Verb = Callable[[Any, Any, Any], Coroutine[Any, Any, object]]


async def write(host: Any, file: Any, connection: Any) -> None:
    assert file.append(b"dead") == len(b"alive")
    file.write_at(0, b"dead")
    file.truncate(2)
    host.disk.remove("other")
    assert host.disk.open("new").size == 0


async def write_and_flush(host: Any, file: Any, connection: Any) -> None:
    file.append(b"dead")
    await file.fsync()
    raise AssertionError("an fsync of a dead process ended")


async def replace(host: Any, file: Any, connection: Any) -> None:
    await host.disk.replace("other", "data")
    raise AssertionError("a rename of a dead process ended")


async def send(host: Any, file: Any, connection: Any) -> None:
    connection.write(b"dead")
    await connection.drain()
    connection.close()


async def connect(host: Any, file: Any, connection: Any) -> None:
    await host.network.connect("b:1", 1.0)
    raise AssertionError("a dead process connected")


async def listen(host: Any, file: Any, connection: Any) -> None:
    (await host.network.listen(2, lambda _: asyncio.sleep(0))).close()
    await host.network.listen(2, lambda _: asyncio.sleep(0))


async def speak(host: Any, file: Any, connection: Any) -> None:
    host.log("dead")
    host.reached("grave")
    assert not host.unusual("grave")


async def spawn(host: Any, file: Any, connection: Any) -> None:
    host.spawn(speak(host, file, connection), "ghost")


async def make_task(host: Any, file: Any, connection: Any) -> None:
    await asyncio.create_task(speak(host, file, connection))
    raise AssertionError("a task of a dead process ran")


async def sleep(host: Any, file: Any, connection: Any) -> None:
    await host.clock.sleep(0.001)
    raise AssertionError("a dead process woke up")


async def wait(host: Any, file: Any, connection: Any) -> None:
    await host.clock.within(0.001, asyncio.Event().wait())
    raise AssertionError("a dead process timed out")


async def read(host: Any, file: Any, connection: Any) -> None:
    file.read_at(0, 5)
    await connection.read_exactly(1)


async def panic(host: Any, file: Any, connection: Any) -> None:
    raise RuntimeError("the last words of a dead process")


async def nothing(host: Any, file: Any, connection: Any) -> None:
    pass


AFTER_DEATH = (
    write,
    write_and_flush,
    replace,
    send,
    connect,
    listen,
    speak,
    spawn,
    make_task,
    sleep,
    wait,
    read,
    panic,
)


def traced(simulate: Any, end: str, verb: Verb, *, dies: bool = True) -> tuple[str, bool]:
    """The trace of a node that is ended at a point, and does as `verb` says in a `finally` around it; and whether its
    step went on behind the point."""
    reached_its_end = False

    async def body(environment: Any, hosts: Any) -> None:
        async def accept(connection: Any) -> None:
            await asyncio.Event().wait()

        async def step() -> None:
            nonlocal reached_its_end
            host = hosts["a"]
            connection = await host.network.connect("b:1", 1.0)
            host.disk.open("other").append(b"there")
            file = host.disk.open("data")
            file.append(b"alive")
            connection.write(b"alive")
            try:
                host.reached("here")
                reached_its_end = True
            finally:
                await verb(host, file, connection)

        def strike(node: str, point: str) -> None:
            assert (node, OWNER.get()) == ("a", None)
            if dies:
                assert point == "here"
                with pytest.raises(StopIteration):
                    getattr(environment, end)([node]).send(None)

        await hosts["b"].network.listen(1, accept)
        environment.disk_faults("a").read_error_probability = 0.5
        environment.moments.on_point(strike)
        hosts["a"].spawn(step(), "step")
        await environment.timeline.sleep(1)
        await environment.boot(["a"])
        await environment.timeline.sleep(1)

    return simulate(body).digest(), reached_its_end


@pytest.mark.parametrize("end", ["kill", "power_off"])
@pytest.mark.parametrize("verb", AFTER_DEATH)
def test_the_step_in_which_a_node_dies_ends_there_and_nothing_comes_of_what_is_left(
    simulate, end: str, verb: Verb
) -> None:
    died, went_on = traced(simulate, end, verb)
    assert not went_on
    assert died == traced(simulate, end, nothing)[0]


@pytest.mark.parametrize("verb", [write, send, listen, speak])
def test_a_living_node_would_be_seen_to_do_it(simulate, verb: Verb) -> None:
    lived, went_on = traced(simulate, "kill", verb, dies=False)
    assert went_on
    assert lived != traced(simulate, "kill", nothing, dies=False)[0]


def test_after_a_step_comes_before_all_else(simulate) -> None:
    async def body(environment: Any, hosts: Any) -> None:
        order = []

        async def other() -> None:
            order.append("other step")

        async def step() -> None:
            hosts["a"].spawn(other(), "other")
            hosts["a"].reached("here")
            order.append("rest of the step")

        moments = environment.moments
        moments.on_point(lambda node, point: moments.after_step(lambda: order.append("after it")))
        hosts["a"].spawn(step(), "step")
        await environment.timeline.sleep(1)
        assert order == ["rest of the step", "after it", "other step"]

    simulate(body)
