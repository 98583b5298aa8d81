"""How much faster than its own clock the simulator runs a real storm: `rocketmq` on six nodes, under faults.

Simulated seconds (start, storm, calm and final reads) a second of processor time, history written to disk, before
any check; the median over the seeds, as each draws its own network and its own faults.

python benchmarks/simulation.py
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from harness.environments.environment import Environment
from harness.environments.kind import Setting
from harness.record.recorder import DirectoryRecorder
from harness.record.run_directory import RunDirectory
from harness.record.scenario import Scenario
from harness.run import FactsSoFar, execute
from harness.seed import Seed
from stormproof.session import registry
from stormproof.session.execute import plan_of

WORKLOADS = ("log", "register")
NEMESIS = ("partition", "kill", "clock")
RATE = 200.0


def simulated_s_per_s(workload: str, seed: int, storm_s: float, runs: Path) -> float:
    """Of one storm. `storm_s` is how long it blows; the calm and the final reads come on top."""
    scenario = Scenario(
        system="rocketmq",
        workload=workload,
        nemesis=NEMESIS,
        environment="simulated",
        time_limit_s=storm_s,
        rate=RATE,
        seed=seed,
    )
    parts = registry.resolve(scenario)
    directory = RunDirectory.create(runs, f"{workload}-{storm_s:g}", seed)

    async def storm(environment: Environment) -> float:
        recorder = DirectoryRecorder(directory, parts.workload.value_type)
        await execute(plan_of(scenario, parts), environment, recorder, FactsSoFar(), lambda line: None)
        return environment.timeline.now_ns() / 1e9

    simulated_s: float
    before_s = time.process_time()
    nodes = parts.system.nodes(parts.system_settings, scenario.mutant)
    setting = Setting(nodes=nodes, seed=Seed(seed), say=lambda line: None)
    simulated_s, report = registry.environment("simulated").run(storm, setting)
    took_s = time.process_time() - before_s
    if storm_s > 1:
        print(
            f"{workload}, seed {seed}: {simulated_s:.0f} simulated s, {report['trace_events']:,} events, "
            f"{took_s:.2f} s of processor time: {simulated_s / took_s:.1f} simulated s/s"
        )
    return simulated_s / took_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="storms of each workload")
    parser.add_argument("--storm", type=float, default=60.0, help="simulated seconds that each storm blows")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as runs:
        for workload in WORKLOADS:
            simulated_s_per_s(workload, 0, 1.0, Path(runs))  # modules are loaded, caches are warm
            speeds = [
                simulated_s_per_s(workload, seed, arguments.storm, Path(runs)) for seed in range(1, arguments.seeds + 1)
            ]
            print(f"{workload}: {statistics.median(speeds):.1f} simulated s/s (median of {len(speeds)})")


if __name__ == "__main__":
    main()
