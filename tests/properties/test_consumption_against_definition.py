"""What the consumption checker counts is what its definitions count, however the history is cut."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.consumption import ConsumptionChecker, Mode, Model
from checkers.consumption.rows import CONSUMPTION
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from harness.record.excuse import Excuse
from harness.record.history import history_schema
from tests.references.consumption_histories import defined_consumption, random_consumption

LIMIT = 2
FORMS = (
    (Model.CLUSTERING, Mode.CONCURRENTLY),
    (Model.CLUSTERING, Mode.ORDERLY),
    (Model.CLUSTERING, Mode.POPPING),
    (Model.BROADCASTING, Mode.CONCURRENTLY),
)


def write(seed: int, path: Path, model: Model, operations: int = 60) -> list[dict[str, object]]:
    rows = random_consumption(random.Random(seed), operations, is_divided=model is Model.CLUSTERING)
    numbered = [{"index": i, "time": i * 1_000, **row} for i, row in enumerate(rows)]
    table = pa.Table.from_pylist(numbered, schema=history_schema(CONSUMPTION))
    pq.write_table(table, path, row_group_size=23)
    return rows


@pytest.mark.parametrize("cut", ["whole", pytest.param("in-pieces", marks=pytest.mark.gate)])
@pytest.mark.parametrize(("model", "mode"), FORMS)
def test_counts_are_those_of_the_definitions(
    cut: str, model: Model, mode: Mode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cut == "in-pieces":
        monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 7)
        monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 30)
    names: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    for seed in range(25):
        path = tmp_path / f"{seed}.parquet"
        rows = write(seed, path, model)
        checker = ConsumptionChecker(model=model, mode=mode, limit=LIMIT)
        result = check_history(CheckRequest(history=path), {"it": checker}, InProcessEngine())["it"]
        defined, is_complete = defined_consumption(
            rows,
            is_divided=model is Model.CLUSTERING,
            in_order=mode is Mode.ORDERLY,
            is_popped=mode is Mode.POPPING,
            limit=LIMIT,
        )
        found = {name: summary.count for name, summary in result.anomalies.items()}
        assert found == dict(defined), (seed, result.reasons)
        expected = "invalid" if defined else "valid" if is_complete else "unknown"
        assert result.verdict.value == expected, (seed, result.reasons)
        names += defined
        verdicts[expected] += 1
    expected_names = {"unconsumed", "unexpected-consumption", "aborted-consumption"}
    if model is Model.CLUSTERING:
        expected_names |= {"lost-retry", "wrong-retry-count"}
    if model is Model.CLUSTERING and mode is not Mode.POPPING:
        expected_names |= {"passed-over", "early-dead-letter"}
    if mode is Mode.ORDERLY:
        expected_names |= {"overtaken", "overlap"}
    assert set(names) == expected_names


def test_examples_do_not_depend_on_how_the_history_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkers = {"it": ConsumptionChecker(mode=Mode.ORDERLY, limit=LIMIT)}
    paths = [tmp_path / f"{seed}.parquet" for seed in range(8)]
    for seed, path in enumerate(paths):
        write(seed, path, Model.CLUSTERING, 120)
    whole = [check_history(CheckRequest(history=path), checkers, InProcessEngine()) for path in paths]
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 5)
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 17)
    assert [check_history(CheckRequest(history=path), checkers, InProcessEngine()) for path in paths] == whole


def test_what_an_excuse_covers_is_legal_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "h.parquet"
    write(3, path, Model.CLUSTERING, 120)
    checkers = {"it": ConsumptionChecker(mode=Mode.ORDERLY, limit=LIMIT)}
    strict = check_history(CheckRequest(history=path), checkers, InProcessEngine())["it"]
    names = ("unconsumed", "passed-over", "overlap", "overtaken")
    early = Excuse(anomalies=names, reason="power", from_ns=0, until_ns=40_000)
    lenient = check_history(CheckRequest(history=path, excuses=(early,)), checkers, InProcessEngine())["it"]
    excused = 0
    for name, summary in strict.anomalies.items():
        found = [one for of, one in lenient.found() if of == name]
        assert sum(one.count for one in found) == summary.count
        legal = [one for one in found if one.legal]
        assert not legal or name in names
        excused += sum(one.count for one in legal)
    assert excused > 0
