"""A workload and a checker from another package: what was written once is never read as nothing again.

One file with both, and one entry point. `test_own_system` puts it into a package of its own, beside a system that
serves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import memo
import pyarrow as pa

from checkers.evidence import any_ok
from checkers.findings import FINDINGS, Example, Findings, gathered_findings, judge
from harness.operation import Operation
from harness.record.meaning import Meaning
from stormproof import Bounds, Checker, CheckerResult, CheckRequest, Engine, Generator, Seed, Workload, indexed, invoke


@dataclass(frozen=True, kw_only=True)
class RememberedChecker:
    name: str = "remembered"
    meanings: ClassVar[Mapping[str, Meaning]] = {
        "forgotten": Meaning(says="What was written is read as nothing.", usually="It was kept in memory alone."),
    }

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        history = engine.history(request.history, ("index", "process", "type", "f", "key", "value"))
        clients = engine.mapped(history, rows_of_clients, ROWS)
        found = gathered_findings(engine, engine.grouped(clients, ("key",), forgotten, FINDINGS))
        return judge(found.anomalies, legal=request.legal, undecided=(), statistics={})


NUMBERS, TEXTS = ("index", "process", "value"), ("type", "f", "key")
ROWS = pa.schema([(name, pa.int64()) for name in NUMBERS] + [(name, pa.string()) for name in TEXTS])


def rows_of_clients(batch: pa.Table) -> pa.Table:
    rows = [row | {"value": (row["value"] or {}).get("value")} for row in batch.to_pylist() if row["process"] >= 0]
    return pa.Table.from_pylist(rows, schema=ROWS)


def forgotten(table: pa.Table) -> pa.Table:
    """Kernel over all rows of a key."""
    begun: dict[int, int] = {}
    written_at: int | None = None
    findings, examples = Findings(), []
    for row in sorted(table.to_pylist(), key=lambda row: row["index"]):
        if row["type"] == "invoke":
            begun[row["process"]] = row["index"]
        elif row["type"] == "ok" and row["f"] == "write" and written_at is None:
            written_at = row["index"]
        elif row["type"] == "ok" and row["value"] is None and written_at is not None:
            operations = (written_at, row["index"])
            one = Example(key=row["key"], operations=operations, because="it was written before")
            examples += [one] if begun[row["process"]] > written_at else []
    findings.add("forgotten", len(examples), examples)
    return findings.table()


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
    return {"remembered": RememberedChecker()}


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
