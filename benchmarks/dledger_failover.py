"""How long appends stop when a leader of DLedger dies: from the kill to the first acknowledged append, simulated.

Groups of three members with DLedger's own times, or with beats scaled by `--scale`. A client appends all the time, at
whoever takes it; the leader is killed at a random moment, and starts again once another one has taken an
append. Expected with the own times are 4.5 to 8 s: up to three beats of 2 s pass before a follower has missed the
leader for long enough, then a backoff of up to a second, and a vote.

python benchmarks/dledger_failover.py [--deaths N] [--scale X ...]
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.errors import OperationError
from harness.seed import Seed
from harness.trace import Trace
from system_under_test.dledger.client_message import AppendAnswer, AppendRequest
from workloads.systems.dledger.client import MemberClient
from workloads.systems.dledger.nodes import members
from workloads.systems.dledger.settings import DledgerSettings

DEATHS_A_GROUP = 20
PAUSE_S = 0.05
"""A client that was refused by all waits so long, by DLedger's own times."""
SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


class Client:
    def __init__(self, environment: SimulatedEnvironment, settings: DledgerSettings) -> None:
        self._timeline = environment.timeline
        self._members = MemberClient(environment.client_host("client"), 0.5 * settings.time_scale)
        self._names, self._scale = settings.names, settings.time_scale

    async def append(self) -> str:
        """Until a member has acknowledged it; which one."""
        while True:
            for name in self._names:
                try:
                    await self._members.ask(name, AppendRequest((b"x",)), AppendAnswer)
                    return name
                except OperationError:
                    continue
            await self._timeline.sleep(PAUSE_S * self._scale)


async def deaths_s(environment: SimulatedEnvironment, settings: DledgerSettings, seed: Seed) -> list[float]:
    """Of one group, one after the other."""
    draw = seed.child("deaths").stream()
    timeline = environment.timeline
    await environment.start(members(settings, None), None)
    client = Client(environment, settings)
    found: list[float] = []
    leader = await client.append()
    for _ in range(DEATHS_A_GROUP):
        await timeline.sleep(settings.time_scale * draw.uniform(4, 8))
        leader = await client.append()
        killed_ns = timeline.now_ns()
        await environment.kill([leader])
        await client.append()
        found.append((timeline.now_ns() - killed_ns) / 1e9)
        await environment.boot([leader])
    await environment.stop()
    return found


def measured_s(deaths: int, scale: float) -> list[float]:
    settings = DledgerSettings(time_scale=scale)
    found: list[float] = []
    while len(found) < deaths:
        seed = Seed(len(found))
        found += run_simulation(
            lambda environment, seed=seed: deaths_s(environment, settings, seed), seed, Trace(), regime=Regime.calm()
        )
    return sorted(found)


def show(scale: float, found_s: Sequence[float]) -> None:
    quantiles = ", ".join(f"{share:.0%} {found_s[int(share * (len(found_s) - 1))]:.2f}" for share in SHARES)
    print(f"times x{scale:g}, {len(found_s)} deaths, seconds: {quantiles}; mean {statistics.mean(found_s):.2f}")
    width = scale / 2
    for bar in range(int(found_s[-1] / width) + 1):
        count = sum(bar * width <= each < (bar + 1) * width for each in found_s)
        if count:
            print(f"{bar * width:6.2f} to {(bar + 1) * width:5.2f} {count:5} {'#' * (60 * count // len(found_s))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--deaths", type=int, default=500)
    parser.add_argument("--scale", type=float, nargs="+", default=[1.0, 0.1])
    chosen = parser.parse_args()
    for scale in chosen.scale:
        show(scale, measured_s(chosen.deaths, scale))


if __name__ == "__main__":
    main()
