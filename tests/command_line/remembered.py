"""A workload and a checker from another package: what was written once is never read as nothing again.

One file with both, and one entry point. `test_own_system` puts it into a package of its own, beside a system that
serves it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import memo
import pyarrow as pa

from harness.operation import Operation
from stormproof import (
    Anomaly,
    Bounds,
    Checker,
    Generator,
    Meaning,
    PairedOperation,
    Seed,
    Workload,
    any_ok,
    finding,
    indexed,
    invoke,
    per_key,
)


@per_key(
    meanings={"forgotten": Meaning(says="What was written is read as nothing.", usually="It was kept in memory alone.")}
)
def remembered(operations: Sequence[PairedOperation]) -> Iterator[Anomaly]:
    written = next((one for one in operations if one.f == "write" and one.is_ok), None)
    for read in operations:
        if written and read.f == "read" and read.is_ok and read.value["value"] is None and written.precedes(read):
            yield finding(
                "forgotten", written, read, because=f"{read.key} had been written as {written.value['value']}"
            )


@dataclass(frozen=True, kw_only=True)
class RememberedSettings:
    keys: Annotated[int, Bounds(1, 100)] = 3


def generator(settings: RememberedSettings, seed: Seed, concurrency: int) -> Generator:
    def operation(number: int) -> Operation:
        key = f"r{number % settings.keys}"
        if number < settings.keys:
            return invoke("write", {"value": number}, key=key)
        return invoke("read", {"value": None}, key=key)

    return indexed(operation)


def final_generator(settings: RememberedSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    return indexed(lambda number: invoke("read", {"value": None}, key=f"r{number}") if number < settings.keys else None)


def checkers(settings: RememberedSettings) -> Mapping[str, Checker]:
    return {"remembered": remembered}


WORKLOAD = Workload(
    name="remembered",
    about="what was written once is never read as nothing again",
    settings_type=RememberedSettings,
    value_type=pa.struct([("value", pa.int64()), ("expected", pa.int64())]),
    functions=("read", "write"),
    evidence=any_ok("read"),
    checkers=checkers,
    generator=generator,
    final_generator=final_generator,
    required_ok={"read": 20},
)


class RememberingMemo(memo.Memo):
    """The example's system, serving this workload."""

    name = "remembering"
    workloads = ("remembered",)


SYSTEM = RememberingMemo()
