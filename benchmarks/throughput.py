"""What a broker takes: sends a second and sends a processor second, 1 KiB each, of one broker process.

A controller with its NameServer and one to three brokers run as processes on loopback; this process sends, so many at a
A controller with its NameServer and one to three brokers run as processes on loopback; this process sends, many at a
to acknowledge every message. The processor seconds are the master's own, so other work on the machine strikes the sends
a second, but hardly the sends a processor second. `--profile` tells where the master's time goes, without replicas.

python benchmarks/throughput.py [--seconds S] [--at-once N] [--profile]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pstats
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from system_under_test.rocketmq.client.errors import ClientError
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.runtime.real import RealHost

BODY = b"x" * 1024
QUEUES = 16
WARM_UP = 500
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Measured:
    sends: int
    seconds: float
    processor_s: float
    """The master's, user and system."""

    @property
    def per_second(self) -> float:
        return self.sends / self.seconds

    @property
    def per_processor_second(self) -> float:
        return self.sends / self.processor_s


class Cluster:
    """Processes on loopback; the first broker becomes master."""

    def __init__(self, directory: Path, flush: str, replicas: int, profile: Path | None) -> None:
        self.directory = directory
        ports = free_ports(3 + 2 * (1 + replicas))
        self.name_server = f"127.0.0.1:{ports[0]}"
        self.processes = [
            start(
                directory,
                "c1",
                "system_under_test.rocketmq.node:nameserver",
                {
                    "listenPort": ports[0],
                    "enableControllerInNamesrv": True,
                    "controllerPort": ports[1],
                    "controllerDLegerPeers": f"c1-127.0.0.1:{ports[2]}",
                    "controllerDLegerSelfId": "c1",
                },
            )
        ]
        for number in range(1 + replicas):
            port = ports[3 + number]
            config = {
                "brokerAddr": f"127.0.0.1:{port}",
                "listenPort": port,
                "haListenPort": port + 1,
                "namesrvAddr": self.name_server,
                "enableControllerMode": True,
                "controllerAddr": f"127.0.0.1:{ports[1]}",
                "topics": {"load": QUEUES},
                "flushDiskType": flush,
                "allAckInSyncStateSet": True,
                "minInSyncReplicas": 1 + replicas,
            }
            name = f"b{number + 1}"
            main = "system_under_test.rocketmq.node:broker"
            self.processes.append(start(directory, name, main, config, profile if number == 0 else None))
            if number == 0:
                wait_for_role(directory, name)

    @property
    def master(self) -> int:
        return self.processes[1].pid

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--at-once", type=int, default=256)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    print(f"{'flush':6} {'replicas':>8} {'sends/s':>9} {'sends/processor s':>18}")
    for flush in ("ASYNC_FLUSH", "SYNC_FLUSH"):
        for replicas in range(3):
            measured = measure(flush, replicas, arguments.seconds, arguments.at_once)
            print(
                f"{flush.partition('_')[0].lower():6} {replicas:8} {measured.per_second:9,.0f} "
                f"{measured.per_processor_second:18,.0f}",
                flush=True,
            )
    if arguments.profile:
        with TemporaryDirectory() as directory:
            path = Path(directory) / "profile"
            measure("ASYNC_FLUSH", 0, arguments.seconds, arguments.at_once, path)
            pstats.Stats(str(path)).sort_stats("tottime").print_stats(30)


def measure(flush: str, replicas: int, seconds: float, at_once: int, profile: Path | None = None) -> Measured:
    with running(flush, replicas, profile) as cluster:
        return asyncio.run(load(cluster, seconds, at_once))


@contextmanager
def running(flush: str, replicas: int, profile: Path | None) -> Iterator[Cluster]:
    with TemporaryDirectory() as directory:
        cluster = Cluster(Path(directory), flush, replicas, profile)
        try:
            yield cluster
        finally:
            cluster.stop()


async def load(cluster: Cluster, seconds: float, at_once: int) -> Measured:
    host = RealHost("load", cluster.directory / "load")
    client = MessageClient(host, [cluster.name_server], 30.0)
    await until_served(client)
    await send_in_turn(client, WARM_UP)
    began_s, began_processor_s = time.monotonic(), processor_s(cluster.master)
    counts = await asyncio.gather(*(send_until(client, number, began_s + seconds) for number in range(at_once)))
    measured = Measured(
        sends=sum(counts),
        seconds=time.monotonic() - began_s,
        processor_s=processor_s(cluster.master) - began_processor_s,
    )
    client.close()
    await host.close()
    return measured


async def until_served(client: MessageClient) -> None:
    """All replicas are in the SyncStateSet, or sends would be refused."""
    while True:
        try:
            await client.send("load", 0, BODY)
            return
        except ClientError:
            await asyncio.sleep(0.2)


async def send_in_turn(client: MessageClient, count: int) -> None:
    for number in range(count):
        await client.send("load", number % QUEUES, BODY)


async def send_until(client: MessageClient, number: int, end_s: float) -> int:
    count = 0
    while time.monotonic() < end_s:
        await client.send("load", number % QUEUES, BODY)
        count += 1
    return count


def start(
    directory: Path, name: str, main_name: str, config: dict[str, Any], profile: Path | None = None
) -> subprocess.Popen[bytes]:
    path = directory / f"{name}.json"
    settings = {"name": name, "data": str(directory / name), "bind": "127.0.0.1", "config": config}
    path.write_text(json.dumps(settings), "utf-8")
    profiler = () if profile is None else ("-m", "cProfile", "-o", str(profile))
    command = [sys.executable, *profiler, "-m", "system_under_test.runtime.real", main_name, str(path)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def wait_for_role(directory: Path, name: str) -> None:
    events = directory / name / "events.jsonl"
    while not (events.exists() and '"event": "role"' in events.read_text("utf-8")):
        time.sleep(0.05)


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def free_ports(count: int) -> Sequence[int]:
    """Ports at a distance of two, so that the one after each is free as well, as far as one can tell."""
    sockets = [socket.socket() for _ in range(count * 3)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = sorted(each.getsockname()[1] for each in sockets)
    for each in sockets:
        each.close()
    chosen: list[int] = []
    for port in ports:
        if not chosen or port > chosen[-1] + 1:
            chosen.append(port)
    return chosen[:count]


if __name__ == "__main__":
    main()
