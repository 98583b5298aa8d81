"""What the checkers of transactions rule out, model by model, against trying all orders of a history's transactions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from checkers.api.plan import CheckRequest
from checkers.in_process.engine import InProcessEngine
from checkers.transactions.checker import ListAppend, RwRegister
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel
from tests.references.commit_orders import allowed
from tests.references.history_language import write_rows
from tests.references.thousands import thousands
from tests.references.transaction_histories import (
    Transaction,
    committed_of,
    history_rows,
    random_lists,
    random_registers,
)

Draw = Callable[[random.Random], list[Transaction]]


BOTH = pytest.mark.parametrize(
    ("checker", "draw"), [(ListAppend(), random_lists), (RwRegister(), random_registers)], ids=["lists", "registers"]
)


def judged_alike(checker: ListAppend | RwRegister, draw: Draw, path: Path, seeds: range) -> Counter[str]:
    """How many histories each model was ruled out by."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        drawn = draw(random.Random(seed))
        expected = {model.value for model in ConsistencyModel if not allowed(model.value, committed_of(drawn))}
        history = write_rows(history_rows(drawn), TRANSACTION, path)
        result = checker.check(CheckRequest(history=history), InProcessEngine())
        assert set(result.statistics["ruled_out"]) == expected, (seed, drawn)
        assert result.statistics["undecided"] == [], (seed, drawn)
        counts.update(expected)
    return counts


@BOTH
@thousands()
def test_exactly_those_models_are_ruled_out_that_no_order_explains(
    checker: ListAppend | RwRegister, draw: Draw, seeds: range, tmp_path: Path
) -> None:
    some = seeds[::8]  # each takes as long as eight decisions
    counts = judged_alike(checker, draw, tmp_path / "history.parquet", some)
    assert counts[ConsistencyModel.SERIALIZABLE.value] > len(some) // 6
