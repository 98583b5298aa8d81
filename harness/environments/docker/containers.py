"""A run's containers as machines of nodes: one network, one container a node.

Clients come in through ports published on 127.0.0.1. What is made is found again by its labels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from harness.environments.docker import leftovers
from harness.environments.docker.container import Container, Setup
from harness.environments.docker.control_groups import GroupsOfContainers, require_limits
from harness.environments.docker.disks import DISK_FAULTS, Disks, require_seen
from harness.environments.docker.engine import LABEL_LOGS, LABEL_START, SAME_CLOCK_NS, labels
from harness.environments.docker.network import make_network
from harness.environments.remote.environment import ClientHosts, RemoteEnvironment
from harness.environments.remote.machines import ByItself, Home, NodeDisk, NodeMachine, Squeezed
from harness.errors import HarnessError
from harness.seed import Seed
from harness.system import NodeSpec

ANY_SEED = Seed(0)


class Containers:
    """`Machines` that are made for a run. `run` names everything it makes."""

    name = "docker"
    kind = "containers"

    def __init__(
        self, client: Any, *, image_of: Callable[[str], str], run: str, say: Callable[[str], None], disks: Disks | None
    ) -> None:
        """`image_of`: node -> the image of its container. `disks`: None where nothing is done to disks."""
        self.run = run
        self.client = client
        self._image_of = image_of
        self._say = say
        self._disks = disks
        self.own_faults = frozenset[str]() if disks is None else DISK_FAULTS
        self._labels = labels(run, datetime.now(UTC).isoformat(timespec="seconds"))
        self._setup: Setup | None = None
        self._containers: list[Container] = []
        self._groups = GroupsOfContainers(run)

    def take(self, nodes: Sequence[NodeSpec], home: Home) -> Mapping[str, str]:
        network, ips = make_network(self.client, self.run, self._labels, [spec.name for spec in nodes])
        # By these labels clean-up brings logs home, if this process cannot.
        found_again = {**self._labels, LABEL_LOGS: str(home.logs.absolute()), LABEL_START: str(home.start_ns)}
        self._setup = Setup(run=self.run, labels=found_again, network=network.name, ips=ips)
        return ips

    def open(self, spec: NodeSpec) -> NodeMachine:
        assert self._setup is not None, "taken before"
        container = Container(
            client=self.client,
            setup=self._setup,
            name=spec.name,
            image=self._image_of(spec.name),
            ports=spec.ports,
            say=self._say,
            disk=None if self._disks is None else self._disks.mount(spec),
        )
        shell = container.start()
        if container.disk is not None:
            require_seen(container.disk, shell)
        self._containers.append(container)
        return NodeMachine(shell=shell)

    def clock_ahead_ns(self, node: str, monotonic_ns: int) -> int:
        """Nothing, unless the engine is in a machine of its own."""
        ahead_ns = monotonic_ns - time.monotonic_ns()
        return ahead_ns if abs(ahead_ns) > SAME_CLOCK_NS else 0

    def reached(self) -> Mapping[str, str]:
        return {known: here for one in self._containers for known, here in one.addresses.items()}

    def limit_processor(self, node: ByItself, share: float) -> None:
        self._container(node.name).limit_processor(share)

    def throttle(self, node: ByItself, number: int, pids: Sequence[int], share: float) -> None:
        self._groups.throttle(self._container(node.name), number, pids, share)

    def unthrottle(self, node: ByItself, number: int) -> int:
        return self._groups.unthrottle(self._container(node.name), number, node.supervisor())

    def squeeze_memory(self, node: ByItself, left_bytes: int) -> Squeezed:
        return self._groups.squeeze(self._container(node.name), node.supervisor(), left_bytes)

    def release_memory(self, node: ByItself) -> Squeezed:
        return self._groups.release(self._container(node.name), node.supervisor())

    def _container(self, node: str) -> Container:
        return next(one for one in self._containers if one.name == node)

    def disk(self, node: str) -> NodeDisk:
        if self._disks is None:
            raise HarnessError(
                f"{node} keeps its data on the engine's disk, to which nothing happens: no fault of disks was announced"
            )
        return self._disks.of(node)

    def require_kept(self) -> None:
        """Containers end with nobody but the run."""

    def release(self) -> None:
        try:
            leftovers.remove_run(self.client, self.run)
            self._groups.end()
        finally:
            if self._disks is not None:
                self._disks.end()


def docker_environment(
    client: Any,
    *,
    image_of: Callable[[str], str],
    client_hosts: ClientHosts,
    run: str,
    say: Callable[[str], None],
    wanted: frozenset[str] | None = None,
    seed: Seed = ANY_SEED,
    captures: bool = False,
) -> RemoteEnvironment:
    """`Environment` of containers; `run` names all that it makes, `image_of` is node -> the image of its container.

    `seed` decides what a loss of power leaves. Raises HarnessError where disks are wanted and cannot be mounted here,
    or faults that take control groups, and none can be made here.
    """
    prepared = wanted or frozenset()
    require_limits(prepared)
    disks = Disks(seed) if prepared & DISK_FAULTS else None
    containers = Containers(client, image_of=image_of, run=run, say=say, disks=disks)
    return RemoteEnvironment(containers, client_hosts=client_hosts, wanted=wanted, captures=captures)
