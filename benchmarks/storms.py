"""What a storm costs in the simulator alone: a system of ours under partitions and kills, recorded in memory.

Processor seconds of `kind.run` (start, storm, calm, final reads; no file, no check), callbacks run, events of the trace
and of these how many an operation. With `--against` another checkout's storms of the same seeds are run in turn with
this one's, each in a process of its own, and the ratio is told: other work on the machine then strikes both alike.
A checkout that cannot record in memory yet records in a run directory, which is part of what a storm cost there.

python benchmarks/storms.py [--system rocketmq] [--workload log] [--against CHECKOUT]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq

from harness.environments.environment import Environment
from harness.environments.kind import Setting
from harness.record.run_directory import RunDirectory
from harness.record.scenario import Scenario
from harness.run import FactsSoFar, execute
from harness.seed import Seed
from stormproof.session import registry
from stormproof.session.execute import plan_of

try:
    from harness.record.recorder import MemoryRecorder
except ModuleNotFoundError:  # a checkout from before the search, which could record in run directories alone
    MemoryRecorder = None  # type: ignore[assignment,misc]

NEMESIS = ("partition", "kill")
RATE = 100.0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One storm."""

    code: str
    """Where the simulator was imported from."""
    seed: int
    trace_hash: str
    processor_s: float
    simulated_s: float
    callbacks: int
    events: int
    operations: int

    @property
    def speed(self) -> float:
        """Simulated seconds a second of processor time."""
        return self.simulated_s / self.processor_s


def measure(system: str, workload: str, seed: int, storm_s: float) -> Measured:
    """Carry out one storm of `storm_s` simulated seconds; the calm and the final reads come on top."""
    scenario = Scenario(
        system=system,
        workload=workload,
        nemesis=NEMESIS,
        environment="simulated",
        time_limit_s=storm_s,
        rate=RATE,
        seed=seed,
    )
    parts = registry.resolve(scenario)

    async def storm(environment: Environment) -> tuple[float, int]:
        await execute(plan_of(scenario, parts), environment, recorder, FactsSoFar(), lambda line: None)
        return environment.timeline.now_ns() / 1e9, asyncio.get_running_loop().callbacks_run  # type: ignore[attr-defined]

    nodes = parts.system.nodes(parts.system_settings, scenario.mutant)
    setting = Setting(nodes=nodes, seed=Seed(seed), say=lambda line: None)
    with TemporaryDirectory() as runs:
        recorder: Any = (
            RunDirectory.create(Path(runs), "storm", seed)
            if MemoryRecorder is None
            else MemoryRecorder(parts.workload.value_type)
        )
        before_s = time.process_time()
        (simulated_s, callbacks), report = registry.environment("simulated").run(storm, setting)
        processor_s = time.process_time() - before_s
        if MemoryRecorder is None:
            types = pq.read_table(recorder.path / "history.parquet", columns=["type"])["type"].to_pylist()
        else:
            types = [operation.type for operation in recorder.operations]
    return Measured(
        code=str(Path(sys.modules[execute.__module__].__file__ or "").parent.parent),
        seed=seed,
        trace_hash=report["trace_hash"],
        processor_s=processor_s,
        simulated_s=simulated_s,
        callbacks=callbacks,
        events=report["trace_events"],
        operations=types.count("invoke"),
    )


def storms(system: str, workload: str, seeds: int, storm_s: float) -> list[Measured]:
    measure(system, workload, 0, 1.0)  # modules are loaded, caches are warm
    return [measure(system, workload, seed, storm_s) for seed in range(1, seeds + 1)]


def measured_of(arguments: argparse.Namespace) -> list[Measured]:
    return storms(arguments.system, arguments.workload, arguments.seeds, arguments.storm)


def in_process_of(checkout: Path, arguments: argparse.Namespace) -> list[Measured]:
    """The same storms by the code of a checkout."""
    command = [sys.executable, __file__, "--json", "--system", arguments.system, "--workload", arguments.workload]
    command += ["--seeds", str(arguments.seeds), "--storm", str(arguments.storm)]
    with TemporaryDirectory() as names:
        _install_names(checkout, Path(names))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(checkout), names))}
        ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    measured = [Measured(**row) for row in json.loads(ran.stdout)]
    wrong = {storm.code for storm in measured} - {str(checkout)}
    if wrong:
        raise SystemExit(f"the storms of {checkout} ran the code in {', '.join(wrong)}")
    return measured


def _install_names(checkout: Path, directory: Path) -> None:
    """Make the checkout's own entry points those that are found, in place of what is installed."""
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    metadata = directory / f"{project['name']}-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0\n")
    lines = [
        f"{line}\n"
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
    ]
    (metadata / "entry_points.txt").write_text("".join(lines))


def fastest(rounds: list[list[Measured]]) -> list[Measured]:
    """Of each seed the round that was disturbed least."""
    return [min(same, key=lambda storm: storm.processor_s) for same in zip(*rounds, strict=True)]


def show(name: str, measured: list[Measured]) -> None:
    for storm in measured:
        print(
            f"{name}, seed {storm.seed}: {storm.processor_s:.2f} s of processor time, {storm.speed:.1f} simulated s/s, "
            f"{storm.callbacks:,} callbacks, {storm.events:,} events, "
            f"{storm.events / storm.operations:.1f} an operation; {storm.trace_hash[:8]}"
        )
    print(
        f"{name}: median {statistics.median(storm.processor_s for storm in measured):.2f} s of processor time, "
        f"{statistics.median(storm.speed for storm in measured):.1f} simulated s/s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", default="rocketmq")
    parser.add_argument("--workload", default="log", help="that the system serves with its settings as they are")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--storm", type=float, default=30.0, help="simulated seconds that each storm blows")
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=3, help="with --against: how often, the fastest of each counts")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.json:
        print(json.dumps([asdict(storm) for storm in measured_of(arguments)]))
        return
    if arguments.against is None:
        show("here", measured_of(arguments))
        return
    here, there = Path(__file__).resolve().parent.parent, arguments.against.resolve()
    turns = [(in_process_of(here, arguments), in_process_of(there, arguments)) for _ in range(arguments.rounds)]
    ours, theirs = fastest([turn[0] for turn in turns]), fastest([turn[1] for turn in turns])
    show("there", theirs)
    show("here", ours)
    ratio = statistics.median(a.speed / b.speed for a, b in zip(ours, theirs, strict=True))
    equal = sum(a.trace_hash == b.trace_hash for a, b in zip(ours, theirs, strict=True))
    print(f"here {ratio:.2f} times as many simulated seconds a second; {equal} of {len(ours)} traces are equal")


if __name__ == "__main__":
    main()
