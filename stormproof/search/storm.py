"""One storm in memory: carried out in the simulator and judged, without a file.

A storm is a `Scenario` whose schedule says when which fault strikes: what is found can be run again from it alone, by
`stormproof run --schedule` as well.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from checkers.api.verdict import CheckerResult, Verdict, broken, found
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.errors import HarnessError
from harness.progress import unwatched
from harness.record.facts import RunFacts
from harness.record.fault_log import FaultLog
from harness.record.node_events import node_events_table
from harness.record.recorder import MemoryRecorder
from harness.record.scenario import Scenario
from harness.run import FactsSoFar, execute
from harness.seed import Seed
from harness.trace import Trace
from stormproof.search.coverage import Coverage
from stormproof.search.points import PointClock, Seconds
from stormproof.session.engines import HERE
from stormproof.session.execute import plan_of
from stormproof.session.judge import RecordedRun, Shows, judge_run, voters_of
from stormproof.session.registry import Parts


@dataclass(frozen=True, kw_only=True)
class Blown:
    """A storm that was carried out, and what was recorded of it."""

    scenario: Scenario
    history: pa.Table
    faults: FaultLog
    facts: RunFacts
    events: Mapping[str, Sequence[str]]
    """Node -> what it reported, lines of JSON."""
    trace_hash: str
    trace_events: int
    regime: Mapping[str, float]
    reached: Mapping[str, int]
    seconds: Seconds = field(default_factory=dict)
    """When which points were reached; empty without a coverage."""
    simulated_s: float
    processor_s: float


@dataclass(frozen=True, kw_only=True)
class StormOutcome:
    """What a storm came to."""

    blown: Blown
    verdict: Verdict
    anomalies: Mapping[str, int]
    """Those that are not legal, by name."""
    results: Mapping[str, CheckerResult] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    processor_s: float = 0.0
    """The processor seconds of the storm and its judgement."""

    def words(self) -> str:
        return "; ".join((*found(self.results), *self.reasons))


def blow(scenario: Scenario, parts: Parts, coverage: Coverage | None = None, trace: Trace | None = None) -> Blown:
    """Carry a storm out; every event goes into `trace`, if one is given.

    What goes wrong with the run itself is among its facts.
    """
    began = time.process_time()
    recorder = MemoryRecorder(parts.workload.value_type)
    facts = FactsSoFar()
    trace = Trace() if trace is None else trace
    worlds: list[SimulatedEnvironment] = []
    clocks: list[PointClock] = []

    async def course(environment: SimulatedEnvironment) -> None:
        worlds.append(environment)
        if coverage is not None:
            coverage.heard = environment.heard
            clocks.append(PointClock(environment.moments, environment.timeline, facts))
        await execute(replace(plan_of(scenario, parts), watch=coverage), environment, recorder, facts, unwatched)

    try:
        seed = Seed(scenario.seed).child("world")
        run_simulation(course, seed, trace, regime=Regime.of_world(scenario.world, seed))
    except HarnessError as error:
        if not facts.complete:
            facts.reasons.append(f"the harness failed: {error}")
    finally:
        trace.close()
    (world,) = worlds
    return Blown(
        scenario=scenario,
        history=recorder.history(),
        faults=FaultLog.of(recorder.faults),
        facts=facts.facts(),
        events=world.events(),
        trace_hash=trace.digest(),
        trace_events=trace.count,
        regime=world.regime.to_json(),
        reached=dict(world.reached()),
        seconds=clocks[0].seconds() if clocks else {},
        simulated_s=world.timeline.now_ns() / 1e9,
        processor_s=time.process_time() - began,
    )


def blown_and_judged(
    scenario: Scenario, parts: Parts, coverage: Coverage | None = None, trace: Trace | None = None
) -> StormOutcome:
    """Carry a storm out and judge it as `stormproof run` does."""
    began = time.process_time()
    blown = blow(scenario, parts, coverage, trace)
    events = {node: [json.loads(line) for line in lines] for node, lines in blown.events.items()}
    run = RecordedRun(
        scenario=scenario,
        parts=parts,
        facts=blown.facts,
        faults=blown.faults,
        node_events=node_events_table(events, voters_of(parts)),
        history=blown.history,
        doubts=blown.facts.reasons,
    )
    judged = judge_run(run, HERE, shows=Shows.VERDICT)
    return StormOutcome(
        blown=blown,
        verdict=judged.verdict,
        anomalies=broken(judged.results),
        results=judged.results,
        reasons=judged.reasons,
        processor_s=time.process_time() - began,
    )
