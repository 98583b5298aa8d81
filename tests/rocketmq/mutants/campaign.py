"""The long proof: the healthy system valid on many seeds in a row, every planted bug caught within as many.

    python -m tests.rocketmq.mutants.campaign --seeds 200 --jobs 2

Prints one line a seed that is not as it should be and a table at the end; exits with 1 unless everything is.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.outcome import Outcome, replay_line
from stormproof.session.run import run_scenario
from tests.rocketmq.mutants.planted_bugs import PLANTED_BUGS, PlantedBug

TASKS_PER_CHILD = 25
"""A worker is replaced now and then: a process that has run hundreds of simulations has grown for nothing."""
HEALTHY_NEMESIS = ("partition", "kill", "clock")


def healthy(workload: str, seed: int) -> Scenario:
    """The storm that the healthy configuration (allAck, minInSyncReplicas 2, sync flush) must come through."""
    return Scenario(
        system="rocketmq", workload=workload, nemesis=HEALTHY_NEMESIS, rate=200.0, time_limit_s=60.0, seed=seed
    )


def run_storm(scenario: Scenario) -> Outcome:
    """Run one scenario in this process; nothing of it is kept."""
    with tempfile.TemporaryDirectory() as runs:
        return run_scenario(scenario, runs=Path(runs), options=HERE)


def catches(bug: PlantedBug, outcome: Outcome) -> bool:
    """INVALID, with the broken guarantee named."""
    return outcome.verdict is Verdict.INVALID and not bug.anomalies.isdisjoint(outcome.anomalies())


@dataclass(frozen=True, kw_only=True)
class Hunt:
    """How many seeds it took to catch a bug (None: not caught), and the healthy runs that were not valid."""

    bug: PlantedBug
    seed: int | None
    seeds: int
    anomalies: dict[str, int]
    healthy_not_valid: tuple[str, ...]


def hunt(bug: PlantedBug, seeds: range) -> Hunt:
    """Seed by seed until the bug is caught; the healthy system runs through every storm that it was sought in."""
    not_valid: list[str] = []
    for seed in seeds:
        well = run_storm(bug.scenario(seed, planted=False))
        if well.verdict is Verdict.INVALID:
            not_valid.append(f"{replay_line(well.scenario)}\n{well.words()}")
        ill = run_storm(bug.scenario(seed, planted=True))
        if catches(bug, ill):
            return Hunt(
                bug=bug,
                seed=seed,
                seeds=seed - seeds.start + 1,
                anomalies=ill.anomalies(),
                healthy_not_valid=tuple(not_valid),
            )
    return Hunt(bug=bug, seed=None, seeds=len(seeds), anomalies={}, healthy_not_valid=tuple(not_valid))


def _healthy(arguments: tuple[str, int]) -> tuple[str, int, str, str]:
    outcome = run_storm(healthy(*arguments))
    words = "" if outcome.verdict is Verdict.VALID else f"{outcome.words()}\n{replay_line(outcome.scenario)}"
    return (*arguments, outcome.verdict.value, words)


def _hunt(arguments: tuple[PlantedBug, int]) -> Hunt:
    bug, seeds = arguments
    return hunt(bug, range(seeds))


def _print_at_once(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str] | None = None, say: Callable[[str], object] = _print_at_once) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    chosen = parser.parse_args(arguments)
    started = time.monotonic()
    good = True
    with multiprocessing.get_context("spawn").Pool(chosen.jobs, maxtasksperchild=TASKS_PER_CHILD) as pool:
        for found in pool.imap(_hunt, [(bug, chosen.seeds) for bug in PLANTED_BUGS]):
            good &= _report_hunt(found, say)
        for workload in ("log", "register"):
            good &= _report_healthy(workload, pool.imap(_healthy, _seeds(workload, chosen.seeds)), say)
    say(f"{'as it should be' if good else 'NOT as it should be'}, {time.monotonic() - started:.0f} s")
    return 0 if good else 1


def _seeds(workload: str, seeds: int) -> Iterator[tuple[str, int]]:
    return ((workload, seed) for seed in range(seeds))


def _report_hunt(found: Hunt, say: Callable[[str], object]) -> bool:
    for words in found.healthy_not_valid:
        say(f"healthy system INVALID in the storm of {found.bug.mutant}: {words}")
    if found.seed is None:
        say(f"{found.bug.mutant:24} NOT caught in {found.seeds} seeds; {found.bug.guarantee}")
        return False
    anomalies = ", ".join(f"{name} × {count}" for name, count in found.anomalies.items())
    say(f"{found.bug.mutant:24} caught at seed {found.seed}: {anomalies}; {found.bug.guarantee}")
    return not found.healthy_not_valid


def _report_healthy(workload: str, results: Iterator[tuple[str, int, str, str]], say: Callable[[str], object]) -> bool:
    counts = {verdict.value: 0 for verdict in Verdict}
    for _, seed, verdict, words in results:
        counts[verdict] += 1
        if verdict != Verdict.VALID.value:
            say(f"healthy {workload} seed {seed}: {verdict}\n{words}")
    say(f"healthy {workload}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return counts[Verdict.VALID.value] == sum(counts.values())


if __name__ == "__main__":
    sys.exit(main())
