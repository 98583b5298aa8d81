"""What is said in another format, with other values where null stood, or on another engine, gets the same verdict."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import merge
from checkers.history_batches import Source
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from checkers.search_budget import Searches
from checkers.spark.engine import SparkEngine
from checkers.spark.java import JavaMissing, require_java
from checkers.spark.session import spark_session
from harness.jepsen import Format, exported
from harness.record.history import close_torn, read_history
from stormproof.session.check_spec import CheckSpec, in_memory, of_model, of_workload
from tests.references import said_otherwise
from tests.references.drawn_histories import KINDS, drawn
from tests.references.history_language import WrittenHistory
from tests.references.said_otherwise import (
    WAYS,
    Report,
    table_of,
    timed,
)
from tests.references.written_judgement import checker_of, repeats_of

# In other formats.


def spec_of(history: WrittenHistory) -> CheckSpec:
    if history.checker == "object":
        return of_model(history.model, initial=None, failed_cas=None)
    return of_workload(history.checker, [f"{name}={value}" for name, value in history.options.items()])


def told_by(rows: Source, spec: CheckSpec) -> Report:
    request = CheckRequest(history=rows, repeats=spec.repeats)
    results = check_history(request, spec.checkers, InProcessEngine())
    found = frozenset(name for result in results.values() for name in result.anomalies)
    return Report(merge(result.verdict for result in results.values()).value, found)


def told_in_formats(history: WrittenHistory, folder: Path, written: Callable[[str], str]) -> list[Report]:
    """Of Arrow's and Parquet's columns, and of texts, which `written` is given line by line."""
    spec, parquet, arrows = spec_of(history), folder / "h.parquet", folder / "h.arrows"
    table = table_of(history)
    pq.write_table(table, parquet)
    with pa.OSFile(str(arrows), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    answers = [told_by(table, spec), told_by(parquet, spec)]
    answers.append(told_by(close_torn(arrows, folder / "closed.parquet").parquet, spec))
    for form in Format:
        text = folder / f"h.{form.value}"
        text.write_text("".join(map(written, exported(read_history(parquet), form))))
        answers.append(told_by(*in_memory(text, spec)[:2]))
    return answers


def alike_in_all_formats(answers: list[Report], history: WrittenHistory) -> bool:
    """Integers that were JSON are decided by other means, which may find out more about registers."""
    if "register" in said_otherwise.named(history) and answers[0].verdict == "unknown":
        return all(one == answers[0] for one in answers[:3])
    return all(one == answers[0] for one in answers)


@pytest.mark.parametrize(
    "count", [1, pytest.param(3, marks=pytest.mark.gate), pytest.param(20, marks=pytest.mark.thorough)]
)
def test_a_verdict_is_the_same_in_every_format(count: int, tmp_path: Path) -> None:
    for name, history in drawn(count, first=100):
        assert alike_in_all_formats(told_in_formats(history, tmp_path, str), history), name


def test_a_format_that_tells_time_outs_as_success_is_noticed(tmp_path: Path) -> None:
    def careless(line: str) -> str:
        return line.replace("info", "ok", 1)

    told_otherwise = [
        name
        for name, history in drawn(2, first=100)
        if "object" in name and not alike_in_all_formats(told_in_formats(history, tmp_path, careless), history)
    ]
    assert told_otherwise


# What is there before anything is written, by another name.

BEGINNINGS = (0, "", 7)


def begun_with(history: WrittenHistory, begin: Any, *, swaps_all: bool = True) -> WrittenHistory:
    """Registers that are `begin` before they are written, which where it stood becomes null.

    With `swaps_all` false, what is written stays as it is: then it is not the same.
    """

    def called(value: Any) -> Any:
        return begin if value is None else None if value == begin and type(value) is type(begin) else value

    rows = []
    for row in history.rows:
        value = json.loads((row["value"] or {}).get("json") or "null")
        if row["f"] == "cas" and value is not None:
            value = [called(part) for part in value] if swaps_all else value
        elif (row["f"] == "write" and swaps_all) or (row["f"], row["type"]) == ("read", "ok"):
            value = called(value)
        rows.append(row | {"value": {"json": json.dumps(value)}})
    return replace(history, rows=rows)


def registers_with_nulls(seed: int) -> WrittenHistory:
    """Whose null is written and expected as other values are."""
    history = KINDS["object cas-register"].drawn(seed)
    nulls = {1: None}
    rows = []
    for row in history.rows:
        value = json.loads((row["value"] or {}).get("json") or "null")
        value = [nulls.get(part, part) for part in value] if isinstance(value, list) else nulls.get(value, value)
        rows.append(row | {"value": {"json": json.dumps(value)}})
    return replace(history, rows=rows)


def told_of_registers(history: WrittenHistory, begin: Any) -> Report:
    spec = of_model("cas-register", initial=json.dumps(begin), failed_cas=None)
    return told_by(table_of(history), spec.otherwise or spec)


def told_of_read_registers(history: WrittenHistory, begin: Any, path: Path) -> Report:
    """As `check` reads them, which takes integers for integers."""
    pq.write_table(table_of(history), path.with_suffix(".parquet"))
    path.write_text("".join(exported(read_history(path.with_suffix(".parquet")), Format.EDN)))
    spec = of_model("cas-register", initial=json.dumps(begin), failed_cas=None)
    return told_by(*in_memory(path, spec)[:2])


@pytest.mark.parametrize("begin", BEGINNINGS, ids=json.dumps)
def test_null_is_a_value_as_others_are(begin: Any, tmp_path: Path) -> None:
    verdicts = set()
    for seed in range(15):
        history = registers_with_nulls(seed)
        before = told_of_registers(history, None)
        other = begun_with(history, begin)
        assert told_of_registers(other, begin) == before, seed
        if begin is not None:
            assert told_of_read_registers(other, begin, tmp_path / "h.edn") == before, seed
        verdicts.add(before.verdict)
    assert verdicts >= {"valid", "invalid"}


def test_a_null_that_stands_for_nothing_in_some_roles_is_noticed() -> None:
    histories_with_nulls = [registers_with_nulls(seed) for seed in range(15)]
    assert any(
        told_of_registers(begun_with(one, 7, swaps_all=False), 7) != told_of_registers(one, None)
        for one in histories_with_nulls
    )


# On Spark.


@pytest.fixture(scope="module")
def spark() -> SparkEngine:
    try:
        require_java()
    except JavaMissing as missing:
        pytest.skip(str(missing))
    return SparkEngine(spark_session("local[2]"))


def behind_each_other(kind: str, seeds: range) -> WrittenHistory:
    """Histories of that kind, each said in another way, under keys, processes and values of their own."""
    # Numbers are counted up, and behind the greatest there are none.
    ways = [way for name, way in WAYS.items() if name not in ("other processes", "ends of 64 bits")]
    found: WrittenHistory | None = None
    for seed in seeds:
        history = KINDS[kind].drawn(seed)
        rng = random.Random(f"{kind} {seed}")
        history = rng.choice(ways)(history, rng) or history
        if found is None:
            found = history
            continue
        rows, more = timed(found.rows), timed(said_otherwise.renamed_apart(history, found).rows)
        begin = rows[-1]["time"] if rows else 0
        found = replace(found, rows=[*rows, *(row | {"time": begin + row["time"]} for row in more)])
    assert found is not None
    return found


NOT_COMPARED_ELSEWHERE = ("delayed", "fencing lock", "map of lists", "object multi-register", "pop in order")
"""`test_engines_agree` and `test_checkers_against_definitions` compare the engines for the others."""


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in NOT_COMPARED_ELSEWHERE else pytest.mark.gate) for kind in KINDS]
)
def test_both_engines_say_the_same(kind: str, spark: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 100)
    history = behind_each_other(kind, range(1000, 1020))
    request = CheckRequest(history=table_of(history), repeats=repeats_of(history), searches=Searches.ALL)
    checkers = {"it": checker_of(history)}
    alone = check_history(request, checkers, InProcessEngine())
    assert check_history(request, checkers, spark) == alone
    assert not any("checker failed" in reason for reason in alone["it"].reasons)
