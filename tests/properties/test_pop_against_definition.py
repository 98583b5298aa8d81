"""What breaks the promises of POP, against the definition, however the history is cut in pieces."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import Verdict
from checkers.elements.pop import MS, POPPED, PopChecker
from checkers.elements.pop_order import PopOrderChecker
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from harness.record.history import history_schema
from tests.references.pop_histories import defined_pops, random_pops
from tests.references.pop_order_histories import defined_overtaken, random_ordered_pops

EARLY = "redelivered-early"
NAMES = {"lost", EARLY, "redelivered-after-ack", "times-not-risen", "unexpected", "aborted-read"}


@pytest.mark.parametrize(("batch_rows", "operations", "seeds"), [(100_000, 1_500, 2), (61, 120, 40)])
def test_anomalies_are_those_of_the_definition(
    batch_rows: int, operations: int, seeds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", batch_rows)
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 3 * batch_rows)
    names: Counter[str] = Counter()
    for seed in range(seeds):
        rng = random.Random(seed)
        rows = random_pops(rng, operations)
        tolerance_ms = rng.choice((0, 15))
        path = tmp_path / f"{seed}.parquet"
        numbered = [{"index": i, **row} for i, row in enumerate(rows)]
        pq.write_table(pa.Table.from_pylist(numbered, schema=history_schema(POPPED)), path, row_group_size=97)
        checker = PopChecker(tolerance_ms=tolerance_ms)
        result = check_history(CheckRequest(history=path), {"pop": checker}, InProcessEngine())["pop"]
        expected = defined_pops(rows, tolerance_ms * MS)
        undecided = expected.pop("undecided", 0)
        found = {name: summary.count for name, summary in result.anomalies.items()}
        # A message that came early more than once is one message.
        assert found.get(EARLY, 0) >= expected[EARLY], seed
        assert found | {EARLY: expected[EARLY]} == expected | {EARLY: expected[EARLY]}, seed
        assert bool(found.get(EARLY)) == bool(expected[EARLY]), seed
        if not expected:
            assert result.verdict is (Verdict.UNKNOWN if undecided else Verdict.VALID)
        names += expected
    assert min(names[name] for name in NAMES) > 3, names


@pytest.mark.parametrize(("batch_rows", "operations", "seeds"), [(100_000, 400, 6), (61, 120, 40)])
def test_what_overtakes_is_what_does_so_by_definition(
    batch_rows: int, operations: int, seeds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", batch_rows)
    counts = []
    for seed in range(seeds):
        rows = random_ordered_pops(random.Random(seed), operations)
        path = tmp_path / f"{seed}.parquet"
        numbered = [{"index": i, "time": i * MS, **row} for i, row in enumerate(rows)]
        pq.write_table(pa.Table.from_pylist(numbered, schema=history_schema(POPPED)), path, row_group_size=97)
        result = check_history(CheckRequest(history=path), {"order": PopOrderChecker()}, InProcessEngine())["order"]
        expected = defined_overtaken(rows)
        assert {name: summary.count for name, summary in result.anomalies.items()} == dict(expected), seed
        counts.append(expected["overtaken"])
    assert sum(counts) > 3
