"""Rows of external operations become committed transactions as a dumb reference says, whatever order they come in."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from checkers.kernels.columns import INFO, OK
from checkers.kernels.packing import packed
from checkers.transactions.history.committed import INITIAL, NEVER, NO_SESSION, WRITES, Committed
from checkers.transactions.history.committed_rows import (
    INITIAL_VERSION,
    IS_WRITE,
    KNOWN,
    KNOWN_IF_BOTH,
    RESOLVED,
    committed,
)
from tests.references.thousands import thousands

Row = dict[str, Any]


def random_rows(random: random.Random) -> list[Row]:
    """Transactions of which some are indefinite, on keys and at indices that lie close together or far apart."""
    stretch = random.choice((1, 1, 1_000_003))
    codes = [random.choice((1, 10**12)) * code for code in range(4)]
    rows: list[Row] = []
    written: list[tuple[int, int]] = []
    for number in range(random.randrange(8)):
        ended = random.random() < 0.7
        start = number * 2 * stretch
        operations = 40 if random.random() < 0.01 else random.randrange(1, 5)
        for place in sorted(random.sample(range(2 * operations), operations)):
            is_write = not ended or not written or random.random() < 0.5
            source, key = (0, random.choice(codes)) if is_write else random.choice(written)
            rows.append(
                {
                    "start": start,
                    "end": start + stretch if ended else NEVER,
                    "process": number % 3 * stretch,
                    "type": OK if ended else INFO,
                    "place": place,
                    "key": key,
                    "read_from": IS_WRITE if is_write else random.choice((source, source, INITIAL_VERSION)),
                }
            )
        written += [
            (row["start"], row["key"]) for row in rows if row["read_from"] == IS_WRITE and row["start"] == start
        ]
    if len(written) > 1 and random.random() < 0.5:
        for _ in range(3):
            (before, key), (after, _) = random.sample(written, 2)
            of_after = next(row for row in rows if row["start"] == after)
            place = random.choice((KNOWN, KNOWN_IF_BOTH))
            rows.append({**of_after, "place": place, "key": key, "read_from": before})
    return rows


def by_the_book(rows: list[Row]) -> dict[str, Any]:
    """The same, one transaction at a time."""
    named = {row["read_from"] for row in rows if row["place"] != KNOWN_IF_BOTH}
    named |= {row["start"] for row in rows if row["place"] == KNOWN}
    starts = sorted({row["start"] for row in rows if row["end"] != NEVER or row["start"] in named})
    number = {start: i for i, start in enumerate(starts, start=1)} | {INITIAL_VERSION: INITIAL, IS_WRITE: WRITES}
    key_number = {key: i for i, key in enumerate(sorted({row["key"] for row in rows}))}
    happened = [row for row in rows if row["start"] in number]
    one = {row["start"]: row for row in happened}
    processes = sorted({row["process"] for row in happened})
    in_order = sorted(happened, key=lambda row: row["place"])
    operations = [[row for row in in_order if row["start"] == start and row["place"] >= 0] for start in starts]
    flat = [row for some in operations for row in some]
    return {
        "start": [-1, *starts],
        "end": [-1, *(one[start]["end"] for start in starts)],
        "session": [NO_SESSION, *(processes.index(one[start]["process"]) for start in starts)],
        "first": [0, *np.cumsum([0, *map(len, operations)]).tolist()],
        "key": [key_number[row["key"]] for row in flat],
        "writer": [number[row["read_from"]] for row in flat],
        "known": sorted(
            {
                (key_number[row["key"]], number[row["read_from"]], number[row["start"]])
                for row in happened
                if row["place"] < 0 and row["read_from"] in number
            }
        ),
    }


def as_columns(transactions: Committed) -> dict[str, Any]:
    columns = {
        name: getattr(transactions, name).tolist() for name in ("start", "end", "session", "first", "key", "writer")
    }
    return columns | {"known": [tuple(row) for row in transactions.version_edges.tolist()]}


def agree(seed: int) -> None:
    rows = random_rows(random.Random(seed))
    random.Random(seed).shuffle(rows)
    parts = [pa.Table.from_pylist(some, schema=RESOLVED) for some in (rows[: seed % 5], rows[seed % 5 :])]
    transactions, keys = committed([packed(part, RESOLVED) for part in parts])
    assert as_columns(transactions) == by_the_book(rows), f"seed {seed}"
    assert keys.tolist() == sorted({row["key"] for row in rows}), f"seed {seed}"


def test_committed_transactions_are_those_of_the_reference() -> None:
    for seed in range(500):
        agree(seed)


@thousands()
def test_committed_transactions_are_those_of_the_reference_in_many_histories(seeds: range) -> None:
    for seed in seeds:
        agree(seed)


def test_numbers_have_the_types_that_deciders_expect() -> None:
    transactions, _ = committed([RESOLVED.empty_table()])
    assert len(transactions) == 1
    types = {name: getattr(transactions, name).dtype for name in ("start", "end", "session", "first", "key", "writer")}
    assert types == {
        "start": np.int64,
        "end": np.int64,
        "session": np.int32,
        "first": np.int64,
        "key": np.int32,
        "writer": np.int32,
    }
    assert transactions.version_edges.shape == (0, 3) and transactions.version_edges.dtype == np.int32


def test_a_read_of_a_transaction_without_rows_is_our_own_mistake() -> None:
    row = {"start": 4, "end": 5, "process": 0, "type": OK, "place": 0, "key": 0, "read_from": 2}
    with pytest.raises(AssertionError, match="the writer of what was read has no rows"):
        committed([pa.Table.from_pylist([row], schema=RESOLVED)])


def test_a_column_at_a_time_is_unpacked() -> None:
    rows = 200_000
    start = np.arange(rows) // 2 * 2
    columns = {
        "start": start,
        "end": start + 1,
        "process": start % 20,
        "type": np.full(rows, OK),
        "place": np.arange(rows) % 2,
        "key": start % 1_000,
        "read_from": np.full(rows, IS_WRITE),
    }
    table = pa.table({name: pa.array(column, RESOLVED.field(name).type) for name, column in columns.items()})
    part = packed(table, RESOLVED)
    committed([part])  # what is loaded once is no part of it
    tracemalloc.start()
    try:
        transactions, _ = committed([part])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(transactions) == rows // 2 + 1
    # It was 57 bytes a row, half of it the result; all columns at once would be 42 more.
    assert most < 70 * rows
