"""A storm in which nodes are killed in the moments in which they reach points; prints its trace's hash as a program."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.progress import unwatched
from harness.record.fault_row import FaultRow
from harness.record.recorder import MemoryRecorder
from harness.record.scenario import Scenario
from harness.run import FactsSoFar, execute
from harness.seed import Seed
from harness.trace import Trace
from stormproof.session import registry
from stormproof.session.execute import plan_of

STEPS: Mapping[str, str] = {
    "elected-master": "spawn role notice",
    "about-to-persist-vote": "write controller/raft/vote",
    "became-leader": "write controller/raft/log",
    "about-to-persist-epoch": "create store/epochFileCheckpoint.new",
    "handshake-received": "send b",
    "put-appended": "send b",
    "alter-received": "spawn request",
    "about-to-append": "write controller/raft/log",
    "about-to-flush": "fsync store/commitlog/",
    "batch-received": "write store/commitlog/",
    "batch-appended": "send b",
    "put-confirmed": "send b",
    "identity-persisted": "log ",
    "about-to-write-checkpoint": "create store/checkpoint.new",
}
"""Point -> the next thing that a node does which lives on, in the same instant."""

OWN_STEPS = (
    "write",
    "truncate",
    "fsync",
    "create",
    "remove",
    "rename",
    "send",
    "connect",
    "listen",
    "spawn",
    "log",
    "sleep",
    "close",
    "unusual",
)
"""What the trace shows of what a node itself does; all else is done by its kernel, or to it."""
ARMED_EVERY_S = 1.5


class KeptTrace(Trace):
    """Its events are kept, as (time in ns, owner, what)."""

    __slots__ = ("events",)

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[int, str, str]] = []

    def event(self, time_ns: int, owner: str, kind: str, detail: str) -> None:
        super().event(time_ns, owner, kind, detail)
        self.events.append((time_ns, owner, f"{kind} {detail}"))


@dataclass
class Strikes:
    """What was seen of the storm."""

    trace: KeptTrace = field(default_factory=KeptTrace)
    rows: list[FaultRow] = field(default_factory=list)
    reached: list[tuple[int, str, str]] = field(default_factory=list)
    """(number of the trace's next event, node, point)."""
    served_at_the_end: bool = False

    def step_after(self, place: int, node: str) -> str | None:
        """What the node itself did next, from that event on; None if it did nothing up to its next start."""
        for _, owner, what in itertools.islice(self.trace.events, place, None):
            if owner == node and what.startswith("process boot"):
                return None
            if owner == node and what.partition(" ")[0] in OWN_STEPS:
                return what
        return None

    def place_of(self, row: FaultRow) -> int:
        """Of the first event after the point at which the fault of this row struck."""
        (node,) = row.nodes
        places = [place for place, at, point in self.reached if (at, point) == (node, row.point)]
        times = [self.trace.events[place][0] for place in places]
        return places[bisect_left(times, row.time_ns)]


def run() -> Strikes:
    count = len(STEPS)
    lines = (
        f"{1 + number * ARMED_EVERY_S:g} for 1 kill it when {point} [mine {number}]"
        for number, point in enumerate(STEPS)
    )
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        schedule=tuple(lines),
        time_limit_s=4 + count * ARMED_EVERY_S,
        rate=20,
        concurrency=4,
        recovery_s=2,
        seed=5,
    )
    parts = registry.resolve(scenario)
    strikes = Strikes()
    recorder = MemoryRecorder(parts.workload.value_type, faults=strikes.rows)

    facts = FactsSoFar()

    async def course(environment: SimulatedEnvironment) -> None:
        def reached(node: str, point: str) -> None:
            strikes.reached.append((len(strikes.trace.events), node, point))

        environment.moments.on_point(reached)
        await execute(plan_of(scenario, parts), environment, recorder, facts, unwatched)

    run_simulation(course, Seed(scenario.seed), strikes.trace, regime=Regime.calm())
    strikes.served_at_the_end = facts.complete and not facts.reasons
    return strikes


if __name__ == "__main__":
    print(run().trace.digest())
