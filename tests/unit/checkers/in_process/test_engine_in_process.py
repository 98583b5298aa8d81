"""Plans in this process: however many threads there are, rows come in one order, and a kernel's failure is its own."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import Dataset, Kernel, Matching, Split
from checkers.in_process.engine import InProcessEngine

ROWS = 2_000


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.parquet"
    table = pa.table({"index": range(ROWS), "process": [i * i % 7 for i in range(ROWS)]})
    pq.write_table(table, path, row_group_size=50)
    return path


def dawdling(table: pa.Table) -> pa.Table:
    """The first group may be done last."""
    time.sleep(random.random() / 100)
    return table


def rows_of(engine: InProcessEngine, history: Path) -> list[dict[str, int]]:
    rows = engine.history(history, ("index", "process"))
    slow = engine.mapped(rows, dawdling, rows.schema)
    both = engine.union(slow, engine.grouped(slow, ("process",), dawdling, rows.schema))
    found: list[dict[str, int]] = engine.gather(both, 2 * ROWS).to_pylist()
    return found


def test_the_order_of_rows_does_not_depend_on_threads(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 500)
    alone = rows_of(InProcessEngine(threads=1), history)
    assert [row["index"] for row in alone[:ROWS]] == list(range(ROWS))
    assert sorted(row["index"] for row in alone[ROWS:]) == list(range(ROWS))
    assert rows_of(InProcessEngine(threads=8), history) == alone


def test_a_kernels_failure_is_raised_where_rows_are_asked_for(history: Path) -> None:
    def broken(table: pa.Table) -> pa.Table:
        if table["index"][0].as_py() > ROWS // 2:
            raise ZeroDivisionError("this kernel")
        return table

    engine = InProcessEngine(threads=4)
    rows = engine.history(history, ("index",))
    mapped = engine.mapped(rows, broken, rows.schema)
    for asked in (mapped, engine.grouped(mapped, ("index",), dawdling, rows.schema)):
        with pytest.raises(ZeroDivisionError, match="this kernel"):
            engine.gather(asked, ROWS)


def odd_ones_apart(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    odd = [index % 2 == 1 for index in table["index"].to_pylist()]
    return table.filter(pa.array([not one for one in odd])), dawdling(table).filter(pa.array(odd))


def matched(rows: Dataset, split: Split, key: str, kernel: Kernel) -> Matching:
    return Matching(split=split, schema=rows.schema, open_schema=rows.schema, keys=(key,), kernel=kernel)


@pytest.mark.parametrize("threads", [1, 8])
def test_what_is_complete_comes_first_and_then_each_group_of_the_rest(
    history: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 500)
    read: Counter[int] = Counter()

    def split(table: pa.Table) -> tuple[pa.Table, pa.Table]:
        read.update(table["index"].to_pylist())
        return odd_ones_apart(table)

    engine = InProcessEngine(threads=threads)
    rows = engine.history(history, ("index", "process"))
    matching = matched(rows, split, "process", lambda group: group)
    with engine.completed(rows, matching) as completed:
        found = engine.gather(completed, ROWS).to_pylist()

    odd = sorted((i * i % 7, i) for i in range(1, ROWS, 2))
    assert [row["index"] for row in found] == [*range(0, ROWS, 2), *(i for _, i in odd)]
    assert set(read.values()) == {1}


def test_what_waits_for_all_batches_does_not_wait_for_one_that_failed(history: Path) -> None:
    def broken(table: pa.Table) -> tuple[pa.Table, pa.Table]:
        if table["index"][0].as_py() > ROWS // 2:
            raise ZeroDivisionError("this kernel")
        return odd_ones_apart(table)

    engine = InProcessEngine(threads=4)
    rows = engine.history(history, ("index",))
    with (
        engine.completed(rows, matched(rows, broken, "index", dawdling)) as completed,
        pytest.raises(ZeroDivisionError, match="this kernel"),
    ):
        engine.gather(completed, ROWS)
