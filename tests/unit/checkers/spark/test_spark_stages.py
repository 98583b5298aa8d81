"""Small tables are cut together, large ones by themselves, and no row is lost or doubled."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest

from checkers.kernels.packing import joined
from checkers.spark import stages
from checkers.spark.payloads import InRows

SCHEMA = pa.schema(
    [
        pa.field("number", pa.int64()),
        pa.field("word", pa.dictionary(pa.int32(), pa.string())),
        pa.field("near", pa.int8()),
    ]
)


def table(first: int, rows: int) -> pa.Table:
    """Its words are encoded by a dictionary of its own, and its numbers are narrower than the schema says."""
    numbers = list(range(first, first + rows))
    words = pa.array([f"w{n % 5}" for n in numbers]).dictionary_encode()
    return pa.table({"number": pa.array(numbers, pa.int32()), "word": words, "near": pa.array([7] * rows, pa.int8())})


@pytest.mark.parametrize(("at_once", "batches"), [(1, 5), (20, 3), (1_000_000, 1)])
def test_small_tables_are_cut_together(at_once: int, batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [table(0, 15), table(15, 10), table(25, 30), table(55, 1), table(56, 4)]
    monkeypatch.setattr(stages, "ROWS_AT_ONCE", at_once)

    def stage(_: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        return iter(tables)

    before = partial(stages.before_shuffle, stage=stage, payloads=InRows(), keys=("number",), schema=SCHEMA, count=3)
    sent = list(before(iter(())))
    assert len(sent) == batches
    (received,) = InRows().received(iter(sent))
    found = joined(list(received), SCHEMA).sort_by("number")
    assert found.to_pylist() == pa.concat_tables(t.cast(SCHEMA) for t in tables).to_pylist()
