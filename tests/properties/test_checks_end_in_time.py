"""A check whose time is up tells what it knew until then, and is never surer than it would be with all the time."""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from checkers.history_batches import Source
from checkers.in_process.engine import InProcessEngine
from checkers.in_time import EngineInTime
from checkers.plan import CheckRequest, Dataset, Kernel, Split
from checkers.run import check_history
from checkers.searching import GRACE_S, TimeIsUp
from checkers.statistics import Statistics
from checkers.transactions.checker import Levels, ListAppend, RwRegister
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.verdict import Verdict
from harness.record.history import COLUMNS
from tests.references.history_language import write_rows
from tests.references.transaction_histories import history_rows, random_lists, random_registers


@dataclass
class UpAfter:
    """An engine that gathers so often, and then the time is up."""

    gathers: int
    engine: InProcessEngine = field(default_factory=InProcessEngine)
    name: str = "inprocess"

    def history(self, source: Source, columns: tuple[str, ...] = COLUMNS) -> Dataset:
        return self.engine.history(source, columns)

    def mapped(self, source: Dataset, kernel: Kernel, schema: pa.Schema) -> Dataset:
        return self.engine.mapped(source, kernel, schema)

    def grouped(self, source: Dataset, keys: tuple[str, ...], kernel: Kernel, schema: pa.Schema) -> Dataset:
        return self.engine.grouped(source, keys, kernel, schema)

    def completed(
        self,
        source: Dataset,
        split: Split,
        schema: pa.Schema,
        *,
        open_schema: pa.Schema,
        keys: tuple[str, ...],
        kernel: Kernel,
    ) -> AbstractContextManager[Dataset]:
        return self.engine.completed(source, split, schema, open_schema=open_schema, keys=keys, kernel=kernel)

    def union(self, left: Dataset, right: Dataset) -> Dataset:
        return self.engine.union(left, right)

    def kept(self, source: Dataset) -> AbstractContextManager[Dataset]:
        return self.engine.kept(source)

    def gather(self, source: Dataset, limit: int) -> pa.Table:
        if not self.gathers:
            raise TimeIsUp
        self.gathers -= 1
        return self.engine.gather(source, limit)


CHECKERS = {
    "lists": (ListAppend(), random_lists),
    "registers": (RwRegister(), random_registers),
    "the demanded level": (
        RwRegister(model=ConsistencyModel.SERIALIZABLE, levels=Levels.DEMANDED),
        random_registers,
    ),
}


@pytest.mark.parametrize("name", CHECKERS)
def test_whenever_the_time_is_up_what_was_known_of_transactions_stands(name: str, tmp_path: Path) -> None:
    checker, draw = CHECKERS[name]
    seen: Counter[Verdict] = Counter()
    for seed in range(8):
        history = write_rows(history_rows(draw(random.Random(seed))), TRANSACTION, tmp_path / "history.parquet")
        request = CheckRequest(history=history)
        whole = check_history(request, {"checker": checker}, InProcessEngine())["checker"]
        gathers = 0
        while True:
            engine = UpAfter(gathers)
            result = check_history(request, {"checker": checker}, engine)["checker"]
            assert result.verdict in (whole.verdict, Verdict.UNKNOWN)
            assert all(result.anomalies[found].count <= whole.anomalies[found].count for found in result.anomalies)
            if result.verdict is Verdict.UNKNOWN and whole.verdict is not Verdict.UNKNOWN:
                assert any("--give-up-after" in reason for reason in result.reasons)
            seen[result.verdict] += 1
            if engine.gathers:
                break
            gathers += 1
        assert result == whole
    assert min(seen[Verdict.INVALID], seen[Verdict.UNKNOWN], seen[Verdict.VALID]) > 3


def test_after_the_time_no_kernel_begins_and_each_checker_says_so(tmp_path: Path) -> None:
    history = write_rows(history_rows(random_lists(random.Random(1))), TRANSACTION, tmp_path / "history.parquet")
    request, checkers = CheckRequest(history=history), {"list-append": ListAppend(), "statistics": Statistics()}
    whole = check_history(request, checkers, InProcessEngine())
    assert check_history(request, checkers, EngineInTime(InProcessEngine(), time.time() + 1_000)) == whole
    # Searches are over, and what takes time in proportion to the history goes on.
    just_over = EngineInTime(InProcessEngine(), time.time())
    assert check_history(request, checkers, just_over)["statistics"] == whole["statistics"]
    for name, result in check_history(request, checkers, EngineInTime(InProcessEngine(), 0.0)).items():
        assert (result.verdict, result.anomalies) == (Verdict.UNKNOWN, {})
        assert result.reasons == (f"{name}: {TimeIsUp()}",)
    assert 0 < GRACE_S < 60
