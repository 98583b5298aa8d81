"""One node in its container, with the verbs that act on it. Everything here blocks; the environment has threads."""

from __future__ import annotations

import io
import json
import tarfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker

from harness.environments.docker import inside
from harness.environments.docker.engine import LABEL_NODE, speaking
from harness.environments.docker.logs import bring_home
from harness.environments.docker.network import free_ports, is_port_taken
from harness.errors import HarnessError
from harness.system import NodeSpec

PORT_TRIES = 5
CLEAN_STOP_S = 10.0
INSIDE = "/stormproof/inside.py"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a run's containers live."""

    run: str
    image: str
    labels: Mapping[str, str]
    network: str
    ips: Mapping[str, str]


@dataclass(kw_only=True)
class ContainerNode:
    """A container that sleeps, and in it the node's program, which comes and goes."""

    client: Any
    place: Place
    spec: NodeSpec
    say: Callable[[str], None]
    addresses: dict[str, str] = field(default_factory=dict)
    """`name:port` as nodes know it -> where this machine reaches it."""
    deaths: list[str] = field(default_factory=list)
    """The last words of each life that ended of its own accord."""
    _container: Any = None
    _life: int = 0
    _running: str | None = None
    """The engine's id of the program that should be running."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def create(self) -> int:
        """Make and start the container; returns what CLOCK_MONOTONIC is in there. Raises HarnessError."""
        name = self.spec.name
        for _ in range(PORT_TRIES):
            ports = dict(zip(self.spec.ports, free_ports(len(self.spec.ports)), strict=True))
            with speaking(f"starting container {name}"):
                self._container = self._created(ports)
                try:
                    self._container.start()
                except docker.errors.APIError as error:
                    if not is_port_taken(error):
                        raise
                    self.say(f"port in use: one of {ports} for {name} was taken meanwhile, trying others")
                    self._container.remove(force=True, v=True)
                    continue
            self.addresses = {f"{name}:{port}": f"127.0.0.1:{here}" for port, here in ports.items()}
            here: int = self._ask("guard")["monotonic_ns"]
            return here
        raise HarnessError(
            f"port in use: {PORT_TRIES} times another program took a free port of 127.0.0.1 before {name} had it"
        )

    def _created(self, ports: Mapping[int, int]) -> Any:
        api, place, name = self.client.api, self.place, self.spec.name
        made = api.create_container(
            place.image,
            ["sleep", "1d"],
            name=f"{place.run}-{name}",
            hostname=name,
            labels={**place.labels, LABEL_NODE: name},
            ports=list(ports),
            volumes=[inside.NODE],
            host_config=api.create_host_config(
                port_bindings={port: ("127.0.0.1", here) for port, here in ports.items()},
                cap_add=["NET_ADMIN"],
                # Names resolve without a server, so that looking up a node that is down never stalls.
                extra_hosts=dict(place.ips),
            ),
            networking_config=api.create_networking_config(
                {place.network: api.create_endpoint_config(ipv4_address=place.ips[name])}
            ),
        )
        container = self.client.containers.get(made["Id"])
        config = {"name": name, "data": f"{inside.NODE}/data", "config": dict(self.spec.program.config)}
        files = {
            INSIDE: Path(inside.__file__).read_bytes(),
            f"{inside.NODE}/config.json": json.dumps(config).encode(),
        }
        container.put_archive("/", _tar(files))
        return container

    # Verbs: each tells what it did, or "" where there was nothing to do ----------------------------------------

    def boot(self) -> str:
        self._note_death()
        if self._running is not None:
            return ""
        self._life += 1
        arguments = {"main": self.spec.program.main, "life": self._life}
        with speaking(f"booting {self.spec.name}"):
            program = self._exec("boot", arguments)
            self.client.api.exec_start(program, detach=True)
        self._running = program
        answer = self._ask("booted", {"life": self._life})
        return f"{self.spec.name} ({answer['after']})" if answer["seen"] else ""

    def kill(self) -> str:
        self._note_death()
        self._running = None
        return self._changed(self._ask("kill"))

    def pause(self) -> str:
        return self._changed(self._ask("pause"))

    def resume(self) -> str:
        return self._changed(self._ask("resume"))

    def drop(self, sources: Sequence[str]) -> Mapping[str, Any]:
        """Drop packets from these nodes' addresses and no others; `counted` tells of those dropped until now."""
        answer = self._ask("drop", {"sources": list(sources)})
        if sorted(answer["sources"]) != sorted(sources):
            raise HarnessError(f"{self.spec.name} should drop packets from {sources}, but does from {answer}")
        return answer

    def set_clock(self, offset_s: float, rate: float) -> Mapping[str, Any]:
        return self._ask("set_clock", {"offset_s": offset_s, "rate": rate})

    def terminate(self) -> None:
        self._note_death()
        self._running = None
        if self._life:
            self._ask("terminate", {"timeout_s": CLEAN_STOP_S})

    def bring_logs_home(self, directory: Path, *, zero_ns: int) -> None:
        bring_home(self._container, self.spec.name, directory, zero_ns=zero_ns)

    @property
    def exists(self) -> bool:
        return self._container is not None

    def _changed(self, answer: Mapping[str, Any]) -> str:
        before, after = answer["before"], answer["after"]
        return "" if before == after else f"{self.spec.name} ({before} → {after})"

    def look(self) -> None:
        """Note if the program has ended of its own accord."""
        self._note_death()

    def _note_death(self) -> None:
        if self._running is None:
            return
        with speaking(f"asking after {self.spec.name}"):
            program = self.client.api.exec_inspect(self._running)
        if program["Running"]:
            return
        self._running = None
        words = self._ask("last_words")["words"]
        self.deaths.append(f"exit code {program['ExitCode']}\n{words}".strip())

    def _exec(self, verb: str, arguments: Mapping[str, Any]) -> str:
        command = ["python3", "-I", "-S", INSIDE, verb, json.dumps(dict(arguments))]
        # The program's Python is not isolated: it finds its package through the image's PYTHONPATH.
        program: str = self.client.api.exec_create(self._container.id, command)["Id"]
        return program

    def _ask(self, verb: str, arguments: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        # One at a time: a verb whose caller gave up still runs, and the next must find what it left.
        with self._lock, speaking(f"{verb} in {self.spec.name}"):
            program = self._exec(verb, arguments or {})
            told = self.client.api.exec_start(program, demux=True)
            code = self.client.api.exec_inspect(program)["ExitCode"]
        out, error = (b"" if part is None else part for part in told)
        if code:
            last = error.decode(errors="replace").strip().rpartition("\n")[2]
            raise HarnessError(f"{verb} in {self.spec.name} failed: {last}")
        answer: Mapping[str, Any] = json.loads(out)
        return answer


def _tar(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name.lstrip("/"))
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()
