"""What batches, a window, several groups and leases are worth in CMQ: ratios taken in turns in one run.

Of messages of 1 KiB:

- `batch`: a leader makes one entry durable at a time (gatheredEntries 1), or all that have gathered. Two clusters of
  three processes on loopback, one group each, are asked in turns.
- `window`: a leader sends one message to a follower and waits for its acknowledgement (windowEntries 1), or sends up to
  4,096 entries ahead, over links of 5 ms one way; with one entry a message, and with 512. In the simulator: time is
  virtual, an fsync takes 1 ms, and processors take none, so only waiting is counted.
- `groups`: one group; three whose leaders are spread, one a node; three which one node leads. Clusters of three
  processes on loopback, asked in turns by queues of each group. What counts is how many messages a processor second of
  the busiest node confirms, for that node would be the limit if each had a machine.

Of pulls from an empty queue:

- `reads`: a leader asks the others for each pull, for as many as there are by one round, or has a lease. Two clusters
  of three processes on loopback, one group each, are asked in turns; and over links of 5 ms one way in the simulator.

python benchmarks/cmq_ratios.py [batch | window | groups | reads] [--seconds S] [--rounds N] [--at-once N ...]
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cmq_cluster import NODES, Asker, Cluster, asking, queues_of, running

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.cmq import wire

WARM_UP_S = 1.0
PATIENCE_S = 30.0
LINK_MS = 5.0
JITTER = 0.2
"""Requests drift apart, so that not all of them wait for the same answer."""
BATCHES = {"one entry an fsync": {"gatheredEntries": 1}, "all that gathered": {"gatheredEntries": 0}}
READS = {"a round a pull": {"readsByLease": False}, "by lease": {"readsByLease": True}}
WINDOWS = (1, 4096)
SENT_TOGETHER = (1, 512)
GROUPS = {
    "one group": {"groups": 1},
    "three groups, spread": {"groups": 3},
    "three groups, one leader": {"groups": 3, "spread": False},
}


@dataclass
class Taken:
    """What came of one configuration, summed over its turns."""

    messages: int = 0
    took_s: float = 0.0
    used_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(NODES, 0.0))
    """Processor time by node."""

    @property
    def rate(self) -> float:
        return self.messages / self.took_s

    @property
    def by_busiest(self) -> float:
        """Messages a processor second of the busiest node."""
        return self.messages / max(self.used_s.values())


Work = Callable[[Asker, str, float, int], Awaitable[Sequence[float]]]
"""What is asked of a queue for so many seconds, by so many at once; how long each request took."""


async def one_turn(asker: Asker, seconds: float, at_once: int, work: Work = Asker.produce) -> int:
    """How many requests were answered, by as many outstanding ones together."""
    queues = queues_of(asker.groups)
    share = max(1, at_once // len(queues))
    return sum(map(len, await asyncio.gather(*(work(asker, queue, seconds, share) for queue in queues))))


async def prepare(asker: Asker) -> None:
    for queue in queues_of(asker.groups):
        await asker.ask(queue, wire.create(queue))


async def place_leaders(asker: Asker, is_spread: bool) -> None:
    """Wait until each node leads a group, or let the first node lead all of them."""
    queues = queues_of(asker.groups)
    if not is_spread:
        for group, queue in enumerate(queues, 1):
            if asker.leader_name(queue) != NODES[0]:
                await asker.ask(queue, wire.transfer(group, NODES[0]))
    for _ in range(int(PATIENCE_S / WARM_UP_S)):
        await one_turn(asker, WARM_UP_S, len(queues))
        leaders = {asker.leader_name(queue) for queue in queues}
        if leaders == (set(NODES) if is_spread else {NODES[0]}):
            return
    raise SystemExit(f"leaders of the groups: {', '.join(sorted(leaders))}")


async def in_turns(
    clusters: Mapping[str, Cluster], rounds: int, seconds: float, at_once: Sequence[int], work: Work
) -> dict[int, dict[str, Taken]]:
    """At once -> name -> what came of it."""
    found = {count: {name: Taken() for name in clusters} for count in at_once}
    async with AsyncExitStack() as stack:
        askers = {name: await stack.enter_async_context(asking(cluster)) for name, cluster in clusters.items()}
        for name, asker in askers.items():
            await prepare(asker)
            if asker.groups > 1:
                await place_leaders(asker, clusters[name].settings.get("spread", True))
            await one_turn(asker, WARM_UP_S, max(at_once))
        for count in at_once:
            for _ in range(rounds):
                for name, asker in askers.items():
                    taken, cluster = found[count][name], clusters[name]
                    before_s = {node: cluster.processor_s([node]) for node in NODES}
                    taken.messages += await one_turn(asker, seconds, count, work)
                    taken.took_s += seconds
                    for node, used_s in before_s.items():
                        taken.used_s[node] += cluster.processor_s([node]) - used_s
    return found


def processes(
    title: str,
    cases: Mapping[str, Mapping[str, Any]],
    chosen: argparse.Namespace,
    work: Work = Asker.produce,
    noun: str = "messages",
) -> None:
    with ExitStack() as stack:
        clusters = {name: stack.enter_context(running({"groups": 1, **settings})) for name, settings in cases.items()}
        found = asyncio.run(in_turns(clusters, chosen.rounds, chosen.seconds, chosen.at_once, work))
    for count, by_name in found.items():
        first = next(iter(by_name.values()))
        for name, taken in by_name.items():
            ratios = f"x{taken.rate / first.rate:.2f} by the clock, x{taken.by_busiest / first.by_busiest:.2f} by it"
            print(
                f"{title}, {count:3} at once, {name:24} {taken.rate:7,.0f} {noun}/s, {taken.by_busiest:7,.0f} a "
                f"processor second of the busiest node; {ratios}",
                flush=True,
            )


def specs(settings: Mapping[str, Any]) -> list[NodeSpec]:
    peers = ";".join(f"{name}-{name}:9300" for name in NODES)
    config = {"peers": peers, "groups": 1, "reportsEntries": False, **settings}
    main = "system_under_test.cmq.node:node"
    return [
        NodeSpec(name=name, groups=("nodes",), program=PythonProgram(main=main, config={**config, "selfId": name}))
        for name in NODES
    ]


def over_slow_links(settings: Mapping[str, Any], seconds: float, at_once: int, work: Work = Asker.produce) -> float:
    """Requests a virtual second."""

    async def measure(environment: SimulatedEnvironment) -> int:
        with tempfile.TemporaryDirectory() as directory:
            await environment.start(specs(settings), Path(directory))
            asker = Asker(environment.client_host("load"), {name: f"{name}:9300" for name in NODES}, 1)
            await prepare(asker)
            await one_turn(asker, WARM_UP_S, at_once, work)
            answered = await one_turn(asker, seconds, at_once, work)
            asker.close()
            await environment.stop()
            return answered

    regime = replace(Regime.calm(), latency_ms=LINK_MS, jitter=JITTER)
    return run_simulation(measure, Seed(1), Trace(), regime=regime) / seconds


def windows(chosen: argparse.Namespace) -> None:
    for count in chosen.at_once:
        for together in SENT_TOGETHER:
            rates = [
                over_slow_links({"windowEntries": window, "batchEntries": together}, chosen.seconds, count)
                for window in WINDOWS
            ]
            for window, rate in zip(WINDOWS, rates, strict=True):
                case = f"window, {count:3} at once, {together:3} entries a message, {window:5,} ahead"
                print(f"{case} {rate:7,.0f} messages a virtual second; x{rate / rates[0]:.2f}", flush=True)


def reads(chosen: argparse.Namespace) -> None:
    processes("reads", READS, chosen, Asker.pull, "pulls")
    for count in chosen.at_once:
        rates = {name: over_slow_links(case, chosen.seconds, count, Asker.pull) for name, case in READS.items()}
        first = next(iter(rates.values()))
        for name, rate in rates.items():
            print(f"reads over slow links, {count:3} at once, {name:14} {rate:7,.0f} pulls/s; x{rate / first:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("ratio", nargs="?", choices=["batch", "window", "groups", "reads", "all"], default="all")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", type=int, nargs="+", default=[64, 256])
    chosen = parser.parse_args()
    if chosen.ratio in ("batch", "all"):
        processes("batch", BATCHES, chosen)
    if chosen.ratio in ("window", "all"):
        windows(chosen)
    if chosen.ratio in ("groups", "all"):
        processes("groups", GROUPS, chosen)
    if chosen.ratio in ("reads", "all"):
        reads(chosen)


if __name__ == "__main__":
    main()
