"""Cycles among transactions on a log are those that the definitions have, however its history is cut."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import AnomalySummary
from checkers.in_process.engine import InProcessEngine
from checkers.log.rows import LOG_MESSAGES
from checkers.log.transaction_cycles import transaction_cycles
from harness.record.history import history_schema
from tests.references.log_transactions import defined_edges, everything, nearest, operations_of, random_transactions
from tests.references.thousands import thousands
from tests.references.transaction_graphs import Transaction, Transactions, defined_counts


def found(rows: list[dict[str, Any]], path: Path) -> Mapping[str, AnomalySummary]:
    numbered = [{"index": i, "time": i * 1_000, **row} for i, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(numbered, schema=history_schema(LOG_MESSAGES)), path, row_group_size=11)
    anomalies, undecided = transaction_cycles(InProcessEngine(), CheckRequest(history=path))
    assert not undecided
    return anomalies


def defined(rows: list[dict[str, Any]], among: Callable[[list[Any]], list[Any]]) -> Counter[str]:
    nodes = [Transaction(start, end, process) for start, end, process, how, _ in operations_of(rows) if how != "fail"]
    number = {node.start: i for i, node in enumerate(nodes)}
    edges = [(kind, number[source], number[target]) for kind, source, target in defined_edges(rows, among)]
    return defined_counts(Transactions(nodes, sorted(edges), len(rows)))


def compare(seeds: range, directory: Path) -> Counter[str]:
    names: Counter[str] = Counter()
    for seed in seeds:
        rows = random_transactions(random.Random(seed), 6)
        anomalies = found(rows, directory / "h.parquet")
        counted = {name: summary.count for name, summary in anomalies.items()}
        assert counted == +defined(rows, nearest), seed
        # Dependencies that follow from nearer ones add no cycle, though they may hide one behind a stronger one.
        full = +defined(rows, everything)
        assert (bool(counted), "G0" in counted) == (bool(full), "G0" in full), seed
        names.update(counted)
    return names


@pytest.mark.parametrize("cut", ["whole", "in-pieces"])
def test_cycles_are_those_of_the_definition(cut: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if cut == "in-pieces":
        monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 5)
        monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 7)
    assert len(compare(range(60), tmp_path)) > 5


@thousands()
def test_cycles_are_those_of_the_definition_in_many_histories(seeds: range, tmp_path: Path) -> None:
    assert len(compare(seeds, tmp_path)) > 8
