"""Rows of registers are put in order, however far from it they come."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from checkers.kernels.columns import OK
from checkers.transactions.elle.rw_register.resolution import Registers
from checkers.transactions.elle.rw_register.rows import ROWS, RegisterRole

TRANSACTIONS, PLACES, KEYS = 3_000, 3, 5


def rows_of_writes() -> pa.Table:
    """Transactions one after the other, each of some writes to keys drawn at random."""
    number = np.arange(TRANSACTIONS * PLACES)
    key = np.random.default_rng(1).integers(0, KEYS, len(number))
    columns = {name: np.zeros(len(number), dtype=np.int64) for name in ("bucket", "process")}
    columns |= {"role": np.full(len(number), RegisterRole.WRITE), "type": np.full(len(number), OK)}
    columns |= {"start": 2 * (number // PLACES), "end": 2 * (number // PLACES) + 1, "place": number % PLACES}
    arrays = {name: pa.array(column) for name, column in (columns | {"value": number}).items()}
    arrays["key"] = pa.array([f"x{k}" for k in key.tolist()])
    return pa.table({name: arrays[name].cast(ROWS.field(name).type) for name in ROWS.names}, schema=ROWS)


def reversed_rows(rows: int) -> np.ndarray:
    return np.arange(rows)[::-1]


def nearly_in_order(rows: int) -> np.ndarray:
    return np.argsort(np.arange(rows) + np.random.default_rng(2).integers(0, 40, rows), kind="stable")


def at_random(rows: int) -> np.ndarray:
    return np.random.default_rng(3).permutation(rows)


@pytest.mark.parametrize("arrange", [nearly_in_order, at_random, reversed_rows])
def test_rows_are_sorted_by_key_transaction_and_place(arrange) -> None:
    rows = rows_of_writes()
    expected = rows.sort_by([("key", "ascending"), ("start", "ascending"), ("place", "ascending")])

    found = Registers.of(rows.take(pa.array(arrange(rows.num_rows))).combine_chunks())

    assert found.names.to_pylist() == [f"x{k}" for k in range(KEYS)]
    assert found.names.take(pa.array(found.key)).to_pylist() == expected["key"].to_pylist()
    for name in ("start", "end", "place", "value"):
        assert getattr(found, name).tolist() == expected[name].to_pylist(), name
