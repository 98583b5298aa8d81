"""One body of promises, every environment: what `harness.environments.environment` says of its verbs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import beacon
import pytest
from beacon import ask

from harness.environments.docker import DockerEnvironment, engine, node_images
from harness.environments.environment import Environment, Link
from harness.environments.simulated.environment import run_simulation
from harness.environments.simulated.regime import Regime
from harness.errors import HarnessError
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.runtime.real import RealHost

Body = Callable[[Environment], Coroutine[Any, Any, None]]
InEnvironment = Callable[[Body], None]
ATTEMPTS = 200


def nodes() -> list[NodeSpec]:
    pairs = (("a", "b"), ("b", "a"))
    return [
        NodeSpec(
            name=name,
            groups=(),
            program=PythonProgram(main="beacon:main", config={"other": other}),
            ports=(beacon.PORT,),
        )
        for name, other in pairs
    ]


async def until_answered(environment: Environment, node: str, question: str = "w") -> Any:
    for _ in range(ATTEMPTS):
        answer = await ask(environment.client_host("client"), node, question)
        if answer is not None:
            return answer
        await environment.timeline.sleep(0.1)
    raise AssertionError(f"{node} never answered")


def simulated(logs: Path) -> InEnvironment:
    def run(body: Body) -> None:
        async def inside(environment: Environment) -> None:
            await environment.start(nodes(), logs)
            await body(environment)
            await environment.stop()

        run_simulation(inside, Seed(1729), Trace(), regime=Regime.calm())

    return run


def docker(logs: Path) -> InEnvironment:
    def run(body: Body) -> None:
        async def inside(environment: Environment) -> None:
            try:
                await environment.start(nodes(), logs)
                await body(environment)
            finally:
                await environment.stop()

        with engine() as client:
            images = node_images(client, nodes(), base=None, say=print)
            name = f"stormproof-test-{secrets.token_hex(4)}"
            environment = DockerEnvironment(
                client, image_of=images.__getitem__, client_hosts=RealHost, run=name, say=print
            )
            asyncio.run(inside(environment))

    return run


@pytest.fixture(params=[simulated, pytest.param(docker, marks=pytest.mark.docker)])
def in_environment(request: pytest.FixtureRequest, tmp_path: Path) -> InEnvironment:
    made: InEnvironment = request.param(tmp_path)
    return made


def test_a_cut_stops_one_direction_and_verbs_are_idempotent(in_environment: InEnvironment) -> None:
    async def body(environment: Environment) -> None:
        await until_answered(environment, "b")
        assert await until_answered(environment, "a", ">") is True
        assert await until_answered(environment, "a", "h") is True
        assert (await environment.cut([Link("b", "a")])).happened
        assert not (await environment.cut([Link("b", "a")])).happened
        client = environment.client_host("client")
        assert await ask(client, "a", ">", 10.0) is False
        assert await ask(client, "a", "s", 10.0) is False, "connections that were there fall silent as well"
        assert await ask(client, "b", "w") is not None, "clients are outside of partitions"
        assert not (await environment.heal([Link("a", "b")])).happened
        assert (await environment.heal()).happened
        assert not (await environment.heal()).happened
        assert await ask(client, "a", ">", 10.0) is True

    in_environment(body)


def test_a_killed_node_is_gone_until_it_boots_on_its_own_disk(in_environment: InEnvironment) -> None:
    async def body(environment: Environment) -> None:
        assert await until_answered(environment, "a", "+") == 1
        assert (await environment.kill(["a"])).happened
        assert not (await environment.kill(["a"])).happened
        assert await ask(environment.client_host("client"), "a", "=") is None
        assert (await environment.boot(["a"])).happened
        assert not (await environment.boot(["a"])).happened
        assert await until_answered(environment, "a", "=") == 1
        assert await until_answered(environment, "a", "f") == 0, "a killed process runs nothing more"
        assert environment.panics() == {}

    in_environment(body)


def test_a_paused_node_is_silent_until_it_is_resumed(in_environment: InEnvironment) -> None:
    async def body(environment: Environment) -> None:
        await until_answered(environment, "a")
        assert (await environment.pause(["a"])).happened
        assert not (await environment.pause(["a"])).happened
        assert await ask(environment.client_host("client"), "a", "=") is None
        assert (await environment.resume(["a"])).happened
        assert not (await environment.resume(["a"])).happened
        assert await until_answered(environment, "a", "=") == 0

    in_environment(body)


def test_a_clock_is_wrong_on_one_node_alone_and_monotonic_time_goes_on(in_environment: InEnvironment) -> None:
    async def body(environment: Environment) -> None:
        async def wall_minus_monotonic_s(node: str) -> float:
            return float(await until_answered(environment, node, "w") - await until_answered(environment, node, "m"))

        before = {node: await wall_minus_monotonic_s(node) for node in ("a", "b")}
        monotonic_ns = await until_answered(environment, "a", "m")
        assert (await environment.set_clock("a", offset_s=-500.0, rate=1.0)).happened
        after = {node: await wall_minus_monotonic_s(node) for node in ("a", "b")}
        assert (after["a"] - before["a"]) / 1e9 == pytest.approx(-500.0, abs=1.0)
        assert (after["b"] - before["b"]) / 1e9 == pytest.approx(0.0, abs=1.0)
        assert 0 < await until_answered(environment, "a", "m") - monotonic_ns < 60e9
        assert (await environment.set_clock("a", offset_s=0.0, rate=1.0)).happened
        assert (await wall_minus_monotonic_s("a") - before["a"]) / 1e9 == pytest.approx(0.0, abs=1.0)

    in_environment(body)


def test_a_verb_for_a_node_that_is_not_there_says_so(in_environment: InEnvironment) -> None:
    async def body(environment: Environment) -> None:
        with pytest.raises(HarnessError, match=r"no node is called .*nobody"):
            await environment.kill(["nobody"])
        with pytest.raises(HarnessError, match="'a'"):
            environment.client_host("a")

    in_environment(body)
