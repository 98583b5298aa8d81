"""The worlds a scenario can be run in, as the command line composes them.

A world knows how to run a whole test inside it: the simulator brings its own event loop with virtual
time, the real ones use asyncio's.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import system_under_test
from harness.cli.console import remark
from harness.environments import interruptible
from harness.environments.docker import DockerEnvironment, engine, node_image
from harness.environments.environment import Environment
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.errors import HarnessError
from harness.lifetime.interruption import last_words, unwinding
from harness.seed import Seed
from harness.trace import Trace
from system_under_test.runtime.real import RealHost

T = TypeVar("T")

BASE_IMAGE = "STORMPROOF_BASE_IMAGE"


@dataclass(frozen=True, kw_only=True)
class WorldReport:
    """What a world adds to the record of a run."""

    facts: dict[str, Any] = field(default_factory=dict)
    """JSON-able: the regime drawn, the trace's hash, …"""


class World(Protocol):
    name: str
    faults: frozenset[str]
    about: str

    def run(
        self, main: Callable[[Environment], Coroutine[Any, Any, T]], *, seed: Seed, recording: Path | None
    ) -> tuple[T, WorldReport]:
        """Make a fresh environment and run `main` in it to its end. Raises HarnessError, UsageError.

        `recording`: where to keep the whole event trace, in worlds that have one.
        """


@dataclass(frozen=True)
class SimulatedWorld:
    """The deterministic simulator: one seed, one trace."""

    name: str = "simulated"
    faults: frozenset[str] = SimulatedEnvironment.faults
    about: str = "deterministic simulator in virtual time; needs nothing"

    def run(
        self, main: Callable[[Environment], Coroutine[Any, Any, T]], *, seed: Seed, recording: Path | None
    ) -> tuple[T, WorldReport]:
        trace = Trace(recording=recording)
        world: list[SimulatedEnvironment] = []

        async def inside(environment: SimulatedEnvironment) -> T:
            world.append(environment)
            return await main(environment)

        facts: dict[str, Any] = {}
        try:
            result = run_simulation(inside, seed.child("world"), trace)
        finally:
            trace.close()
            facts["trace_hash"] = trace.digest()
            facts["trace_events"] = trace.count
            if world:
                facts["regime"] = world[0].regime.to_json()
                facts["reached"] = dict(world[0].reached())
        return result, WorldReport(facts=facts)


@dataclass(frozen=True)
class DockerWorld:
    """Containers on this machine. STORMPROOF_BASE_IMAGE names the image that theirs is built on."""

    name: str = "docker"
    faults: frozenset[str] = DockerEnvironment.faults
    about: str = "containers on this machine: real processes, packets and disks; needs a Docker engine"

    def run(
        self, main: Callable[[Environment], Coroutine[Any, Any, T]], *, seed: Seed, recording: Path | None
    ) -> tuple[T, WorldReport]:
        package = Path(system_under_test.__file__).parent
        with engine() as client:
            say = partial(remark, by=self.name)
            image = node_image(client, package=package, base=os.environ.get(BASE_IMAGE) or None, say=say)
            run = f"stormproof-{secrets.token_hex(4)}"
            environment = DockerEnvironment(client, image=image, client_hosts=RealHost, run=run, say=say)
            with unwinding(_nothing_more):
                try:
                    result = interruptible.run(main(environment))
                finally:
                    _remove(environment)
        return result, WorldReport(facts={"world": {"image": image}})


def _nothing_more() -> None:
    """Told to end while containers are being removed: that goes on to its end."""


def _remove(environment: DockerEnvironment) -> None:
    """Whatever is still there, also where the teardown failed; an interrupted run says what came of it."""
    try:
        environment.remove()
    except HarnessError as error:
        last_words("world", f"not all of it could be removed ({error}); when the engine answers: stormproof cleanup")
        raise
    last_words("world", "faults were healed, containers and their network are removed")


simulated = SimulatedWorld()
docker = DockerWorld()
