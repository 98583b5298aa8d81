"""A few transactions of a history are found as they are among all of them."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from checkers.api.plan import CheckRequest
from checkers.causal.spans import transactions
from checkers.in_process.engine import InProcessEngine
from checkers.transactions.history.micro_operations import TRANSACTION
from tests.properties.test_micro_rows import random_rows
from tests.references.history_language import write_rows

ENGINE = InProcessEngine()


def test_wanted_transactions_are_those_among_all_however_the_history_is_cut(tmp_path: Path) -> None:
    for seed in range(80):
        rng = random.Random(seed)
        rows = random_rows(rng)
        path = write_rows(rows, TRANSACTION, tmp_path / "history.parquet")
        pq.write_table(pq.read_table(path), path, row_group_size=rng.choice([1, 2, 5, 100]))
        request = CheckRequest(history=path)
        begun = np.array(sorted(rng.sample(range(len(rows)), len(rows) // 3)), dtype=np.int64)
        everything = ENGINE.gather(transactions(request, ENGINE), 100).sort_by("start").to_pylist()
        wanted = ENGINE.gather(transactions(request, ENGINE, begun=begun), len(begun)).sort_by("start").to_pylist()
        assert wanted == [row for row in everything if row["start"] in begun], seed
