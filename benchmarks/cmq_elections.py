"""How long a group of CMQ has no leader when its leader is killed, in the simulator: a histogram of many such kills.

Election time-outs are drawn from 300 to 600 ms, and beside it fixed at 450 ms. A round is a moment at which somebody
begins a term; votes are split where two begin the same one. The killed node comes back before the next kill.

python benchmarks/cmq_elections.py [--kills N] [--nodes N]
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import NEAR, Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace

KILLS_A_RUN = 50
STEP_MS, STEPS = 100, 20
"""The last step has all that is longer."""
REST_S = 1.5
PATIENCE_S = 60.0


@dataclass
class Found:
    times_ms: list[float] = field(default_factory=list)
    """From the kill to the next leader whose no-op is committed."""
    rounds: int = 0
    splits: int = 0
    undecided: int = 0
    """Kills after which nobody led within a minute."""


def specs(nodes: int, least_ms: int, greatest_ms: int) -> list[NodeSpec]:
    names = [f"n{number}" for number in range(1, nodes + 1)]
    config = {
        "peers": ";".join(f"{name}-{name}:9300" for name in names),
        "groups": 1,
        "spread": False,
        "minElectionTimeout": least_ms,
        "maxElectionTimeout": greatest_ms,
    }
    main = "system_under_test.cmq.node:node"
    return [
        NodeSpec(name=name, groups=("nodes",), program=PythonProgram(main=main, config={**config, "selfId": name}))
        for name in names
    ]


class Run:
    def __init__(self, nodes: list[NodeSpec], kills: int, found: Found) -> None:
        self._nodes = nodes
        self._kills = kills
        self._found = found
        self._leader: tuple[str, int] | None = None
        self._began: Counter[int] = Counter()
        """Term -> how many nodes have begun it since the kill."""

    async def __call__(self, environment: SimulatedEnvironment) -> None:
        timeline = environment.timeline

        def reached(node: str, point: str) -> None:
            if point == "noop-committed":
                self._leader = node, timeline.now_ns()

        def saw(node: str, event: str, fields: Any) -> None:
            if event == "term" and fields["vote"] == node:
                self._began[fields["term"]] += 1

        environment.moments.on_point(reached)
        environment.moments.watch = saw
        with tempfile.TemporaryDirectory() as directory:
            await environment.start(self._nodes, Path(directory))
            for _ in range(self._kills):
                await self._kill_leader(environment)
            await environment.stop()

    async def _kill_leader(self, environment: SimulatedEnvironment) -> None:
        timeline = environment.timeline
        while self._leader is None:
            await timeline.sleep(0.01)
        await timeline.sleep(REST_S)
        killed, _ = self._leader
        self._leader, killed_ns = None, timeline.now_ns()
        self._began.clear()
        await environment.kill([killed])
        while self._leader is None and timeline.now_ns() - killed_ns < PATIENCE_S * 1e9:
            await timeline.sleep(0.01)
        self._found.rounds += sum(self._began.values())
        self._found.splits += sum(count > 1 for count in self._began.values())
        if self._leader is None:
            self._found.undecided += 1
        else:
            self._found.times_ms.append((self._leader[1] - killed_ns) / 1e6)
        await environment.boot([killed])


def measure(nodes: int, kills: int, least_ms: int, greatest_ms: int) -> Found:
    found = Found()
    for number in range(-(-kills // KILLS_A_RUN)):
        run = Run(specs(nodes, least_ms, greatest_ms), min(KILLS_A_RUN, kills - number * KILLS_A_RUN), found)
        seed = Seed(number)
        run_simulation(run, seed, Trace(), regime=Regime.drawn(seed, NEAR))
    return found


def show(title: str, kills: int, found: Found) -> None:
    ordered = sorted(found.times_ms) or [float("nan")]
    half, most = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    print(f"{title}: half {half:.0f} ms, 99 of 100 {most:.0f} ms, longest {ordered[-1]:.0f} ms")
    print(
        f"  {found.rounds / kills:.2f} rounds a kill, votes split {found.splits} times, "
        f"nobody led within {PATIENCE_S:.0f} s after {found.undecided} of {kills} kills"
    )
    counts = Counter(min(int(time_ms // STEP_MS), STEPS) for time_ms in found.times_ms)
    for step in range(min(counts, default=0), max(counts, default=-1) + 1):
        longer = " and longer" if step == STEPS else ""
        bar = "#" * round(60 * counts[step] / max(counts.values()))
        print(f"  {step * STEP_MS:5} ms  {counts[step]:5}  {bar}{longer}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--nodes", type=int, default=3, choices=(3, 5))
    chosen = parser.parse_args()
    for title, least_ms, greatest_ms in (("drawn, 300 to 600 ms", 300, 600), ("fixed, 450 ms", 450, 450)):
        show(title, chosen.kills, measure(chosen.nodes, chosen.kills, least_ms, greatest_ms))


if __name__ == "__main__":
    main()
