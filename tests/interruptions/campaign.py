"""Hundreds of interruptions at moments drawn from a seed, and a table of what came of them.

    python -m tests.interruptions.campaign --count 200 --seed 7
    python -m tests.interruptions.campaign --worlds docker,ssh --signals SIGKILL --count 40

Of every ten, six are of simulated runs, two or three of checks on Spark, the rest of runs in Docker and, half as often,
on machines over SSH (containers that act as such), where an engine answers; each signal once and twice. Prints the seed
first, each problem as it is found, and the table at the end; exits with 1 unless all was as it should be.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from harness.environments.docker import engine
from stormproof.cli.main import run
from tests.conftest import docker_answers
from tests.interruptions.attempt import ELSEWHERE, Attempt, Result, World, carry_out, duration_s, signals_are_heard
from tests.interruptions.commands import Commands
from tests.interruptions.leftovers import left_on
from tests.ssh.machines import Rack, rack

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
SHARES = {World.SIMULATED: 0.60, World.SPARK: 0.25, World.DOCKER: 0.10, World.SSH: 0.05}
MACHINES = {"m1": 'node = "b1"', "m2": 'node = "b2"', "m3": 'groups = ["controllers"]'}
LONGEST_GAP_S = 2.0
BEFORE_THE_END = 0.97
"""Moments are drawn up to this part of a command's duration: later ones mostly come too late."""


def drawn(
    seed: int,
    worlds: Sequence[tuple[World, int]],
    commands: Commands,
    durations: dict[tuple[World, str], float],
    numbers: Sequence[signal.Signals] = SIGNALS,
) -> Iterator[Attempt]:
    """So many attempts of each world: each signal as often as the others, once as often as twice."""
    for world, count in worlds:
        draw = random.Random(f"{seed} {world.value}")
        names = [name for name, (weight, _) in commands.of(world).items() for _ in range(weight)]
        for number in range(count):
            first = numbers[number % len(numbers)]
            name = draw.choice(names)
            signals = (first,)
            if number // len(numbers) % 2:
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
    parser.add_argument("--signals", default=",".join(one.name for one in SIGNALS))
    chosen = parser.parse_args(arguments)
    print(f"seed {chosen.seed}", flush=True)
    started = time.monotonic()
    worlds = [World(name) for name in chosen.worlds.split(",")]
    if not set(worlds).isdisjoint(ELSEWHERE) and not docker_answers():
        print("not run: no Docker engine answers, so nothing is interrupted in containers", flush=True)
        worlds = [world for world in worlds if world not in ELSEWHERE]
    whole = sum(SHARES[world] for world in worlds)
    counts = [(world, round(chosen.count * SHARES[world] / whole)) for world in worlds]
    numbers = [signal.Signals[name] for name in chosen.signals.split(",")]
    with signals_are_heard(), tempfile.TemporaryDirectory(prefix="interruptions-") as made, ExitStack() as stack:
        scratch = Path(made)
        over_ssh = stack.enter_context(machines_over_ssh(scratch)) if World.SSH in worlds else None
        results = _carried_out(scratch, chosen.seed, counts, numbers, chosen.jobs, over_ssh)
    print(table(results), flush=True)
    bad = sum(bool(result.problems) for result in results)
    print(f"{len(results)} interruptions, {bad} not as they should be, {time.monotonic() - started:.0f} s", flush=True)
    return 1 if bad else 0


@contextmanager
def machines_over_ssh(scratch: Path) -> Iterator[Rack]:
    """Three of them, with an inventory `hosts.toml` in this directory."""
    with engine() as client, rack(client, tuple(MACHINES), scratch) as made:
        (scratch / "hosts.toml").write_text(made.inventory(MACHINES, user="storm"))
        yield made


def _carried_out(
    scratch: Path,
    seed: int,
    counts: Sequence[tuple[World, int]],
    numbers: Sequence[signal.Signals],
    jobs: int,
    machines: Rack | None,
) -> list[Result]:
    brief = ["--time-limit", "20", "--recovery", "5", "--nemesis", "kill", "--seed", "11", "--engine", "inprocess"]
    run(["run", "rocketmq", *brief, "--runs", str(scratch / "stored"), "--quiet"])
    commands = Commands(stored=(scratch / "stored" / "latest").resolve(), inventory=scratch / "hosts.toml")
    durations = {}
    for world, _ in counts:
        for name, (_, arguments) in commands.of(world).items():
            place = scratch / f"whole-{world.value}-{name}"
            place.mkdir()
            durations[world, name] = duration_s(place, arguments)
            print(f"{world.value} {name}: {durations[world, name]:.1f} s", flush=True)
    one_at_a_time = threading.Lock()  # on the same machines

    def one(numbered: tuple[int, Attempt]) -> Result:
        number, attempt = numbered
        place = scratch / str(number)
        place.mkdir()
        arguments = commands.of(attempt.world)[attempt.name][1]
        if attempt.world is World.SSH:
            assert machines is not None
            cleaning = ("cleanup", "--inventory", str(scratch / "hosts.toml"))
            left = partial(left_on, machines)
            with one_at_a_time:
                result = carry_out(attempt, place, arguments, cleaning=cleaning, left_elsewhere=left)
        else:
            result = carry_out(attempt, place, arguments)
        for problem in result.problems:
            print(f"NOT as it should be: {attempt}: {problem}\n{result.output}", flush=True)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, enumerate(drawn(seed, counts, commands, durations, numbers))))


if __name__ == "__main__":
    sys.exit(main())
