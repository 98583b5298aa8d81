"""Checkers of queues, sets, counters and ids against their definitions, however the history is cut, on both engines.

Many small histories go into one file, each under keys and processes of its own.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import CheckerResult, merge
from checkers.elements.set import QUANTILES
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from checkers.spark.engine import SparkEngine
from checkers.spark.java import JavaMissing, require_java
from checkers.spark.session import spark_session
from checkers.vacuity import Vacuity
from harness.errors import UsageError
from harness.record.history import history_schema
from stormproof.session.check_spec import checker_for
from stormproof.session.registry import workload as workload_named
from tests.references.element_histories import (
    defined_bank,
    defined_latencies,
    operations_of,
    random_bank,
    random_banks,
)
from tests.references.left_out import with_less_said
from tests.references.thousands import thousands
from tests.references.workload_cases import CASES, Case, many

ROW_NS = 1_000


def written(rows: list[dict[str, Any]], workload: str, path: Path) -> Path:
    pq.write_table(table_of_rows(rows, workload), path, row_group_size=97)
    return path


def table_of_rows(rows: list[dict[str, Any]], workload: str) -> pa.Table:
    numbered = [{"index": i, "time": i * ROW_NS, **row} for i, row in enumerate(rows)]
    return pa.Table.from_pylist(numbered, schema=history_schema(workload_named(workload).value_type))


def judge(case: Case, path: Path, engine: Any) -> CheckerResult:
    """By the checker, with the verdict that evidence leaves of it."""
    enough = Vacuity(subject=case.workload, evidence=workload_named(case.workload).evidence)
    checkers = {"checker": checker_for(case.workload, case.options), enough.name: enough}
    request = CheckRequest(history=path, repeats=workload_named(case.workload).repeats)
    results = check_history(request, checkers, engine)
    return replace(results["checker"], verdict=merge(result.verdict for result in results.values()))


@thousands()
@pytest.mark.parametrize("name", CASES)
def test_counts_are_those_of_the_definitions(
    name: str, seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 2_000)
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 8_000)
    case = CASES[name]
    rows, defined = many(case, seeds.start, len(seeds))
    result = judge(case, written(rows, case.workload, tmp_path / "history.parquet"), InProcessEngine())
    assert set(defined) - {"undecided"} == case.names, "some anomalies never occurred"
    defined.pop("undecided", None)
    defined.pop("rewritten", None)
    assert {name: summary.count for name, summary in result.anomalies.items()} == dict(defined), result


@pytest.mark.parametrize("name", CASES)
def test_verdicts_of_single_histories_are_those_of_the_definitions(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    verdicts = set()
    for seed in range(20):
        rows, defined = many(case, seed, 1)
        result = judge(case, written(rows, case.workload, tmp_path / f"{seed}.parquet"), InProcessEngine())
        undecided = defined.pop("undecided", 0) + defined.pop("rewritten", 0)
        if set(result.anomalies) == set(defined):
            expected = "invalid" if defined else "unknown" if undecided else "valid"
            assert result.verdict.value == expected, (seed, result)
        else:
            # What indefinite dequeues and drains may have taken is no loss where nothing is acked.
            assert set(defined) - set(result.anomalies) == {"lost"} and case.workload == "queue", (seed, result)
            assert result.verdict.value == ("invalid" if len(defined) > 1 else "unknown")
        verdicts.add(result.verdict.value)
    assert len(verdicts) > 1


@thousands()
@pytest.mark.parametrize("name", CASES)
def test_what_may_be_left_out_changes_no_count(
    name: str, seeds: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 2_000)
    case = CASES[name]
    rows, _ = many(case, seeds.start, len(seeds))
    less = with_less_said(rows, case.workload, random.Random(seeds.start))
    whole, left = (
        judge(case, written(said, case.workload, tmp_path / f"{number}.parquet"), InProcessEngine())
        for number, said in enumerate((rows, less))
    )
    assert len(less) < len(rows)
    assert {one: summary.count for one, summary in left.anomalies.items()} == {
        one: summary.count for one, summary in whole.anomalies.items()
    }
    assert left.verdict is whole.verdict


def test_latencies_of_a_set_are_those_of_its_elements(tmp_path: Path) -> None:
    case = CASES["set"]
    rows, _ = many(case, 11, 200)
    statistics = judge(case, written(rows, "set", tmp_path / "set.parquet"), InProcessEngine()).statistics
    latencies = defined_latencies(operations_of(rows))
    for kind, counted in latencies.items():
        assert statistics[kind] == len(counted) > 100
        counted.sort()
        for name, quantile in QUANTILES.items():
            exact = counted[max(0, math.ceil(quantile * len(counted)) - 1)] * ROW_NS
            assert exact * 31 / 32 <= statistics[f"{kind} latency ms"][name] * 1e6 <= exact
        assert counted[0] == 0 < counted[-1]


def test_bank_reads_are_judged_by_their_totals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 300)
    rows, defined = random_bank(1)
    path = written(rows, "bank", tmp_path / "bank.parquet")
    for options in ({"total": "10", "accounts": "2"}, {"total": "10", "accounts": "2", "overdraft": "allowed"}):
        result = check_history(CheckRequest(history=path), {"bank": checker_for("bank", options)}, InProcessEngine())
        found = {name: summary.count for name, summary in result["bank"].anomalies.items()}
        assert found == {name: n for name, n in defined.items() if "overdraft" not in options or "neg" not in name}


@thousands(2)
def test_small_banks_are_judged_by_the_definition(seeds: range) -> None:
    seen: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(seed)
        rows = random_banks(rng)
        total, accounts, overdraft = rng.choice((None, 10)), rng.choice((None, 4)), rng.random() < 0.5
        options = {"total": str(total), "accounts": str(accounts)}
        options = {name: option for name, option in options.items() if option != "None"}
        checker = checker_for("bank", options | ({"overdraft": "allowed"} if overdraft else {}))
        result = check_history(CheckRequest(history=table_of_rows(rows, "bank")), {"bank": checker}, InProcessEngine())
        defined = defined_bank(rows, total=total, accounts=accounts, overdraft=overdraft)
        assert {name: one.count for name, one in result["bank"].anomalies.items()} == defined, seed
        seen += defined
    assert set(seen) == {"null-balance", "negative-balance", "unexpected-account", "wrong-total"}


@pytest.mark.parametrize(
    ("workload", "options"), [("shelf", {}), ("queue", {"reads": "current"}), ("queue", {"delivery": "twice"})]
)
def test_what_cannot_be_judged_is_reported(workload: str, options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=r"shelf|reads|twice"):
        checker_for(workload, options)


@pytest.fixture(scope="module")
def spark() -> SparkEngine:
    try:
        require_java()
    except JavaMissing as missing:
        pytest.skip(str(missing))
    return SparkEngine(spark_session("local[2]"))


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.gate if place % 4 else []) for place, name in enumerate(CASES)]
)
def test_both_engines_give_the_same_verdict(
    name: str, spark: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 400)
    case = CASES[name]
    path = written(many(case, 7, 50)[0], case.workload, tmp_path / "history.parquet")
    alone = judge(case, path, InProcessEngine())
    assert alone.anomalies
    assert judge(case, path, spark) == alone


@pytest.mark.xdist_group("spark")
def test_both_engines_give_the_same_verdict_of_a_bank(spark: SparkEngine, tmp_path: Path) -> None:
    request = CheckRequest(history=written(random_bank(2)[0][:2_000], "bank", tmp_path / "bank.parquet"))
    for options in ({}, {"total": "10", "accounts": "2"}):
        checker = checker_for("bank", options)
        assert checker.check(request, spark) == checker.check(request, InProcessEngine())
