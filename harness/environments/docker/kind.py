"""Containers as a kind of environment: images first, then the test, and nothing is left whatever happens."""

from __future__ import annotations

import importlib
import os
import secrets
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from harness.environments.docker.containers import docker_environment
from harness.environments.docker.disks import DISK_FAULTS
from harness.environments.docker.engine import engine
from harness.environments.docker.image import node_images
from harness.environments.docker.java_image import require_distribution
from harness.environments.environment import Environment
from harness.environments.kind import Setting, refuse_inventory
from harness.environments.remote.environment import RemoteEnvironment
from harness.environments.remote.launch import RUNNER
from harness.environments.remote.session import carry_out
from harness.errors import UsageError
from harness.program import Command, Installed, JavaRelease, PythonProgram
from harness.system import NodeSpec

T = TypeVar("T")

BASE_IMAGE = "STORMPROOF_BASE_IMAGE"
"""Names the image that those of nodes are built on."""
DONE, REMEDY = "containers and their network are removed", "when the engine answers: stormproof cleanup"


@dataclass(frozen=True)
class Docker:
    """`EnvironmentKind`."""

    name: str = "docker"
    faults: frozenset[str] = RemoteEnvironment.faults | DISK_FAULTS
    has_moments: bool = False
    takes_inventory: bool = False
    has_packets: bool = True
    reaches_clients: bool = False
    programs: tuple[type, ...] = (PythonProgram, Command)
    about: str = "containers on this machine: real processes, packets and disks; needs a Docker engine"

    def require_placed(self, nodes: Sequence[NodeSpec], inventory: str) -> None:
        refuse_inventory(self.name, inventory)
        for node in nodes:
            image = node.program.image if isinstance(node.program, Command) else None
            if isinstance(image, Installed):
                raise UsageError(
                    f"environment 'docker' runs nothing that is installed on machines: node {node.name} needs an image "
                    "that has its program; name one, or use --environment ssh"
                )
            if isinstance(image, JavaRelease) and isinstance(image.content, Path):
                require_distribution(image.content)

    def run(
        self, main: Callable[[Environment], Coroutine[Any, Any, T]], setting: Setting
    ) -> tuple[T, Mapping[str, Any]]:
        with engine() as client:
            images = node_images(client, setting.nodes, base=os.environ.get(BASE_IMAGE) or None, say=setting.say)
            environment = docker_environment(
                client,
                image_of=images.__getitem__,
                client_hosts=importlib.import_module(RUNNER).RealHost,
                run=f"stormproof-{secrets.token_hex(4)}",
                say=setting.say,
                wanted=setting.faults,
                seed=setting.seed,
                captures=setting.captures,
            )
            result = carry_out(main, environment, done=DONE, remedy=REMEDY)
        return result, {"images": images}


DOCKER = Docker()
