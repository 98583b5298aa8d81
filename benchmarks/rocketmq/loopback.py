"""Broker processes on loopback, and the load that one process sends them: what benchmarks of brokers have in common.

A NameServer with a controller serves all groups of a benchmark. Groups run side by side, and each is under load in its
turn, so that other work on the machine strikes all of them alike; one without load costs next to nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.runtime.real import RealHost

HERE = Path(__file__).resolve().parents[2]
BODY = b"x" * 1024
QUEUES = 16
WARM_UP = 300
TICKS = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 60.0
PORTS = 12_000, 30_000
NAME_SERVER, BROKER, PROXY = (f"system_under_test.rocketmq.node:{name}" for name in ("nameserver", "broker", "proxy"))


@dataclass(frozen=True, kw_only=True)
class Group:
    """A master and its slaves, with a topic of their own; the first broker is the master."""

    name: str
    slaves: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of all its brokers; what a master or a slave has beyond them, below."""
    master: Mapping[str, Any] = field(default_factory=dict)
    slave: Mapping[str, Any] = field(default_factory=dict)
    checkout: Path = HERE
    """Whose code its brokers run."""
    profile: Path | None = None
    """Where the master's profile goes."""

    @property
    def topic(self) -> str:
        return f"load-{self.name}"

    @property
    def brokers(self) -> tuple[str, ...]:
        return tuple(f"{self.name}-{number}" for number in range(1 + self.slaves))


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a group was sent in one turn."""

    sends: int
    seconds: float
    processor_s: float
    """The master's, user and system."""
    group_processor_s: float
    """That of all its brokers."""
    latencies_s: tuple[float, ...] = ()
    """Sorted."""

    @property
    def per_second(self) -> float:
        return self.sends / self.seconds

    @property
    def per_processor_second(self) -> float:
        return self.sends / self.processor_s

    def latency_s(self, share: float) -> float:
        """Which so many of the sends were not above."""
        return self.latencies_s[min(len(self.latencies_s) - 1, int(share * len(self.latencies_s)))]


class Processes:
    """Of nodes on loopback, each with its directory below `directory`, until `stop`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(
        self, name: str, main: str, config: Mapping[str, Any], checkout: Path = HERE, profile: Path | None = None
    ) -> None:
        path = self.directory / f"{name}.json"
        settings = {"name": name, "data": str(self.directory / name), "bind": "127.0.0.1", "config": config}
        path.write_text(json.dumps(settings), "utf-8")
        profiler = () if profile is None else ("-m", "cProfile", "-o", str(profile))
        command = [sys.executable, *profiler, "-m", "system_under_test.runtime.real", main, str(path)]
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        self.processes[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=checkout, env=environment)

    def pid(self, name: str) -> int:
        return self.processes[name].pid

    def stop(self) -> None:
        for process in reversed(self.processes.values()):
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            process.wait()


class Cluster(Processes):
    """A NameServer that is the controller as well, and groups of brokers."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        name_server, self._controller, raft = free_ports(3)
        self.name_server = f"127.0.0.1:{name_server}"
        config = {
            "listenPort": name_server,
            "enableControllerInNamesrv": True,
            "controllerPort": self._controller,
            "controllerDLegerPeers": f"c1-127.0.0.1:{raft}",
            "controllerDLegerSelfId": "c1",
        }
        self.start("c1", NAME_SERVER, config)

    def start_groups(self, groups: Sequence[Group]) -> None:
        """Returns when each of them has its master; its slaves may have nothing yet."""
        for group in groups:
            self._start_broker(group, 0, {**group.settings, **group.master})
        for group in groups:
            self.wait_for(group.brokers[0], "role" if group.settings.get("enableControllerMode", True) else "running")
        for group in groups:
            for number in range(1, 1 + group.slaves):
                self._start_broker(group, number, {**group.settings, **group.slave})

    def _start_broker(self, group: Group, number: int, settings: Mapping[str, Any]) -> None:
        (port,) = free_ports(1)
        config = {
            "brokerAddr": f"127.0.0.1:{port}",
            "listenPort": port,
            "haListenPort": port + 1,
            "namesrvAddr": self.name_server,
            "brokerName": group.name,
            "brokerId": number,
            "topics": {group.topic: QUEUES},
            "enableControllerMode": True,
            "controllerAddr": f"127.0.0.1:{self._controller}",
            **settings,
        }
        profile = group.profile if number == 0 else None
        self.start(group.brokers[number], BROKER, config, group.checkout, profile)

    def wait_for(self, name: str, event: str) -> None:
        """Until the node has said so. Raises SystemExit if it ended before, or did not in a long time."""
        events = self.directory / name / "events.jsonl"
        end_s = time.monotonic() + PATIENCE_S
        while not (events.exists() and f'"event": "{event}"' in events.read_text("utf-8")):
            if self.processes[name].poll() is not None or time.monotonic() > end_s:
                raise SystemExit(f"{name} did not come to the event {event!r}")
            time.sleep(0.05)


@contextmanager
def running(groups: Sequence[Group]) -> Iterator[Cluster]:
    with TemporaryDirectory() as directory:
        cluster = Cluster(Path(directory))
        try:
            cluster.start_groups(groups)
            yield cluster
        finally:
            cluster.stop()


class Sender:
    """Sends to the groups of a cluster, many at once; each sender has a connection of its own to each master."""

    def __init__(self, cluster: Cluster, client: MessageClient) -> None:
        self._cluster = cluster
        self._client = client

    async def make_ready(self, group: Group) -> None:
        """Until sends succeed and every slave has some of the log; caches are warm then."""
        end_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                await self._client.send(group.topic, 0, BODY)
                break
            except ClientError as error:
                if time.monotonic() > end_s:
                    raise SystemExit(f"{group.name} takes no messages: {error}") from error
                await asyncio.sleep(0.2)
        await asyncio.gather(*(self._client.send(group.topic, n % QUEUES, BODY) for n in range(WARM_UP)))
        for slave in group.brokers[1:]:
            self._cluster.wait_for(slave, "written")

    async def load(self, group: Group, seconds: float, at_once: int) -> Load:
        """One turn of so many seconds."""
        pids = [self._cluster.pid(broker) for broker in group.brokers]
        before_s = [processor_s(pid) for pid in pids]
        began_s = time.monotonic()
        latencies_s: list[float] = []
        await asyncio.gather(
            *(self._send_until(group, n % QUEUES, began_s + seconds, latencies_s) for n in range(at_once))
        )
        took_s = time.monotonic() - began_s
        used_s = [processor_s(pid) - before for pid, before in zip(pids, before_s, strict=True)]
        return Load(
            sends=len(latencies_s),
            seconds=took_s,
            processor_s=used_s[0],
            group_processor_s=sum(used_s),
            latencies_s=tuple(sorted(latencies_s)),
        )

    async def _send_until(self, group: Group, queue_id: int, end_s: float, latencies_s: list[float]) -> None:
        now_s = time.monotonic()
        while now_s < end_s:
            await self._client.send(group.topic, queue_id, BODY)
            sent_s, now_s = now_s, time.monotonic()
            latencies_s.append(now_s - sent_s)


@asynccontextmanager
async def sender(cluster: Cluster) -> AsyncIterator[Sender]:
    host = RealHost("load", cluster.directory / "load")
    client = MessageClient(host, [cluster.name_server], 30.0)
    try:
        yield Sender(cluster, client)
    finally:
        client.close()
        await host.close()


async def in_turns(
    cluster: Cluster, groups: Sequence[Group], rounds: int, seconds: float, at_once: int
) -> dict[str, list[Load]]:
    """Group → its turns; every second round goes the other way, so that none is always the first."""
    loads: dict[str, list[Load]] = {group.name: [] for group in groups}
    async with sender(cluster) as sending:
        for group in groups:
            await sending.make_ready(group)
        for number in range(rounds):
            for group in groups if number % 2 == 0 else reversed(groups):
                loads[group.name].append(await sending.load(group, seconds, at_once))
    return loads


def total(loads: Sequence[Load]) -> Load:
    """All turns of a group as one."""
    return Load(
        sends=sum(load.sends for load in loads),
        seconds=sum(load.seconds for load in loads),
        processor_s=sum(load.processor_s for load in loads),
        group_processor_s=sum(load.group_processor_s for load in loads),
        latencies_s=tuple(sorted(latency_s for load in loads for latency_s in load.latencies_s)),
    )


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def free_ports(count: int) -> Sequence[int]:
    """Ports of which the one after each is free as well, as far as one can tell; none that the kernel gives to those
    who connect."""
    chosen: list[int] = []
    while len(chosen) < count:
        port = random.randrange(*PORTS, 2)
        if port not in chosen and is_free(port) and is_free(port + 1):
            chosen.append(port)
    return chosen


def is_free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
