"""Operations a second that the interpreter gets through against a client in memory.

    python benchmarks/interpreter.py [--operations 200000] [--concurrency 20] [--profile]

The generator is a realistic one (mixed reads and writes over keys, staggered, limited in time, beside a
nemesis that comes and goes); the history is written to disk as in a run.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import tempfile
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from harness.draw import Draw
from harness.generator import (
    GeneratorLike,
    any_of,
    clients,
    cycle,
    drawn,
    invoke,
    limit,
    mix,
    nemesis,
    sleep,
    stagger,
    time_limit,
)
from harness.interpreter import run_operations
from harness.operation import Operation
from harness.record.history import HistoryWriter
from harness.seed import Seed

T = TypeVar("T")
VALUE = pa.struct([("value", pa.int64())])
KEYS = tuple(f"r{number}" for number in range(16))


class RealTimeline:
    """The machine's monotonic clock."""

    def __init__(self) -> None:
        self._start = time.monotonic_ns()

    def now_ns(self) -> int:
        return time.monotonic_ns() - self._start

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def within(self, seconds: float, awaitable: Awaitable[T]) -> T:
        async with asyncio.timeout(seconds):
            return await awaitable


class MemoryClient:
    """Registers in a dictionary; every answer takes one turn of the event loop, as an answer from a socket does."""

    def __init__(self, registers: dict[str, int]) -> None:
        self._registers = registers

    async def open(self) -> None:
        pass

    async def invoke(self, operation: Operation) -> Operation:
        await asyncio.sleep(0)
        key = operation.key or ""
        if operation.f == "write" and operation.value is not None:
            self._registers[key] = operation.value["value"]
            return operation._replace(type="ok", node="n1")
        return operation._replace(type="ok", value={"value": self._registers.get(key)}, node="n1")

    async def close(self) -> None:
        pass


class IdleNemesis:
    async def open(self) -> None:
        pass

    async def invoke(self, operation: Operation) -> Operation:
        return operation._replace(type="info")

    async def close(self) -> None:
        pass


def storm(operations: int, seed: Seed) -> GeneratorLike:
    def read(draw: Draw, number: int) -> Operation:
        return invoke("read", key=draw.choice(KEYS))

    def write(draw: Draw, number: int) -> Operation:
        return invoke("write", {"value": number}, key=draw.choice(KEYS))

    load = mix([drawn(seed.child("reads"), read), drawn(seed.child("writes"), write)], seed=seed.child("mix"))
    faults = cycle([sleep(0.5), invoke("start"), sleep(0.5), invoke("stop")])
    return time_limit(
        3600,
        any_of(
            clients(limit(operations, stagger(1e-9, load, seed=seed.child("stagger")))),
            nemesis(limit(8, faults)),
        ),
    )


async def measure(operations: int, concurrency: int, directory: Path) -> tuple[int, float]:
    writer = HistoryWriter(directory / "history.arrows", VALUE)
    registers: dict[str, int] = {}
    begun = time.perf_counter()
    outcome = await run_operations(
        storm(operations, Seed(1)),
        client_factory=lambda process: MemoryClient(registers),
        nemesis=IdleNemesis(),
        timeline=RealTimeline(),
        record=writer.append,
        concurrency=concurrency,
        operation_timeout_s=5.0,
    )
    seconds = time.perf_counter() - begun
    writer.close()
    assert not outcome.crashes, outcome.crashes[0].trace
    return outcome.operations, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=200_000)
    parser.add_argument("--concurrency", type=int, default=20)
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        profile = cProfile.Profile()
        if chosen.profile:
            profile.enable()
        operations, seconds = asyncio.run(measure(chosen.operations, chosen.concurrency, Path(directory)))
        profile.disable()
        print(f"{operations} operations in {seconds:.2f} s: {operations / seconds:,.0f} operations/s")
        if chosen.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
