"""Operations a second of one harness process against three etcd nodes in containers, and what the harness adds to each.

A bare loop and the harness carry out the same reads, writes and compare-and-sets in turn, by the same clients, against
the same nodes: the loop calls a client and looks at the clock, no more; the harness draws operations, hands them to its
threads, and records them durably in a run directory. With one client, what lies between two completions is compared, so
that everything counts which the harness does for an operation. With many, the rate, and whose processor time it takes.

python benchmarks/etcd_rate.py [--concurrency 1 16 64] [--seconds 5] [--rounds 3] [--profile]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import cProfile
import os
import pstats
import statistics
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.client import Client
from harness.environments.docker.kind import DOCKER
from harness.environments.environment import Environment
from harness.environments.kind import Setting
from harness.errors import OperationError
from harness.generator import Context, Pending, as_generator, clients, time_limit
from harness.interpreter import run_operations
from harness.operation import Operation
from harness.record.recorder import DirectoryRecorder
from harness.record.run_directory import RunDirectory
from harness.run import OPERATION_TIMEOUT_S
from harness.seed import Seed
from workloads.register import WORKLOAD, RegisterSettings
from workloads.systems.etcd.adapter import SYSTEM, EtcdSettings

ETCD, REGISTERS = EtcdSettings(), RegisterSettings()
PREPARED = 2_000
"""Operations of the bare loop, over and over, so that it draws none."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """What one way of sending operations came to."""

    completed_s: Sequence[float]
    """When each operation was complete."""
    seconds: float
    own_processor_s: float
    etcd_processor_s: float

    @property
    def rate(self) -> float:
        return len(self.completed_s) / self.seconds

    @property
    def between_ms(self) -> float:
        """From one completion to the next, the median."""
        pairs = zip(self.completed_s, self.completed_s[1:], strict=False)
        return statistics.median(after - before for before, after in pairs) * 1e3

    @property
    def own_ms(self) -> float:
        """Processor time of this process, an operation."""
        return self.own_processor_s / len(self.completed_s) * 1e3

    def line(self) -> str:
        etcd_ms = self.etcd_processor_s / len(self.completed_s) * 1e3
        used = (self.own_processor_s + self.etcd_processor_s) / self.seconds
        return (
            f"{self.rate:6,.0f}/s; processor ms an operation: {self.own_ms:.3f} here, {etcd_ms:.3f} in etcd; "
            f"this process is busy for {self.own_processor_s / self.seconds:.0%}, together they use {used:.2f} "
            f"of {os.cpu_count()} processors"
        )


async def measure(environment: Environment, options: argparse.Namespace, directory: Path) -> None:
    known = members()
    try:
        await environment.start(SYSTEM.nodes(ETCD, None), directory / "nodes")
        await SYSTEM.ready(ETCD, environment.client_host("observer"), "register")
        etcd = sorted(members() - known)
        for concurrency in options.concurrency:
            await in_turn(environment, options, directory, etcd, concurrency)
    finally:
        await environment.stop()


async def in_turn(
    environment: Environment, options: argparse.Namespace, directory: Path, etcd: Sequence[int], concurrency: int
) -> None:
    bare, ours = [], []
    for number in range(options.rounds):
        bare.append(await spent(etcd, lambda: bare_loop(environment, concurrency, options.seconds)))
        with profiled(options.profile):
            runs = directory / f"{concurrency}-{number}"
            ours.append(await spent(etcd, lambda: by_harness(environment, concurrency, options.seconds, runs)))  # noqa: B023
    for name, loads in (("bare loop", bare), ("harness", ours)):
        for load in loads:
            print(f"{concurrency:3} at once, {name:9} {load.line()}", flush=True)
    if concurrency == 1:
        added = [own.between_ms - plain.between_ms for own, plain in zip(ours, bare, strict=True)]
        between = ", ".join(f"{one.between_ms:.3f}" for one in (*bare, *ours))
        print(f"    between two completions, median ms, bare and then harness: {between}")
        print(
            f"    the harness adds {statistics.median(added):.3f} ms (of rounds: {min(added):.3f} to {max(added):.3f})"
        )
    processor = statistics.median(own.own_ms - plain.own_ms for own, plain in zip(ours, bare, strict=True))
    print(f"    and {processor:.3f} ms of processor time to what clients take by themselves", flush=True)


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def spent(etcd: Sequence[int], work: Callable[[], Coroutine[None, None, list[float]]]) -> Load:
    etcd_before_s, own_before_s, began_s = sum(map(processor_s, etcd)), time.process_time(), time.perf_counter()
    completed_s = await work()
    return Load(
        completed_s=completed_s,
        seconds=time.perf_counter() - began_s,
        own_processor_s=time.process_time() - own_before_s,
        etcd_processor_s=sum(map(processor_s, etcd)) - etcd_before_s,
    )


async def bare_loop(environment: Environment, concurrency: int, seconds: float) -> list[float]:
    completed_s: list[float] = []
    until_s = time.perf_counter() + seconds

    async def repeat(client: Client, operations: Sequence[Operation]) -> None:
        await client.open()
        while True:
            for operation in operations:
                with contextlib.suppress(OperationError):  # a compare-and-set that found another value
                    await client.invoke(operation)
                completed_s.append(now_s := time.perf_counter())
                if now_s > until_s:
                    await client.close()
                    return

    operations = prepared(concurrency)
    shares = [operations[number::concurrency] for number in range(concurrency)]
    await asyncio.gather(*(repeat(client_of(environment, number), share) for number, share in enumerate(shares)))
    return completed_s


def prepared(concurrency: int) -> list[Operation]:
    assert WORKLOAD.generator is not None
    generator = WORKLOAD.generator(REGISTERS, Seed(1), concurrency)
    found: list[Operation] = []
    context = Context.start(concurrency=concurrency, nemesis=False)
    while len(found) < PREPARED:
        emission = as_generator(generator).op(context)
        assert emission is not None and not isinstance(emission[0], Pending)
        found.append(emission[0])
        generator = emission[1]
    return found


async def by_harness(environment: Environment, concurrency: int, seconds: float, runs: Path) -> list[float]:
    assert WORKLOAD.generator is not None
    recorder = DirectoryRecorder(RunDirectory.create(runs, "etcd-rate", 1), WORKLOAD.value_type)
    completed_s: list[float] = []

    def record(operation: Operation) -> None:
        recorder.operation(operation)
        if operation.type != "invoke":
            completed_s.append(time.perf_counter())

    outcome = await run_operations(
        clients(time_limit(seconds, WORKLOAD.generator(REGISTERS, Seed(2), concurrency))),
        client_factory=lambda process: client_of(environment, process),
        nemesis=None,
        timeline=environment.timeline,
        record=record,
        concurrency=concurrency,
        operation_timeout_s=OPERATION_TIMEOUT_S,
    )
    recorder.close()
    assert not outcome.crashes, outcome.crashes[0].trace
    return completed_s


def client_of(environment: Environment, process: int) -> Client:
    return SYSTEM.client("register", ETCD, environment.client_host(f"client-{process}"), process)


def members() -> set[int]:
    """The processes of etcd on this machine."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cmdline").read_bytes().startswith(b"etcd\0--name\0"):
                found.add(int(entry.name))
    return found


@contextlib.contextmanager
def profiled(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    profile = cProfile.Profile()
    with profile:
        yield
    pstats.Stats(profile).sort_stats("tottime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="of the harness; rates are lower then")
    given = parser.parse_args()
    with TemporaryDirectory() as directory:
        setting = Setting(nodes=SYSTEM.nodes(ETCD, None), seed=Seed(1), say=print)
        DOCKER.run(lambda environment: measure(environment, given, Path(directory)), setting)


if __name__ == "__main__":
    main()
