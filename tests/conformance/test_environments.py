"""One body of promises, every environment: what `harness.environments.environment` says of its verbs."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.environments.docker import docker_environment, engine, node_images
from harness.environments.docker.disks import DISK_FAULTS
from harness.environments.environment import Environment
from harness.environments.impairment import OF_CLOCKS
from harness.environments.remote.environment import RemoteEnvironment
from harness.environments.simulated.environment import run_simulation
from harness.environments.simulated.regime import Regime
from harness.environments.ssh.inventory import parse_inventory
from harness.environments.ssh.machines import SshMachines
from harness.seed import Seed
from harness.trace import Trace
from system_under_test.runtime.real import RealHost
from tests.conformance.impairment_promises import IMPAIRMENT_PROMISES
from tests.conformance.promises import PROMISES, Promise, nodes
from tests.ssh.machines import rack

ALL = (*PROMISES, *IMPAIRMENT_PROMISES)


@pytest.mark.parametrize("promise", ALL, ids=lambda promise: promise.__name__)
def test_the_simulator_keeps_the_promise(promise: Promise, tmp_path: Path) -> None:
    async def inside(environment: Environment) -> None:
        await environment.start(nodes(), tmp_path)
        await promise(environment)
        await environment.stop()

    run_simulation(inside, Seed(1729), Trace(), regime=Regime.calm())


@pytest.mark.parametrize("seed", range(3))
def test_one_simulated_world_keeps_all_promises_one_after_the_other(seed: int, tmp_path: Path) -> None:
    async def inside(environment: Environment) -> None:
        await environment.start(nodes(), tmp_path)
        await keep_all(environment)
        await environment.stop()

    run_simulation(inside, Seed(seed), Trace(), regime=Regime.calm())


@pytest.mark.docker
@pytest.mark.gate
def test_containers_keep_all_promises(tmp_path: Path) -> None:
    async def inside(environment: Environment) -> None:
        try:
            await environment.start(nodes(), tmp_path)
            await keep_all(environment)
        finally:
            await environment.stop()

    with engine() as client:
        images = node_images(client, nodes(), base=None, say=print)
        environment = docker_environment(
            client,
            image_of=images.__getitem__,
            client_hosts=RealHost,
            run=f"stormproof-test-{secrets.token_hex(4)}",
            say=print,
            wanted=DISK_FAULTS | OF_CLOCKS,
        )
        asyncio.run(inside(environment))


@pytest.mark.docker
@pytest.mark.parametrize(
    "promises",
    [
        pytest.param(PROMISES, id="verbs", marks=pytest.mark.gate),
        pytest.param(IMPAIRMENT_PROMISES, id="impairments", marks=pytest.mark.thorough),
    ],
)
def test_machines_over_ssh_keep_all_promises(promises: Sequence[Promise], tmp_path: Path) -> None:
    """What impairs them is the program that does so in containers."""

    async def inside(environment: Environment) -> None:
        try:
            await environment.start(nodes(), tmp_path)
            await keep_all(environment, promises)
        finally:
            await environment.stop()

    with engine() as client, rack(client, ("m1", "m2"), tmp_path) as made:
        inventory = made.inventory({"m1": 'node = "a"', "m2": 'node = "b"'}, user="storm")
        machines = SshMachines(parse_inventory(inventory, "hosts.toml"), faults=RemoteEnvironment.faults, say=print)
        asyncio.run(inside(RemoteEnvironment(machines, client_hosts=RealHost)))


async def keep_all(environment: Environment, promises: Sequence[Promise] = ALL) -> None:
    """Of one world: each finds what those before it left."""
    for promise in promises:
        try:
            await promise(environment)
        except BaseException as error:
            error.add_note(f"the promise: {promise.__name__}")
            raise
