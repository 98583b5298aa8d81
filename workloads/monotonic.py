"""Monotonic reads: what a process has read of a register that only grows, it never reads smaller again.

Operations (key: the register):
- `inc` {}: ok with what the register holds then, one more than before.
- `read` {}: ok with what the register holds; 0 before the first `inc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from checkers.api.evidence import any_ok
from checkers.elements.monotonic import READ_VALUES, MonotonicChecker
from harness.bounds import Bounds
from harness.draw import Draw
from harness.generator import Generator, as_generator, drawn, invoke
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload
from workloads.final_reads import OK_SHARE


@dataclass(frozen=True, kw_only=True)
class MonotonicSettings:
    registers: Annotated[int, Bounds(1, 1_000)] = 5
    read_share: Annotated[float, Bounds(0, 0.9)] = 0.5


def generator(settings: MonotonicSettings, seed: Seed, concurrency: int) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        f = "read" if draw.uniform() < settings.read_share else "inc"
        return invoke(f, {"value": None, "timestamp": None, "reads": None}, key=f"r{draw.below(settings.registers)}")

    return drawn(seed, operation)


def final_generator(settings: MonotonicSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    """Nothing: a read that goes back was seen by then."""
    return as_generator(None)


WORKLOAD = Workload(
    name="monotonic",
    about="what a process has read it never reads smaller again",
    settings_type=MonotonicSettings,
    value_type=READ_VALUES,
    functions=("read", "inc"),
    evidence=any_ok("read", "inc"),
    checkers=lambda settings: {"monotonic": MonotonicChecker()},
    generator=generator,
    final_generator=final_generator,
    required_ok={"read": 20, "inc": 20},
    required_share={"read": OK_SHARE, "inc": OK_SHARE},
)
