"""Early and late deliveries and their figures, against the definition, on ten thousand messages and more."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.elements.delay import DELAYED, MS, DelayChecker
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from harness.record.history import history_schema
from tests.references.delay_histories import defined_delays, random_delays


@pytest.mark.parametrize(("batch_rows", "operations", "seeds"), [(100_000, 12_000, 2), (61, 200, 40)])
def test_figures_and_anomalies_are_those_of_the_definition(
    batch_rows: int, operations: int, seeds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", batch_rows)
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 3 * batch_rows)
    names: Counter[str] = Counter()
    for seed in range(seeds):
        rng = random.Random(seed)
        rows = random_delays(rng, operations)
        tolerance_ms, latest_ms = rng.choice((0, 25)), rng.choice((5, 60))
        path = tmp_path / f"{seed}.parquet"
        numbered = [{"index": i, **row} for i, row in enumerate(rows)]
        pq.write_table(pa.Table.from_pylist(numbered, schema=history_schema(DELAYED)), path, row_group_size=997)
        checker = DelayChecker(tolerance_ms=tolerance_ms, latest_ms=latest_ms)
        result = check_history(CheckRequest(history=path), {"delay": checker}, InProcessEngine())["delay"]
        anomalies, lateness, counts = defined_delays(rows, tolerance_ms * MS, latest_ms * MS)
        assert {name: summary.count for name, summary in result.anomalies.items()} == dict(anomalies)
        assert {name: result.statistics[name] for name in counts} == dict(counts)
        reported = result.statistics["lateness"]["first delivery"]
        for name, exact in (("p50_ns", lateness[(len(lateness) + 1) // 2 - 1]), ("max_ns", lateness[-1])):
            assert exact * 31 / 32 - 1000 <= reported[name] <= exact
        names += anomalies
    shown = ("delivered-early", "delivered-late", "delivered-though-taken-back")
    assert min(names[name] for name in shown) > 100
