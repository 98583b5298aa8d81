"""Statistics: counts and latencies are right however the rows are split, and empty runs pass for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.tallies import bins_of, lowest_of_bin
from checkers.in_process.engine import InProcessEngine
from checkers.statistics import Statistics
from harness.record.history import history_schema

VALUE = pa.struct([pa.field("value", pa.int64())])


def history(path: Path, rows: list[tuple[int, int, str, str]], row_group_size: int = 1_000) -> Path:
    """Rows of (time, process, type, f)."""
    table = pa.Table.from_pylist(
        [
            {"index": i, "time": time, "process": process, "type": kind, "f": f}
            for i, (time, process, kind, f) in enumerate(rows)
        ],
        schema=history_schema(VALUE),
    )
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def check(path: Path) -> Any:
    return Statistics().check(CheckRequest(history=path), InProcessEngine())


ROWS = [
    (0, 0, "invoke", "read"),
    (5, 1, "invoke", "write"),
    (40, 0, "ok", "read"),
    (45, -1, "info", "start-kill"),
    (50, 0, "invoke", "read"),
    (60, 0, "fail", "read"),
    (70, 0, "invoke", "read"),
    (90, 1, "info", "write"),
    (1070, 0, "ok", "read"),
]


def test_counts_and_latencies_are_by_operation_and_outcome(tmp_path: Path) -> None:
    statistics = check(history(tmp_path / "h.parquet", ROWS)).statistics
    assert statistics["operations"] == {
        "read": {"invoke": 3, "ok": 2, "fail": 1},
        "write": {"invoke": 1, "info": 1},
    }
    assert statistics["ok_latency"]["read"]["p50_ns"] == 40
    assert statistics["ok_latency"]["read"]["max_ns"] == 1000


def test_pairs_torn_apart_by_batches_are_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = check(history(tmp_path / "whole.parquet", ROWS)).statistics
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 2)
    assert check(history(tmp_path / "torn.parquet", ROWS, row_group_size=1)).statistics == whole


def test_latency_bins_are_narrow() -> None:
    latencies = np.unique(np.geomspace(1, 1e13, 5_000).astype(np.int64))
    bins = bins_of(latencies)
    lowest = np.array([lowest_of_bin(number) for number in bins.tolist()])
    assert np.all(lowest <= latencies)
    assert np.all(latencies - lowest <= latencies / 32)
    assert np.all(np.diff(bins) >= 0)
