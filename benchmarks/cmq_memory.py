"""Whether nodes of CMQ stay as they are while messages pass through: resident memory, bytes on the disk, and a restart.

Three nodes as processes with their files on real disks, one group. Messages of 100 bytes are produced, 16 a request and
many requests at once, and acknowledged, 16 a request as well, as soon as they are there. Memory is looked at before,
after each tenth, and several times a second for the most. In the end the nodes are stopped and start again one after
the other: a restart is measured from the start of the process until it answers, Python's own start included, with the
log behind the newest snapshot as it happens to be. Then each makes one more snapshot, and on the disk are the log that
is kept behind it, and the newest file of messages.

python benchmarks/cmq_memory.py [--messages N] [--at-once N] [--set NAME=VALUE ...]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cmq_cluster import NODES, Asker, Cluster, asking, running
from processes import PATIENCE_S

from system_under_test.cmq import wire
from system_under_test.remoting.client import RemotingClient
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed
from system_under_test.runtime.real import RealHost

BODY = bytes(100)
QUEUE = "passing"
WARM_UP = 20_000
"""So many messages pass before memory is looked at for the first time."""
PARTS = 10
LOOK_EVERY_S = 0.2
SNAPSHOT_AFTER_MS = 2_000
"""Of nodes that have started again."""
MIB = 2**20


def resident_bytes(cluster: Cluster) -> dict[str, int]:
    return {name: cluster.resident_bytes(name) for name in NODES}


def disk_bytes(directory: Path) -> int:
    """Of all files of a node but its events."""
    total = 0
    for path in (directory / "disk").rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def settled_disk_bytes(cluster: Cluster) -> dict[str, int]:
    """Once it does not change any more."""
    before, sizes = {}, {name: disk_bytes(cluster.directory / name) for name in NODES}
    while sizes != before:
        time.sleep(3 * SNAPSHOT_AFTER_MS / 1e3)
        before, sizes = sizes, {name: disk_bytes(cluster.directory / name) for name in NODES}
    return sizes


async def pass_through(asker: Asker, messages: int, at_once: int) -> None:
    """They are produced and acknowledged."""
    requests = iter(range(messages // wire.MOST_MESSAGES))

    async def pass_some() -> None:
        for _ in requests:
            answer = await asker.ask(QUEUE, wire.produce(QUEUE, [BODY] * wire.MOST_MESSAGES))
            first = wire.decode_produced(answer.body)
            await asker.ask(QUEUE, wire.ack(QUEUE, range(first, first + wire.MOST_MESSAGES)))

    await asyncio.gather(*(pass_some() for _ in range(at_once)))


def in_mib(sizes: Mapping[str, int]) -> str:
    return "  ".join(f"{name} {size / MIB:6.1f}" for name, size in sizes.items())


async def look(cluster: Cluster, most: dict[str, int], most_disk: dict[str, int]) -> None:
    """Until it is cancelled."""
    while True:
        for name in NODES:
            most[name] = max(most.get(name, 0), cluster.resident_bytes(name))
            most_disk[name] = max(most_disk.get(name, 0), disk_bytes(cluster.directory / name))
        await asyncio.sleep(LOOK_EVERY_S)


async def measure(cluster: Cluster, messages: int, at_once: int) -> None:
    async with asking(cluster) as asker:
        await measure_by(asker, cluster, messages, at_once)


async def measure_by(asker: Asker, cluster: Cluster, messages: int, at_once: int) -> None:
    await asker.ask(QUEUE, wire.create(QUEUE))
    await pass_through(asker, WARM_UP, at_once)
    print("messages   resident MiB")
    before, most, most_disk = resident_bytes(cluster), dict[str, int](), dict[str, int]()
    print(f"{0:9,}  {in_mib(before)}", flush=True)
    looking = asyncio.create_task(look(cluster, most, most_disk))
    began_s = time.monotonic()
    for part in range(1, PARTS + 1):
        await pass_through(asker, messages // PARTS, at_once)
        print(f"{messages // PARTS * part:9,}  {in_mib(resident_bytes(cluster))}", flush=True)
    took_s = time.monotonic() - began_s
    looking.cancel()
    grown = {name: size - before[name] for name, size in most.items()}
    print(f"most, above the first: {in_mib(grown)} MiB")
    print(f"on the disk: {in_mib({name: disk_bytes(cluster.directory / name) for name in NODES})} MiB")
    print(f"most of it:  {in_mib(most_disk)} MiB")
    print(f"{messages / took_s:,.0f} messages/s produced and acknowledged; {asker.leader_name(QUEUE)} led")


async def answers(cluster: Cluster, name: str) -> None:
    host = RealHost("observer", cluster.directory / "observer")
    remoting = RemotingClient(host)
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        with suppress(ConnectFailed, ConnectionClosed, TimeoutError):
            await remoting.invoke(cluster.addresses[name], wire.status(), 1.0)
            break
        await asyncio.sleep(0.01)
    else:
        raise SystemExit(f"{name} does not answer")
    remoting.close()
    await host.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE, a setting of the nodes")
    chosen = parser.parse_args()
    settings = {name: json.loads(value) for name, value in (each.split("=", 1) for each in chosen.set)}
    with running({**settings, "groups": 1}) as cluster:
        asyncio.run(measure(cluster, chosen.messages, chosen.at_once))
        cluster.stop()
        cluster.settings["snapshotInterval"] = SNAPSHOT_AFTER_MS
        for name in NODES:
            began_s = time.monotonic()
            cluster.start_node(name)
            asyncio.run(answers(cluster, name))
            print(f"restart of {name}: {time.monotonic() - began_s:.2f} s", flush=True)
        print(f"on the disk after one more snapshot: {in_mib(settled_disk_bytes(cluster))} MiB")


if __name__ == "__main__":
    main()
