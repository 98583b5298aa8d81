"""What CMQ confirms in a second: messages of 1 KiB, one a request, three nodes, one group or several.

The nodes are processes on loopback with their files on real disks; this process produces, many at once. They share the
machine's processors, so the processor time of each is printed beside the messages a second. `--profile` shows where the
time of the leader and of a follower goes.

python benchmarks/cmq_rate.py [--seconds S] [--rounds N] [--at-once N ...] [--groups N] [--set NAME=VALUE ...]
                              [--profile]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import pstats
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cmq_cluster import NODES, Asker, Cluster, asking, queues_of, running

from system_under_test.cmq import wire

WARM_UP_S = 1.0


async def measure(cluster: Cluster, rounds: int, seconds: float, at_once: list[int]) -> None:
    async with asking(cluster) as asker:
        await measure_by(asker, cluster, rounds, seconds, at_once)


async def measure_by(asker: Asker, cluster: Cluster, rounds: int, seconds: float, at_once: list[int]) -> None:
    queues = queues_of(cluster.groups)
    for queue in queues:
        await asker.ask(queue, wire.create(queue))
    await asyncio.gather(*(asker.produce(queue, WARM_UP_S, 64) for queue in queues))
    print("at once   messages/s  half in ms  processor ms a message: n1, n2, n3, this process; busiest node/s")
    for count in at_once:
        used_s = [cluster.processor_s([name]) for name in NODES]
        own_s, took_s = time.process_time(), 0.0
        latencies_s: list[float] = []
        for _ in range(rounds):
            began_s = time.monotonic()
            share = max(1, count // len(queues))
            for found in await asyncio.gather(*(asker.produce(queue, seconds, share) for queue in queues)):
                latencies_s += found
            took_s += time.monotonic() - began_s
        own_s = time.process_time() - own_s
        nodes_s = [cluster.processor_s([name]) - before for name, before in zip(NODES, used_s, strict=True)]
        messages = len(latencies_s)
        half_ms = sorted(latencies_s)[messages // 2] * 1e3
        shares = "  ".join(f"{used / messages * 1e3:.3f}" for used in (*nodes_s, own_s))
        busiest = messages / max(nodes_s)
        print(f"{count:7} {messages / took_s:12,.0f} {half_ms:11.1f}  {shares}  {busiest:,.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 64, 256])
    parser.add_argument("--groups", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE, a setting of the nodes")
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    settings: dict[str, Any] = {name: json.loads(value) for name, value in (each.split("=", 1) for each in chosen.set)}
    settings["groups"] = chosen.groups
    with running(settings) as cluster:
        asyncio.run(measure(cluster, chosen.rounds, chosen.seconds, chosen.at_once))
    if chosen.profile:
        with TemporaryDirectory() as directory:
            with running(settings, profile=Path(directory)) as cluster:
                asyncio.run(measure(cluster, 1, chosen.seconds, chosen.at_once[-1:]))
            for name in NODES:
                pstats.Stats(str(Path(directory) / name)).sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    main()
