"""Random transactions of micro-operations on a few keys: reads, and writes of values that no other one writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from harness.bounds import Bounds
from harness.draw import Draw
from harness.generator import Generator, drawn, invoke
from harness.operation import Operation
from harness.seed import Seed
from workloads.final_reads import each_until_ok

LONGEST = 4
"""Micro-operations in a transaction."""


@dataclass(frozen=True, kw_only=True)
class TransactionSettings:
    """What generators of random transactions take."""

    keys: Annotated[int, Bounds(1, 10_000)] = 50
    read_share: Annotated[float, Bounds(0, 0.9)] = 0.5
    """Share of reads among the micro-operations."""


def micro_operation(f: str, key: str, value: int | None = None) -> dict[str, Any]:
    return {"f": f, "key": key, "value": value, "values": None}


def random_micro_operations(draw: Draw, number: int, *, write: str, settings: TransactionSettings) -> list[Any]:
    """Of the `number`th transaction; `write` is the function of its writes."""
    parts = []
    for position in range(1 + draw.below(LONGEST)):
        key = f"k{draw.below(settings.keys)}"
        if draw.uniform() < settings.read_share:
            parts.append(micro_operation("r", key))
        else:
            parts.append(micro_operation(write, key, number * LONGEST + position))
    return parts


def random_transactions(write: str, settings: TransactionSettings, seed: Seed) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        return invoke("txn", {"txn": random_micro_operations(draw, number, write=write, settings=settings)})

    return drawn(seed, operation)


def final_reads(settings: TransactionSettings) -> Generator:
    """Of every key, each in a transaction of its own."""
    return each_until_ok(invoke("txn", {"txn": [micro_operation("r", f"k{key}")]}) for key in range(settings.keys))
