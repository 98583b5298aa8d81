"""Random transactions of micro-operations on a few keys: reads, and writes of values that no other one writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from checkers.api.evidence import reading
from checkers.api.plan import Checker
from checkers.completions import parts
from checkers.transactions.history.micro_operations import TRANSACTION
from harness.bounds import Bounds
from harness.draw import Draw
from harness.generator import Generator, drawn, invoke
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload
from workloads.final_reads import OK_SHARE, each_until_ok

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
    drawn_parts = []
    for position in range(1 + draw.below(LONGEST)):
        key = f"k{draw.below(settings.keys)}"
        if draw.uniform() < settings.read_share:
            drawn_parts.append(micro_operation("r", key))
        else:
            drawn_parts.append(micro_operation(write, key, number * LONGEST + position))
    return drawn_parts


def random_transactions(write: str, settings: TransactionSettings, seed: Seed) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        return invoke("txn", {"txn": random_micro_operations(draw, number, write=write, settings=settings)})

    return drawn(seed, operation)


def final_reads(settings: TransactionSettings) -> Generator:
    """Of every key, each in a transaction of its own."""
    return each_until_ok(invoke("txn", {"txn": [micro_operation("r", f"k{key}")]}) for key in range(settings.keys))


def workload_of(
    name: str,
    settings_type: type[TransactionSettings],
    checker: Callable[[Any], Checker],
    *,
    of: str,
    write: str,
    lists: tuple[str, ...] = (),
) -> Workload:
    """Of `txn` alone, on objects of one kind, which `write` changes."""
    return Workload(
        name=name,
        about=f"transactions on {of} are isolated as a consistency model says",
        settings_type=settings_type,
        value_type=TRANSACTION,
        functions=("txn",),
        any_values=True,
        lists=lists,
        repeats=(parts("txn", written=("w", "append")),),
        evidence=(reading("txn", "r"),),
        checkers=lambda settings: {name: checker(settings)},
        generator=lambda settings, seed, concurrency: random_transactions(write, settings, seed),
        final_generator=lambda settings, seed, concurrency, nodes: final_reads(settings),
        required_ok={"txn": 40},
        required_share={"txn": OK_SHARE},
    )
