"""Causal consistency: nobody sees an effect without its causes.

Operations on registers of an object, which is the key; all forms of them are in `checkers/causal/checker.py`. In a run:
- `txn`: micro-operations `r` {key} and `w` {key, value}, at one moment; no value is written twice to a register.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from checkers.api.evidence import any_ok, reading
from checkers.api.plan import Checker
from checkers.causal.checker import CAUSAL_OPERATIONS, CausalChecker
from checkers.completions import members, parts, remembered
from harness.bounds import INT64, Bounds
from harness.draw import Draw
from harness.generator import Generator, drawn, invoke
from harness.operation import Operation
from harness.seed import Seed
from harness.workload import Workload, refused_in_run
from workloads.final_reads import OK_SHARE, each_until_ok
from workloads.random_transactions import TransactionSettings, micro_operation, random_micro_operations


@dataclass(frozen=True, kw_only=True)
class CausalSettings(TransactionSettings):
    keys: Annotated[int, Bounds(1, 10_000)] = 3
    """Registers of an object."""
    objects: Annotated[int, Bounds(1, 1_000)] = 5
    initial: Annotated[int, INT64] = 0
    """What a register holds before its first write, beside null; 0 in a run, where no transaction writes it."""


def require_runnable(settings: CausalSettings) -> None:
    if settings.initial != 0:
        raise refused_in_run("causal", "initial", settings.initial, expected="0, which no transaction writes")


def _transaction(object_: int, parts: list[Any]) -> Operation:
    return invoke("txn", {"value": None, "position": None, "link": None, "txn": parts}, key=f"o{object_}")


def generator(settings: CausalSettings, seed: Seed, concurrency: int) -> Generator:
    def operation(draw: Draw, number: int) -> Operation:
        object_ = draw.below(settings.objects)
        # 0 is what registers hold before the first write, so that no transaction may write it.
        parts = random_micro_operations(draw, number + 1, write="w", settings=settings)
        return _transaction(object_, parts)

    return drawn(seed, operation)


def final_generator(settings: CausalSettings, seed: Seed, concurrency: int, nodes: tuple[str, ...]) -> Generator:
    reads = [micro_operation("r", f"k{key}") for key in range(settings.keys)]
    return each_until_ok(_transaction(object_, reads) for object_ in range(settings.objects))


def checkers(settings: CausalSettings) -> dict[str, Checker]:
    return {"causal": CausalChecker(initial=settings.initial)}


WORKLOAD = Workload(
    name="causal",
    about="nobody sees an effect without its causes",
    settings_type=CausalSettings,
    value_type=CAUSAL_OPERATIONS,
    functions=("read", "read-init", "write", "txn"),
    any_values=True,
    repeats=(
        members("write"),
        remembered("write", "read", "read-init", of=("link",)),
        parts("txn", written=("w", "append")),
    ),
    evidence=(*any_ok("read", "read-init"), reading("txn", "r")),
    checkers=checkers,
    require_runnable=require_runnable,
    generator=generator,
    final_generator=final_generator,
    required_ok={"txn": 40},
    required_share={"txn": OK_SHARE},
)
