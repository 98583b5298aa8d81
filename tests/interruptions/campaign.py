"""Hundreds of interruptions at moments drawn from a seed, and a table of what came of them.

    python -m tests.interruptions.campaign --count 200 --seed 7

Of every ten, six are of simulated runs, two or three of checks on Spark, the rest of runs in Docker where an engine
answers; each signal once and twice. Prints the seed first, each problem as it is found, and the table at the end; exits
with 1 unless all was as it should be.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.cli.main import run
from tests.conftest import docker_answers
from tests.interruptions.attempt import Attempt, Result, World, carry_out, duration_s, signals_are_heard
from tests.interruptions.commands import Commands

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
SHARES = {World.SIMULATED: 0.60, World.SPARK: 0.25, World.DOCKER: 0.15}
LONGEST_GAP_S = 2.0
BEFORE_THE_END = 0.97
"""Moments are drawn up to this part of a command's duration: later ones mostly come too late."""


def drawn(
    seed: int, worlds: Sequence[tuple[World, int]], commands: Commands, durations: dict[tuple[World, str], float]
) -> Iterator[Attempt]:
    """So many attempts of each world: each signal as often as the others, once as often as twice."""
    for world, count in worlds:
        draw = random.Random(f"{seed} {world.value}")
        names = [name for name, (weight, _) in commands.of(world).items() for _ in range(weight)]
        for number in range(count):
            first = SIGNALS[number % len(SIGNALS)]
            name = draw.choice(names)
            signals = (first,)
            if number // len(SIGNALS) % 2:
                # Killed twice means: asked to end by SIGTERM and then killed, in the middle of tidying up.
                signals = (signal.SIGTERM, first) if first is signal.SIGKILL else (first, draw.choice(SIGNALS[:3]))
            yield Attempt(
                world=world,
                name=name,
                signals=signals,
                delay_s=draw.uniform(0, BEFORE_THE_END) * durations[world, name],
                gap_s=LONGEST_GAP_S * draw.random() ** 3,
            )


def table(results: Sequence[Result]) -> str:
    """A row for each world, signal, and whether it came once or twice."""
    lines = ["environment  signal   times  tries  too late  exit codes          left over  directories checked"]
    groups: dict[tuple[str, str, int], list[Result]] = {}
    for result in results:
        attempt = result.attempt
        name = "SIGKILL" if attempt.kills else attempt.signals[0].name
        groups.setdefault((attempt.world.value, name, len(attempt.signals)), []).append(result)
    for (world, name, times), members in groups.items():
        codes = _counted(Counter(result.code for result in members))
        checked = _counted(Counter(code for result in members for code in result.checked))
        late = sum(result.too_late for result in members)
        left = sum(bool(result.problems) for result in members)
        lines.append(f"{world:11}  {name:7}  {times:5}  {len(members):5}  {late:8}  {codes:18}  {left:9}  {checked}")
    return "\n".join(lines)


def _counted(counts: Counter[int]) -> str:
    return ", ".join(f"{code} × {count}" for code, count in sorted(counts.items())) or "none"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--worlds", default=",".join(world.value for world in World))
    chosen = parser.parse_args(arguments)
    print(f"seed {chosen.seed}", flush=True)
    started = time.monotonic()
    worlds = [World(name) for name in chosen.worlds.split(",")]
    if World.DOCKER in worlds and not docker_answers():
        print("not run: no Docker engine answers, so nothing is interrupted in containers", flush=True)
        worlds.remove(World.DOCKER)
    whole = sum(SHARES[world] for world in worlds)
    counts = [(world, round(chosen.count * SHARES[world] / whole)) for world in worlds]
    with signals_are_heard(), tempfile.TemporaryDirectory(prefix="interruptions-") as scratch:
        results = _carried_out(Path(scratch), chosen.seed, counts, chosen.jobs)
    print(table(results), flush=True)
    bad = sum(bool(result.problems) for result in results)
    print(f"{len(results)} interruptions, {bad} not as they should be, {time.monotonic() - started:.0f} s", flush=True)
    return 1 if bad else 0


def _carried_out(scratch: Path, seed: int, counts: Sequence[tuple[World, int]], jobs: int) -> list[Result]:
    brief = ["--time-limit", "20", "--recovery", "5", "--nemesis", "kill", "--seed", "11", "--engine", "inprocess"]
    run(["run", "rocketmq", *brief, "--runs", str(scratch / "stored"), "--quiet"])
    commands = Commands(stored=(scratch / "stored" / "latest").resolve())
    durations = {}
    for world, _ in counts:
        for name, (_, arguments) in commands.of(world).items():
            place = scratch / f"whole-{world.value}-{name}"
            place.mkdir()
            durations[world, name] = duration_s(place, arguments)
            print(f"{world.value} {name}: {durations[world, name]:.1f} s", flush=True)

    def one(numbered: tuple[int, Attempt]) -> Result:
        number, attempt = numbered
        place = scratch / str(number)
        place.mkdir()
        result = carry_out(attempt, place, commands.of(attempt.world)[attempt.name][1])
        for problem in result.problems:
            print(f"NOT as it should be: {attempt}: {problem}\n{result.said}", flush=True)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, enumerate(drawn(seed, counts, commands, durations))))


if __name__ == "__main__":
    sys.exit(main())
