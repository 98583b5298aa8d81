"""What CMQ and RabbitMQ confirm in a second, three nodes of each in containers: durable messages of 1 KiB, one queue.

RabbitMQ comes from Debian's packages, with classic queues that have a mirror at every node, and with quorum queues; CMQ
has one group, and does not report entries. Messages are published with confirms by this process, so many outstanding at
a time, at the node that has the queue's leader. Each node of RabbitMQ has one scheduler, as each of CMQ has one thread
that computes. Systems come one after the other, and all share the machine's processors: so the processor time of all
processes of the three nodes is printed beside, by the engine's accounts, and that of this process, as its clients
differ.

The kernel counts the fsyncs of the leader's processes (`perf stat` on the tracepoints of fsync and fdatasync), which
slows nothing down. Without perf there is no such column.

All is done on the machine's disk as it is, and once more on disks of the harness, which lie in memory and on which
each fsync waits for 10 ms (impairment `slow-disk` with factor 6). There every write goes through a process of Python as
well, which the nodes wait for: that counts against who writes often, and tells nothing on a machine that is busy.

python benchmarks/cmq_against_rabbitmq.py [--seconds S] [--at-once N ...] [--disks usual slow]
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cmq_cluster import NODES, PAYLOAD, SETTINGS, Asker

from harness.environments.docker.containers import Containers
from harness.environments.docker.kind import DOCKER
from harness.environments.environment import Environment
from harness.environments.impairment import SlowDisk
from harness.environments.kind import Setting
from harness.environments.remote.environment import RemoteEnvironment
from harness.errors import HarnessError
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from system_under_test.cmq import wire
from workloads.systems.cmq.nodes import MAIN, PORT, address
from workloads.systems.rabbitmq.adapter import SYSTEM, RabbitmqSettings
from workloads.systems.rabbitmq.connection import connected, ended, opened_channel
from workloads.systems.rabbitmq.nodes import NODES as RABBITMQ_NODES
from workloads.systems.rabbitmq.queues import Kind, arguments_of

WARM_UP_S = 1.0
WARM_UP_AT_ONCE = 64
SLOW = SlowDisk(factor=6.0)
CMQ, MIRRORED, QUORUM = "CMQ", "RabbitMQ, mirrored", "RabbitMQ, quorum"
FSYNCS = ("syscalls:sys_enter_fsync", "syscalls:sys_enter_fdatasync")
PERF_ATTACHES_S = 0.3

Publish = Callable[[], Awaitable[object]]
"""Publishes one message; done once it is confirmed."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """What came of a turn."""

    latencies_s: Sequence[float]
    seconds: float
    nodes_s: float
    """Processor time of all three."""
    own_s: float
    fsyncs: int | None
    """Of the leader; None where nothing counts them."""

    @property
    def rate(self) -> float:
        return len(self.latencies_s) / self.seconds

    def line(self) -> str:
        messages = len(self.latencies_s)
        half_ms = sorted(self.latencies_s)[messages // 2] * 1e3
        an_fsync = f"{messages / self.fsyncs:8.1f}" if self.fsyncs else "       -"
        by_nodes, by_this = self.nodes_s / messages * 1e3, self.own_s / messages * 1e3
        return f"{self.rate:10,.0f} {half_ms:9.1f} {by_nodes:12.3f} {by_this:9.3f} {an_fsync}"


class Measured:
    """The containers of one system, asked in turns; `rates` is filled: what, at once -> messages a second."""

    def __init__(self, environment: Environment, chosen: argparse.Namespace, disk: str) -> None:
        assert isinstance(environment, RemoteEnvironment) and isinstance(environment.machines, Containers)
        self._machines = environment.machines
        self._chosen = chosen
        self._disk = disk
        self.rates: dict[tuple[str, int], float] = {}

    async def turns(self, what: str, nodes: Sequence[str], leader: str, publish: Publish) -> None:
        await published(publish, WARM_UP_S, WARM_UP_AT_ONCE)
        for at_once in self._chosen.at_once:
            with counted_fsyncs(self._pids(leader)) as count:
                nodes_s, own_s, began_s = self._processor_s(nodes), time.process_time(), time.monotonic()
                latencies_s = await published(publish, self._chosen.seconds, at_once)
                load = Load(
                    seconds=time.monotonic() - began_s,
                    own_s=time.process_time() - own_s,
                    nodes_s=self._processor_s(nodes) - nodes_s,
                    latencies_s=latencies_s,
                    fsyncs=count(),
                )
            self.rates[what, at_once] = load.rate
            print(f"{self._disk:5}  {what:18} {at_once:7} {load.line()}", flush=True)

    def _container(self, node: str) -> Any:
        return self._machines.client.containers.get(f"{self._machines.run}-{node}")

    def _pids(self, node: str) -> list[int]:
        """As this machine numbers them."""
        top = self._container(node).top()
        return [int(process[top["Titles"].index("PID")]) for process in top["Processes"]]

    def _processor_s(self, nodes: Sequence[str]) -> float:
        used_ns = 0
        for node in nodes:
            used = self._machines.client.api.stats(self._container(node).id, stream=False, one_shot=True)
            used_ns += used["cpu_stats"]["cpu_usage"]["total_usage"]
        return used_ns / 1e9


@contextmanager
def counted_fsyncs(pids: Sequence[int]) -> Iterator[Callable[[], int | None]]:
    """What is given says how many there were until then, once; None without perf."""
    if shutil.which("perf") is None:
        yield lambda: None
        return
    command = ["perf", "stat", "-x", ",", "-e", ",".join(FSYNCS), "-p", ",".join(map(str, pids))]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def count() -> int:
        process.send_signal(signal.SIGINT)
        _, lines = process.communicate()
        fields = [line.split(",") for line in lines.splitlines()]
        return sum(int(each[0]) for each in fields if len(each) > 2 and each[2] in FSYNCS)

    try:
        time.sleep(PERF_ATTACHES_S)
        yield count
    finally:
        process.kill()
        process.wait()


async def published(publish: Publish, seconds: float, at_once: int) -> list[float]:
    """How many seconds each message took."""
    latencies_s: list[float] = []
    end_s = time.monotonic() + seconds

    async def publish_in_turn() -> None:
        now_s = time.monotonic()
        while now_s < end_s:
            await publish()
            began_s, now_s = now_s, time.monotonic()
            latencies_s.append(now_s - began_s)

    await asyncio.gather(*(publish_in_turn() for _ in range(at_once)))
    return latencies_s


def cmq_nodes() -> tuple[NodeSpec, ...]:
    peers = ";".join(f"{name}-{address(name)}" for name in NODES)
    config = {"peers": peers, "groups": 1, **SETTINGS}
    return tuple(
        NodeSpec(
            name=name,
            groups=("nodes",),
            program=PythonProgram(main=MAIN, config={**config, "selfId": name}),
            ports=(PORT,),
        )
        for name in NODES
    )


async def measure_cmq(environment: Environment, measured: Measured) -> None:
    asker = Asker(environment.client_host("load"), {name: address(name) for name in NODES}, 1)
    await asker.ask("q", wire.create("q"))

    async def publish() -> None:
        await asker.ask("q", wire.produce("q", [PAYLOAD]))

    await measured.turns(CMQ, NODES, asker.leader_name("q"), publish)
    asker.close()


async def measure_rabbitmq(environment: Environment, measured: Measured) -> None:
    import aio_pika

    host = environment.client_host("load")
    await SYSTEM.ready(RABBITMQ, host, "queue")
    leader = RABBITMQ_NODES[0]
    for what, kind in ((MIRRORED, Kind.MIRRORED), (QUORUM, Kind.QUORUM)):
        connection = await connected(host, leader)
        channel = await opened_channel(connection)
        # The queue's leader is where it is declared. By this name it has mirrors, if it is a classic one.
        name = f"storm.{kind.value}"
        await channel.declare_queue(name, durable=True, arguments=arguments_of(kind))
        message = aio_pika.Message(PAYLOAD, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        exchange = channel.default_exchange
        await measured.turns(what, RABBITMQ_NODES, leader, lambda: exchange.publish(message, name))  # noqa: B023
        await ended(connection)


RABBITMQ = RabbitmqSettings(kind=Kind.MIRRORED)
SYSTEMS: Sequence[tuple[Sequence[NodeSpec], Callable[[Environment, Measured], Coroutine[Any, Any, None]]]] = (
    (cmq_nodes(), measure_cmq),
    (SYSTEM.nodes(RABBITMQ, None), measure_rabbitmq),
)


def measure(disk: str, chosen: argparse.Namespace) -> dict[tuple[str, int], float]:
    rates: dict[tuple[str, int], float] = {}
    for nodes, ask in SYSTEMS:

        async def in_containers(environment: Environment) -> None:
            try:
                await environment.start(nodes, Path(directory) / "nodes")  # noqa: B023
                if disk == "slow":
                    await environment.impair([node.name for node in nodes], SLOW)  # noqa: B023
                measured = Measured(environment, chosen, disk)
                await ask(environment, measured)  # noqa: B023
                rates.update(measured.rates)
            finally:
                await environment.stop()

        faults = frozenset({SLOW.kind}) if disk == "slow" else frozenset[str]()
        with TemporaryDirectory() as directory:
            DOCKER.run(in_containers, Setting(nodes=nodes, seed=Seed(1), say=print, faults=faults))
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="of each turn")
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 64, 512])
    parser.add_argument("--disks", nargs="+", choices=["usual", "slow"], default=["usual", "slow"])
    chosen = parser.parse_args()
    print("disk   what               at once messages/s  half, ms  ms of nodes  of this  an fsync")
    for disk in chosen.disks:
        try:
            rates = measure(disk, chosen)
        except HarnessError as error:
            raise SystemExit(str(error)) from error
        for at_once in chosen.at_once:
            ratios = (f"x{rates[CMQ, at_once] / rates[other, at_once]:.2f} of {other}" for other in (MIRRORED, QUORUM))
            print(f"{disk:5}  {at_once} at once: CMQ has {', '.join(ratios)}", flush=True)


if __name__ == "__main__":
    main()
