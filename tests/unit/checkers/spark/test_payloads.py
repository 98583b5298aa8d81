"""Tables arrive as they were sent, whichever way they travel."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pytest

from checkers.kernels.grouping import partitions, undivided
from checkers.kernels.packing import joined
from checkers.spark.payloads import PARTITIONS_A_TASK, InFiles, InRows, LostFile, Payloads

SCHEMA = pa.schema([pa.field("bucket", pa.int32()), pa.field("name", pa.string()), pa.field("number", pa.int64())])
COUNT = 40


def some(first: int, rows: int) -> pa.Table:
    numbers = range(first, first + rows)
    columns = [[n % COUNT for n in numbers], [f"n{n % 7}" for n in numbers], list(numbers)]
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture(params=["rows", "files"])
def payloads(request: pytest.FixtureRequest, tmp_path: Path) -> Payloads:
    return InRows() if request.param == "rows" else InFiles(tmp_path / "shuffled")


def test_each_partition_arrives_whole_and_at_one_task(payloads: Payloads) -> None:
    dealt, tasks = payloads.dealt(COUNT, 1)
    tables = [some(0, 500), some(500, 3), some(503, 0), some(503, 90)]
    sent = list(dealt.sent(partitions(table, SCHEMA, ("bucket",), COUNT) for table in tables))
    rows = pa.Table.from_batches(sent)
    found = {}
    for task in range(tasks):
        mine = rows.filter(pa.compute.equal(rows["task"], task)).to_batches()
        for partition in dealt.received(iter(mine)):
            table = joined(list(partition), SCHEMA)
            (bucket,) = set(table["bucket"].to_pylist())
            assert bucket not in found
            found[bucket] = table.sort_by("number").to_pylist()
    everything = pa.concat_tables(tables)
    assert found == {n: everything.filter(pa.compute.equal(everything["bucket"], n)).to_pylist() for n in range(COUNT)}


def test_what_is_not_cut_arrives_table_by_table(payloads: Payloads) -> None:
    tables = [some(0, 9), some(9, 0), some(9, 1)]
    sent = payloads.sent(undivided(table, SCHEMA) for table in tables)
    received = chain.from_iterable(payloads.received(sent))
    assert [joined([table], SCHEMA) for table in received] == [tables[0], tables[2]]


def test_files_are_gone_when_they_are_forgotten_and_made_anew_after_that(tmp_path: Path) -> None:
    payloads = InFiles(tmp_path / "shuffled")
    for _ in range(2):
        (batch,) = payloads.sent(iter([undivided(some(0, 9), SCHEMA)]))
        assert [joined(list(tables), SCHEMA) for tables in payloads.received(iter([batch]))] == [some(0, 9)]
        payloads.forgotten()
        assert not list(tmp_path.iterdir())


def test_a_file_that_was_lost_is_named_and_what_to_do(tmp_path: Path) -> None:
    payloads = InFiles(tmp_path / "shuffled")
    (batch,) = payloads.sent(iter([undivided(some(0, 9), SCHEMA)]))
    (lost,) = payloads.folder.iterdir()
    lost.unlink()
    with pytest.raises(LostFile, match=rf"{re.escape(str(lost))} is gone.*run the check again"):
        [list(tables) for tables in payloads.received(iter([batch]))]


@pytest.mark.parametrize(
    ("partitions", "cores", "tasks"),
    [(1, 2, 1), (7, 2, 7), (40, 2, 8), (50, 2, 9), (5_000, 2, -(-5_000 // PARTITIONS_A_TASK))],
)
def test_tasks_are_few_but_keep_every_core_busy(partitions: int, cores: int, tasks: int, tmp_path: Path) -> None:
    assert InFiles(tmp_path).dealt(partitions, cores)[1] == tasks
    assert InRows().dealt(partitions, cores)[1] == partitions
