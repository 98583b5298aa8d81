"""What dual write costs: a master that waits for its slave against one that does not, both with the same slave.

Two pairs of configured brokers (`ASYNC_MASTER` and `SYNC_MASTER`, each with a slave), and two of controller mode (which
wait for nobody, or for the whole SyncStateSet), run side by side as processes on loopback. This process sends 1 KiB
messages to one pair after the other, in several rounds. The slave has the same work in both of a kind, so what differs
is the waiting: with enough sends at once it costs little, with few it is a round trip and the slave's append each.

The document reports about 10 % less for dual write. Here both brokers and the sender share the machine's processors;
the sends a processor second of both brokers tell what work is added, whatever else runs.

python benchmarks/rocketmq/dual_write.py [--rounds N] [--seconds S] [--flush async|sync] [--at-once N ...]
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any

from loopback import Group, Load, in_turns, running, total

CLASSIC = {"enableControllerMode": False}
SLAVE = {"brokerRole": "SLAVE"}
PAIRS = {"configured": ("async-slave", "dual-write"), "controller": ("any", "all-ack")}


def groups(flush: str) -> list[Group]:
    flushed: Mapping[str, Any] = {"flushDiskType": f"{flush.upper()}_FLUSH"}
    classic = {**flushed, **CLASSIC}
    return [
        Group(name="async-slave", slaves=1, settings=classic, master={"brokerRole": "ASYNC_MASTER"}, slave=SLAVE),
        Group(name="dual-write", slaves=1, settings=classic, master={"brokerRole": "SYNC_MASTER"}, slave=SLAVE),
        Group(name="any", slaves=1, settings=flushed),
        Group(name="all-ack", slaves=1, settings={**flushed, "allAckInSyncStateSet": True, "minInSyncReplicas": 2}),
    ]


def less(waits_not: float, waits: float) -> str:
    return f"{(waits / waits_not - 1) * 100:+.0f} %"


def show(at_once: int, loads: Mapping[str, Load]) -> None:
    print(f"{at_once} at once:")
    for name, load in loads.items():
        print(
            f"  {name:11} {load.per_second:9,.0f} sends/s, {load.sends / load.group_processor_s:9,.0f} a processor "
            f"second of both brokers, half within {load.latency_s(0.5) * 1e3:.1f} ms"
        )
    for kind, (waits_not, waits) in PAIRS.items():
        asynchronous, synchronous = loads[waits_not], loads[waits]
        work = less(
            asynchronous.sends / asynchronous.group_processor_s, synchronous.sends / synchronous.group_processor_s
        )
        print(f"  {kind}: {less(asynchronous.per_second, synchronous.per_second)} sends/s, {work} a processor second")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    parser.add_argument("--flush", choices=("async", "sync"), default="async")
    parser.add_argument("--at-once", type=int, nargs="+", default=[16, 256])
    chosen = parser.parse_args()
    measured = groups(chosen.flush)
    with running(measured) as cluster:
        for at_once in chosen.at_once:
            turns = asyncio.run(in_turns(cluster, measured, chosen.rounds, chosen.seconds, at_once))
            show(at_once, {name: total(loads) for name, loads in turns.items()})
    print("the document: -10 % sends/s for dual write")


if __name__ == "__main__":
    main()
