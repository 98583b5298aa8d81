"""What a history's keys, values and processes are called, and when it began, changes no verdict of any workload."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from transaction_stores import RETIRED, Level, Store, Values, Violation
from transaction_stores import rows as store_rows

from checkers.api.plan import CheckRequest
from checkers.consumption.rows import RETRY_PREFIX
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from checkers.search_budget import Searches
from harness.record.history import history_schema
from stormproof.session.check_spec import checker_for
from stormproof.session.registry import names
from stormproof.session.registry import workload as workload_named
from tests.references.consumption_histories import random_consumption
from tests.references.delay_histories import random_delays
from tests.references.element_histories import random_bank
from tests.references.log_histories import random_history
from tests.references.pop_histories import random_pops
from tests.references.workload_cases import CASES, many

Row = dict[str, Any]


def transactions(values: Values) -> Callable[[int], list[Row]]:
    """A store that is causal, and in the middle not even that."""

    def make(seed: int) -> list[Row]:
        store = Store(
            level=Level.CAUSAL,
            values=values,
            transactions=60,
            sessions=5,
            keys=RETIRED,
            failed=0.05,
            indefinite=0.05,
            violation=Violation.CAUSALITY,
            seed=seed,
        )
        return [
            {name: cell for name, cell in row.items() if name not in ("index", "time")}
            for table in store_rows(store)
            for row in table.to_pylist()
        ]

    return make


def spans(rows: list[Row]) -> list[Row]:
    """The same delayed messages, whose sends say for how long."""
    names = {"send": "enqueue", "take-back": "take-back", "deliver": "dequeue"}
    return [row | {"f": names[row["f"]], "value": spanned(row["value"])} for row in rows]


def spanned(value: Row | None) -> Row | None:
    if value is None:
        return None
    return {"value": value.get("message"), "delay_ms": 40 if "due" in value else None, "values": value.get("messages")}


def locks(seed: int) -> list[Row]:
    """Of some locks, a few of which are given to two at once."""
    rng = random.Random(seed)
    rows: list[Row] = []
    for lock in range(20):
        held: list[int] = []
        for _ in range(12):
            process = 100 * lock + rng.randrange(4)
            f = "release" if process in held else "acquire"
            ended = "ok" if f == "release" or not held or rng.random() < 0.1 else "fail"
            if ended == "ok":
                held = [one for one in held if one != process] + [process] * (f == "acquire")
            row = {"process": process, "f": f, "key": f"l{lock}", "value": {"value": None}}
            rows += [row | {"type": "invoke"}, row | {"type": ended}]
    return rows


HISTORIES: dict[str, tuple[str, dict[str, str], Callable[[int], list[Row]]]] = {
    "bank": ("bank", {"total": "10"}, lambda seed: random_bank(seed)[0][:600]),
    "consumption": ("consumption", {}, lambda seed: random_consumption(random.Random(seed), 120, is_divided=True)),
    "delay": ("delay", {"latest_ms": "200"}, lambda seed: random_delays(random.Random(seed), 150)),
    "delayed": ("delayed", {"latest_ms": "200"}, lambda seed: spans(random_delays(random.Random(seed), 150))),
    "list-append": ("list-append", {"model": "causal"}, transactions(Values.LISTS)),
    "lock": ("lock", {}, locks),
    "log": ("log", {}, lambda seed: random_history(random.Random(seed), 300)),
    "pop": ("pop", {}, lambda seed: random_pops(random.Random(seed), 120)),
    "rw-register": ("rw-register", {"model": "causal", "assume": "wfr-keys"}, transactions(Values.REGISTERS)),
} | {
    name: (case.workload, case.options, lambda seed, case=case: many(case, seed, 30)[0]) for name, case in CASES.items()
}

HISTORIES |= {"transactional": ("transactional", {}, HISTORIES["queue"][2])}
ARITHMETIC = ("bank", "counter")
"""Their values are sums: they cannot be called otherwise."""
GROWING = ("monotonic",)
"""Of their values the order means something."""
INITIAL = {"causal": 0}
"""What is there before anything is written has one name only."""
VALUES = ("value", "values", "message", "messages")
KEYS = ("key", "account", "queue")


def relabelled(rows: list[Row], workload: str, rng: random.Random) -> list[Row]:
    """The same history under other names, some of which are longer than others; what is equal stays so."""
    names: dict[str, str] = {}
    numbers = {INITIAL[workload]: INITIAL[workload]} if workload in INITIAL else {}
    accounts: dict[int, int] = {}
    processes: dict[int, int] = {}
    texts = iter(rng.sample(range(10**6), 10_000))

    def key(name: str) -> str:
        return names.setdefault(name, f"{'k' * rng.randrange(4)}{next(texts)}")

    def number(value: int) -> int:
        if workload in ARITHMETIC:
            return value
        if workload in GROWING:
            return value * 1_000_003 - 17
        return numbers.setdefault(value, next(texts) - 500_000)

    def renamed(field: str, cell: Any) -> Any:
        if isinstance(cell, dict):
            return {name: renamed(name, part) for name, part in cell.items()}
        if isinstance(cell, list):
            return [renamed(field, part) for part in cell]
        if cell is None or field not in (*VALUES, *KEYS):
            return cell
        if field == "account":
            return accounts.setdefault(cell, next(texts))
        if field == "queue" and cell.startswith(RETRY_PREFIX):
            return cell
        return key(cell) if field in ("key", "queue") else number(cell)

    def process(old: int) -> int:
        return processes.setdefault(old, next(texts))

    return [
        row
        | {"process": process(row["process"]), "value": renamed("", row["value"])}
        | ({"key": key(row["key"])} if row.get("key") is not None else {})
        for row in rows
    ]


def later(value: Row | None, begun_ns: int) -> Row | None:
    """The same with its due time, if it has one, as much later."""
    return value if value is None or value.get("due") is None else value | {"due": value["due"] + begun_ns}


def verdict(rows: list[Row], workload: str, options: dict[str, str], path: Path, *, begun_ns: int) -> Any:
    numbered = [
        row | {"index": i, "time": begun_ns + row.get("time", i * 1_000), "value": later(row["value"], begun_ns)}
        for i, row in enumerate(rows)
    ]
    table = pa.Table.from_pylist(numbered, schema=history_schema(workload_named(workload).value_type))
    pq.write_table(table, path, row_group_size=97)
    checker = checker_for(workload, options)
    # Which objects are searched first, before one is found that is broken, names may decide.
    request = CheckRequest(history=path, searches=Searches.ALL)
    result = check_history(request, {"checker": checker}, InProcessEngine())["checker"]
    counts = {name: summary.count for name, summary in result.anomalies.items()}
    return result.verdict, counts, len(result.reasons), result.statistics


def test_every_workload_is_relabelled() -> None:
    assert {workload for workload, _, _ in HISTORIES.values()} == set(names("workloads")) - {"register"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.gate if place % 2 else []) for place, name in enumerate(HISTORIES)]
)
def test_a_verdict_is_the_same_under_other_names_and_at_another_time(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 300)
    workload, options, made = HISTORIES[name]
    found = set()
    for seed in range(3):
        rows = made(seed)
        before = verdict(rows, workload, options, tmp_path / "h.parquet", begun_ns=0)
        other = relabelled(rows, workload, random.Random(seed))
        assert [row["process"] for row in other] != [row["process"] for row in rows]
        assert verdict(other, workload, options, tmp_path / "o.parquet", begun_ns=7_000_000_000) == before
        found |= set(before[1])
    assert found
