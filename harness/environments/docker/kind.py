"""Containers as a kind of environment: images first, then the test, and nothing is left whatever happens."""

from __future__ import annotations

import importlib
import os
import secrets
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from harness.environments import interruptible
from harness.environments.docker.engine import engine
from harness.environments.docker.environment import DockerEnvironment
from harness.environments.docker.image import node_images
from harness.environments.environment import Environment
from harness.environments.kind import Setting
from harness.environments.remote.launch import RUNNER
from harness.errors import HarnessError
from harness.lifetime.interruption import last_words, unwinding
from harness.program import Command, PythonProgram

T = TypeVar("T")

BASE_IMAGE = "STORMPROOF_BASE_IMAGE"
"""Names the image that those of nodes are built on."""


@dataclass(frozen=True)
class Docker:
    """`EnvironmentKind`."""

    name: str = "docker"
    faults: frozenset[str] = DockerEnvironment.faults
    has_moments: bool = False
    programs: tuple[type, ...] = (PythonProgram, Command)
    about: str = "containers on this machine: real processes, packets and disks; needs a Docker engine"

    def run(
        self, main: Callable[[Environment], Coroutine[Any, Any, T]], setting: Setting
    ) -> tuple[T, Mapping[str, Any]]:
        with engine() as client:
            images = node_images(client, setting.nodes, base=os.environ.get(BASE_IMAGE) or None, say=setting.say)
            environment = DockerEnvironment(
                client,
                image_of=images.__getitem__,
                client_hosts=importlib.import_module(RUNNER).RealHost,
                run=f"stormproof-{secrets.token_hex(4)}",
                say=setting.say,
            )
            with unwinding(_nothing_more):
                try:
                    result = interruptible.run(main(environment))
                finally:
                    _remove(environment)
        return result, {"images": images}


def _nothing_more() -> None:
    """Interrupted while containers are being removed: that goes on to its end."""


def _remove(environment: DockerEnvironment) -> None:
    """Whatever is still there, also where the teardown failed; an interrupted run says what came of it."""
    try:
        environment.remove()
    except HarnessError as error:
        last_words(
            "environment", f"not all of it could be removed ({error}); when the engine answers: stormproof cleanup"
        )
        raise
    last_words("environment", "faults were healed, containers and their network are removed")


DOCKER = Docker()
