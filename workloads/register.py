"""Registers: reads, writes and compare-and-sets on independent keys, each of which must be linearizable.

Operations (key: the register's name):
- `read` {}: ok with the value, null before the first write.
- `write` {value}.
- `cas` {expected, value}: ok if it found what it expected; fail with `precondition-failed` if it did not.

With `unique` (the default) no value is written twice to a key, which makes every read name its write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pyarrow as pa

from checkers.completions import members
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.objects import MODELS
from harness.bounds import Bounds
from harness.draw import Draw
from harness.errors import UsageError
from harness.generator import Generator, indexed, invoke
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload

VALUE_TYPE = pa.struct([("value", pa.int64()), ("expected", pa.int64())])
OBJECT = MODELS["cas-register"]
OK_SHARE = 0.1
"""The share of reads, and of writes, that must be ok. In 40 healthy storms of 20 s with all faults of the simulator at
once the least share was 0.35 (seed 22), the median 0.95 and more; a third of that least still leaves something to be
wrong. Compare-and-sets are not asked: that one fails is an answer, and most do."""
LOOK_BACK = 4
"""A compare-and-set expects one of the last so many values written to its key, as far as there are any."""
FEW_VALUES = 5


@dataclass(frozen=True, kw_only=True)
class RegisterSettings:
    keys: Annotated[int, Bounds(1, 10_000)] = 5
    read_share: Annotated[float, Bounds(0, 1)] = 0.5
    cas_share: Annotated[float, Bounds(0, 1)] = 0.2
    unique: bool = True

    def __post_init__(self) -> None:
        if self.read_share + self.cas_share >= 1:
            raise UsageError(
                "read_share and cas_share must leave a share for writes, "
                f"got {self.read_share:g} and {self.cas_share:g}"
            )


@dataclass(frozen=True, slots=True)
class _Stream:
    """The n-th operation as a function of the seed and n alone."""

    settings: RegisterSettings
    base: int

    def f(self, number: int) -> str:
        share = Draw.at(self.base, number).uniform()
        if share < self.settings.read_share:
            return "read"
        return "cas" if share < self.settings.read_share + self.settings.cas_share else "write"

    def value(self, number: int) -> int:
        return number if self.settings.unique else Draw.at(self.base + 1, number).below(FEW_VALUES)

    def operation(self, number: int) -> Operation:
        key = f"r{number % self.settings.keys}"
        f = self.f(number)
        if f == "read":
            return invoke("read", {"value": None, "expected": None}, key=key)
        expected = self._recent(number) if f == "cas" else None
        if expected is None:
            f = "write"
        return invoke(f, {"value": self.value(number), "expected": expected}, key=key)

    def _recent(self, number: int) -> int | None:
        """A value that was lately meant to be written to the same key, or None at the beginning."""
        recent: list[int] = []
        earlier = number - self.settings.keys
        while earlier >= 0 and len(recent) < LOOK_BACK:
            if self.f(earlier) != "read":
                recent.append(self.value(earlier))
            earlier -= self.settings.keys
        return Draw.at(self.base + 2, number).choice(recent) if recent else None


def generator(settings: RegisterSettings, seed: Seed, concurrency: int) -> Generator:
    return indexed(_Stream(settings, seed.integer()).operation)


def final_generator(settings: RegisterSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    """One read of every key once all is calm."""

    def read(number: int) -> Operation | None:
        if number >= settings.keys:
            return None
        return invoke("read", {"value": None, "expected": None}, key=f"r{number}")

    return indexed(read)


WORKLOAD = Workload(
    name="register",
    about="reads, writes and compare-and-sets of each key happen at one moment each, in some order",
    settings_type=RegisterSettings,
    value_type=VALUE_TYPE,
    functions=OBJECT.functions,
    any_values=True,
    repeats=(members("write"), members("cas", of=("expected", "value"))),
    evidence=OBJECT.evidence(OBJECT.initial),
    checkers=lambda settings: {"linearizable": Linearizable(OBJECT)},
    generator=generator,
    final_generator=final_generator,
    required_ok={"read": 20, "write": 20},
    required_share={"read": OK_SHARE, "write": OK_SHARE},
    explored={"keys": (1, 2, 20)},
)
