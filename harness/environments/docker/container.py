"""One node's container: made once, with a shell into it. Everything here blocks; the environment has threads."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker

from harness.environments.docker.command import run_command
from harness.environments.docker.engine import LABEL_NODE, speaking
from harness.environments.docker.network import free_ports, is_port_taken
from harness.environments.remote import agent
from harness.environments.remote.packed import tar_of
from harness.environments.remote.shell import Finished
from harness.errors import HarnessError

PORT_TRIES = 5
PERIOD_US, LEAST_QUOTA_US = 100_000, 1000
CAPABILITIES = ["NET_ADMIN", "SYS_PTRACE"]
"""What it takes to drop packets, and to see which processes of another user read the faked clock."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a run's containers have in common."""

    run: str
    labels: Mapping[str, str]
    network: str
    ips: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Disk:
    """What a container has bound: a file system that this machine has mounted."""

    place: Path
    seen_at: str
    """Where it is in the container."""

    def mount(self) -> Any:
        return docker.types.Mount(target=self.seen_at, source=str(self.place), type="bind")


@dataclass(frozen=True, kw_only=True)
class ContainerShell:
    """A `Shell` into a container."""

    client: Any
    container: Any
    name: str
    """The node's name, for messages."""

    def run(self, argv: Sequence[str]) -> Finished:
        with speaking(f"{argv[0]} in {self.name}"):
            return run_command(self.client, self.container.id, argv)

    def put(self, files: Mapping[str, bytes]) -> None:
        with speaking(f"writing {', '.join(files)} in {self.name}"):
            self.container.put_archive("/", tar_of(files))

    def fetch(self, path: str) -> bytes:
        with speaking(f"fetching {path} from {self.name}"):
            try:
                chunks, _ = self.container.get_archive(path)
                packed = io.BytesIO(b"".join(chunks))
            except docker.errors.NotFound:
                return b""
        with tarfile.open(fileobj=packed) as archive:
            file = archive.extractfile(archive.getmembers()[0])
            return b"" if file is None else file.read()


@dataclass(kw_only=True)
class Container:
    """A container that sleeps, for a node's program to come and go in."""

    client: Any
    setup: Setup
    name: str
    image: str
    ports: Sequence[int]
    say: Callable[[str], None]
    disk: Disk | None = None
    addresses: dict[str, str] = field(default_factory=dict)
    """`name:port` as nodes know it -> where this machine reaches it."""
    container: Any = None
    """The engine's own, once it was made."""

    def start(self) -> ContainerShell:
        """Make and start it. Raises HarnessError."""
        for _ in range(PORT_TRIES):
            ports = dict(zip(self.ports, free_ports(len(self.ports)), strict=True))
            with speaking(f"starting container {self.name}"):
                self.container = self._create(ports)
                try:
                    self.container.start()
                except docker.errors.APIError as error:
                    if not is_port_taken(error):
                        raise
                    self.say(f"port in use: one of {ports} for {self.name} was taken meanwhile, trying others")
                    self.container.remove(force=True, v=True)
                    continue
            self.addresses = {f"{self.name}:{port}": f"127.0.0.1:{here}" for port, here in ports.items()}
            return ContainerShell(client=self.client, container=self.container, name=self.name)
        raise HarnessError(
            f"port in use: {PORT_TRIES} times another program took a free port of 127.0.0.1 before {self.name} had it"
        )

    def limit_processor(self, share: float) -> None:
        """So much of one processor for all that runs in it; 0: as much as there is. Raises HarnessError."""
        quota_us = max(LEAST_QUOTA_US, round(share * PERIOD_US)) if share else -1
        with speaking(f"limiting the processor of {self.name}"):
            self.container.update(cpu_period=PERIOD_US, cpu_quota=quota_us)

    def _volumes(self) -> list[str]:
        """Where the container's own layers are too slow to write, but for what a disk is bound to."""
        return [place for place in (agent.LOGS, agent.NODE) if self.disk is None or self.disk.seen_at != place]

    def _create(self, ports: Mapping[int, int]) -> Any:
        api, setup, name = self.client.api, self.setup, self.name
        made = api.create_container(
            self.image,
            entrypoint=["sleep"],
            command=["1d"],
            name=f"{setup.run}-{name}",
            hostname=name,
            labels={**setup.labels, LABEL_NODE: name},
            ports=list(ports),
            volumes=self._volumes(),
            host_config=api.create_host_config(
                mounts=[] if self.disk is None else [self.disk.mount()],
                port_bindings={port: ("127.0.0.1", here) for port, here in ports.items()},
                cap_add=CAPABILITIES,
                # Names resolve without a server, so that looking up a node that is down never stalls.
                extra_hosts=dict(setup.ips),
            ),
            networking_config=api.create_networking_config(
                {setup.network: api.create_endpoint_config(ipv4_address=setup.ips[name])}
            ),
        )
        return self.client.containers.get(made["Id"])
