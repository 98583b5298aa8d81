"""What batch push gains: a master that sends its slaves many messages a frame against one that sends each by itself.

Two groups of three brokers run side by side as processes on loopback, equal but for `enableBatchPush`; all replicas
have to acknowledge every message (1 KiB, async flush). This process sends to one group after the other, in several
rounds, with more and more sends at once. What is told: the most sends a second of each group, and the most while half
of the sends are answered within 10 ms.

The document that reports x1.45 for the first and x1.56 for the second (55,000 to 80,000 and 45,000 to 70,000 sends a
second) measured the same switch of another replication: DLedger's, whose leader sends each entry by a request of its
own. This is replication from master to slave by a stream, up to a window, so what a batch saves here is work: frames,
appends and acknowledgements. All brokers and the sender share the machine's processors, so the sends a processor second
of the group's brokers tell more than the sends a second.

python benchmarks/rocketmq/batch_push.py [--rounds N] [--seconds S] [--slaves N] [--flush async|sync]
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping

from loopback import Group, Load, in_turns, running, total

AT_ONCE = (4, 8, 16, 32, 64, 256)
LIMIT_S, SHARE = 0.010, 0.5
WAYS = {"single": False, "batch": True}


def group(way: str, slaves: int, flush: str) -> Group:
    return Group(
        name=way,
        slaves=slaves,
        settings={
            "flushDiskType": f"{flush.upper()}_FLUSH",
            "allAckInSyncStateSet": True,
            "minInSyncReplicas": 1 + slaves,
            "enableBatchPush": WAYS[way],
        },
    )


def show(at_once: int, loads: Mapping[str, Load]) -> None:
    for way, load in loads.items():
        print(
            f"{at_once:7} {way:6} {load.per_second:9,.0f} {load.sends / load.group_processor_s:12,.0f}"
            f" {load.per_processor_second:12,.0f} {load.latency_s(SHARE) * 1e3:10.1f}"
        )


def most(loads: Mapping[int, Mapping[str, Load]], way: str, limit_s: float) -> float:
    """The most sends a second with any number at once, while so many are answered in time; 0 if never."""
    steps = [step[way] for step in loads.values()]
    return max((load.per_second for load in steps if load.latency_s(SHARE) <= limit_s), default=0.0)


def ratio(name: str, single: float, batch: float, reported: str) -> None:
    gained = f"x{batch / single:.2f}" if single else "no ratio: one of them was never so quick"
    print(f"{name}: {single:,.0f} to {batch:,.0f} sends/s, {gained} (the document: {reported})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each turn")
    parser.add_argument("--slaves", type=int, default=2)
    parser.add_argument("--flush", choices=("async", "sync"), default="async")
    chosen = parser.parse_args()
    groups = [group(way, chosen.slaves, chosen.flush) for way in WAYS]
    loads: dict[int, Mapping[str, Load]] = {}
    print("at once way      sends/s  /processor s  of master's  half in ms")
    with running(groups) as cluster:
        for at_once in AT_ONCE:
            turns = asyncio.run(in_turns(cluster, groups, chosen.rounds, chosen.seconds, at_once))
            loads[at_once] = {way: total(turns[way]) for way in WAYS}
            show(at_once, loads[at_once])
    busiest = loads[AT_ONCE[-1]]
    single, batch = (busiest[way].sends / busiest[way].group_processor_s for way in WAYS)
    ratio("at most", *(most(loads, way, float("inf")) for way in WAYS), "x1.45")
    ratio("within 10 ms", *(most(loads, way, LIMIT_S) for way in WAYS), "x1.56")
    print(f"sends a processor second of all brokers, {AT_ONCE[-1]} at once: x{batch / single:.2f}")


if __name__ == "__main__":
    main()
