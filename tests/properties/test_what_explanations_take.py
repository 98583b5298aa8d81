"""What is looked at to explain a few cycles does not grow with the history, but for reading it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from checkers.api.plan import CheckRequest, Dataset, Kernel
from checkers.in_process.engine import InProcessEngine
from stormproof.session.check_spec import checker_for
from tests.properties.test_what_is_gathered import Row, lists, written_registers
from tests.references.history_language import VALUE_TYPES, write_rows

REASONS = {"list-append": "list_reasons", "rw-register": "register_reasons"}


@dataclass(frozen=True)
class Watched(InProcessEngine):
    """Counts the rows that kernels are given."""

    rows: Counter[str] = field(default_factory=Counter)

    def mapped(self, source: Dataset, kernel: Kernel, schema: pa.Schema) -> Dataset:
        return super().mapped(source, self._watched(kernel), schema)

    def grouped(self, source: Dataset, keys: tuple[str, ...], kernel: Kernel, schema: pa.Schema) -> Dataset:
        return super().grouped(source, keys, self._watched(kernel), schema)

    def _watched(self, kernel: Kernel) -> Kernel:
        name = (kernel.func if isinstance(kernel, partial) else kernel).__name__

        def watched(table: pa.Table) -> pa.Table:
            self.rows[name] += table.num_rows
            return kernel(table)

        return watched


@pytest.mark.parametrize(("checker", "operations"), [("list-append", lists), ("rw-register", written_registers)])
def test_only_what_concerns_wanted_transactions_is_grouped_again(
    checker: str, operations: Callable[[int], list[Row]], tmp_path: Path
) -> None:
    explained = []
    for size in (300, 3_000):
        rows = [row for number in range(size) for row in operations(number)]
        history = write_rows(rows, VALUE_TYPES[checker], tmp_path / f"{size}.parquet")
        engine = Watched()
        found = checker_for(checker, {}).check(CheckRequest(history=history), engine)
        assert any(example.details for summary in found.anomalies.values() for example in summary.examples)
        explained.append([engine.rows[kernel] for kernel in (REASONS[checker], "transaction_spans")])
    assert explained[0] == explained[1]
    assert all(0 < rows < 200 for rows in explained[0])
