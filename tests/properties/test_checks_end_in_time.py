"""A check whose time is up tells what it knew until then, and is never surer than it would be with all the time."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from checkers.api.plan import CheckRequest, Dataset
from checkers.api.verdict import Verdict
from checkers.deadline_engine import EngineInTime
from checkers.engine_wrapper import EngineAround
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from checkers.search_budget import GRACE_S, TimeIsUp
from checkers.statistics import Statistics
from checkers.transactions.checker import Levels, ListAppend, RwRegister
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel
from tests.references.history_language import write_rows
from tests.references.transaction_histories import history_rows, random_lists, random_registers


@dataclass(frozen=True)
class UpAfter(EngineAround):
    """An engine that gathers so often, and then the time is up."""

    gathers: int
    done: list[Dataset] = field(default_factory=list)

    @property
    def has_time_left(self) -> bool:
        return len(self.done) < self.gathers

    def gather(self, source: Dataset, limit: int) -> pa.Table:
        if not self.has_time_left:
            raise TimeIsUp
        self.done.append(source)
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
            engine = UpAfter(InProcessEngine(), gathers)
            result = check_history(request, {"checker": checker}, engine)["checker"]
            assert result.verdict in (whole.verdict, Verdict.UNKNOWN)
            assert all(result.anomalies[found].count <= whole.anomalies[found].count for found in result.anomalies)
            if result.verdict is Verdict.UNKNOWN and whole.verdict is not Verdict.UNKNOWN:
                assert any("--give-up-after" in reason for reason in result.reasons)
            seen[result.verdict] += 1
            if engine.has_time_left:
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
