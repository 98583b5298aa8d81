"""Checkers of queues, sets, counters and ids against their definitions, however the history is cut, on both engines.

Many small histories go into one file, each under keys and processes of its own.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from element_histories import DEFINED, FUNCTIONS, operations_of, random_elements

from checkers.by_workload import WORKLOADS, checker_for
from checkers.engine_in_process import InProcessEngine
from checkers.plan import CheckRequest
from checkers.run import check_history
from checkers.spark.engine import SparkEngine
from checkers.spark.java import JavaMissing, find_java
from checkers.spark.session import spark_session
from checkers.verdict import CheckerResult
from harness.history import history_schema

OPTIONS = {"queue": {"delivery": "exactly-once"}, "set": {"reads": "current"}}
TOGETHER = 100
NAMES = {
    "queue": {"lost", "duplicated", "unexpected", "aborted-read", "redelivered-after-ack"},
    "set": {"lost", "stale", "duplicated", "unexpected", "aborted-read"},
    "counter": {"out-of-bounds"},
    "unique-ids": {"duplicated"},
}


def written(rows: list[dict[str, Any]], workload: str, path: Path) -> Path:
    numbered = [{"index": i, "time": i * 1_000, **row} for i, row in enumerate(rows)]
    table = pa.Table.from_pylist(numbered, schema=history_schema(WORKLOADS[workload].value_type))
    pq.write_table(table, path, row_group_size=97)
    return path


def many(workload: str, seed: int, histories: int) -> tuple[list[dict[str, Any]], Counter[str]]:
    """So many histories one behind the other, and what is wrong in all of them."""
    rows: list[dict[str, Any]] = []
    defined: Counter[str] = Counter()
    for number in range(histories):
        mine = random_elements(random.Random(f"{workload} {seed} {number}"), workload, 24)
        defined += DEFINED[workload](operations_of(mine))
        rows += [row | {"key": f"{row['key']}{number}", "process": row["process"] + 100 * number} for row in mine]
    return rows, defined


def judged(workload: str, path: Path, engine: Any) -> CheckerResult:
    checker = checker_for(workload, OPTIONS.get(workload, {}))
    return check_history(CheckRequest(history=path), {workload: checker}, engine)[workload]


@pytest.mark.parametrize("workload", sorted(FUNCTIONS))
def test_counts_are_those_of_the_definitions(workload: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 300)
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 1_000)
    names: set[str] = set()
    for seed in range(4):
        rows, defined = many(workload, seed, TOGETHER)
        result = judged(workload, written(rows, workload, tmp_path / f"{seed}.parquet"), InProcessEngine())
        names |= set(defined)
        defined.pop("undecided", None)
        assert {name: summary.count for name, summary in result.anomalies.items()} == dict(defined), (seed, result)
    assert names - {"undecided"} == NAMES[workload], "some anomalies never occurred"


@pytest.mark.parametrize("workload", sorted(FUNCTIONS))
def test_verdicts_of_single_histories_are_those_of_the_definitions(workload: str, tmp_path: Path) -> None:
    verdicts = set()
    for seed in range(40):
        rows, defined = many(workload, seed, 1)
        result = judged(workload, written(rows, workload, tmp_path / f"{seed}.parquet"), InProcessEngine())
        undecided = defined.pop("undecided", 0)
        if set(result.anomalies) == set(defined):
            expected = "invalid" if defined else "unknown" if undecided else "valid"
            assert result.verdict.value == expected, (seed, result)
        else:
            # What indefinite dequeues and drains may have taken is no loss where nothing is acked.
            assert set(defined) - set(result.anomalies) == {"lost"} and workload == "queue", (seed, result)
            assert result.verdict.value == ("invalid" if len(defined) > 1 else "unknown")
        verdicts.add(result.verdict.value)
    assert len(verdicts) > 1


def test_bank_reads_are_judged_by_their_totals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 300)
    rng = random.Random(1)
    rows: list[dict[str, Any]] = []
    defined: Counter[str] = Counter()
    for _ in range(2_000):
        kind = rng.choice(("ok", "ok", "fail", "info"))
        amounts = [rng.choice((5, 5, 5, 0, 10, -1, None)) for _ in range(2)]
        shown = [{"account": account, "amount": amount} for account, amount in enumerate(amounts)]
        process = len(rows)
        rows.append({"process": process, "type": "invoke", "f": "read", "value": None})
        rows.append({"process": process, "type": kind, "f": "read", "value": {"balances": shown}})
        if kind == "ok":
            defined["null-balance"] += None in amounts
            defined["wrong-total"] += None not in amounts and sum(a or 0 for a in amounts) != 10
            defined["negative-balance"] += -1 in amounts
    path = written(rows, "bank", tmp_path / "bank.parquet")
    for options in ({"total": "10"}, {"total": "10", "overdraft": "allowed"}):
        result = check_history(CheckRequest(history=path), {"bank": checker_for("bank", options)}, InProcessEngine())
        found = {name: summary.count for name, summary in result["bank"].anomalies.items()}
        assert found == {name: n for name, n in defined.items() if "overdraft" not in options or "neg" not in name}


@pytest.mark.parametrize(
    ("workload", "options"), [("shelf", {}), ("queue", {"reads": "current"}), ("queue", {"delivery": "twice"})]
)
def test_what_cannot_be_judged_is_said(workload: str, options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"shelf|reads|twice"):
        checker_for(workload, options)


def test_both_engines_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        find_java()
    except JavaMissing as missing:
        pytest.skip(str(missing))
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 400)
    spark = SparkEngine(spark_session("local[2]"))
    for workload in sorted(FUNCTIONS):
        path = written(many(workload, 7, 50)[0], workload, tmp_path / f"{workload}.parquet")
        alone = judged(workload, path, InProcessEngine())
        assert alone.anomalies
        assert judged(workload, path, spark) == alone
