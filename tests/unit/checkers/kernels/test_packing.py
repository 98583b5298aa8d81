"""Packed tables are the tables they were made of, however they were cut, and lists are read as they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.kernels.columns import elements
from checkers.kernels.grouping import groups, partitions
from checkers.kernels.packing import joined, packed

SCHEMA = pa.schema(
    [
        pa.field("wide", pa.int64()),
        pa.field("narrow", pa.int8()),
        pa.field("maybe", pa.int32()),
        pa.field("name", pa.dictionary(pa.int32(), pa.string())),
        pa.field("list", pa.list_(pa.int64())),
    ]
)
WIDE = st.one_of(
    st.integers(-3, 3), st.integers(1 << 40, (1 << 40) + 70_000), st.sampled_from([-(1 << 63), (1 << 63) - 1])
)
ROW = st.fixed_dictionaries(
    {
        "wide": WIDE,
        "narrow": st.integers(-128, 127),
        "maybe": st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
        "name": st.none() | st.sampled_from(["a", "b", "c"]),
        "list": st.none() | st.lists(st.integers(0, 5), max_size=3),
    }
)
ROWS = st.lists(ROW, max_size=12)


def table_of(rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, max_size=4))
def test_what_was_packed_comes_back(parts: list[list[dict[str, object]]]) -> None:
    whole = joined([packed(table_of(rows), SCHEMA) for rows in parts], SCHEMA)
    assert whole.schema == SCHEMA
    assert whole.to_pylist() == [row for rows in parts for row in rows]


def test_numbers_close_together_take_one_byte_and_equal_ones_none() -> None:
    rows = 10_000
    close = pa.table({"a": (1 << 60) + np.arange(rows) % 200, "b": np.full(rows, -7)})
    assert packed(close, close.schema).nbytes == rows


@pytest.mark.parametrize("keys", [("wide",), ("name", "narrow"), ("maybe",)])
@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
def test_partitions_keep_groups_whole_and_groups_keep_order(
    keys: tuple[str, ...], rows: list[dict[str, object]]
) -> None:
    table = table_of(rows)
    expected: dict[tuple[object, ...], list[object]] = {}
    for row in rows:
        expected.setdefault(tuple(row[key] for key in keys), []).append(row)
    found = [group.to_pylist() for group in groups(table, keys)]
    in_parts = [
        group.to_pylist()
        for _, part in partitions(table, SCHEMA, keys, 3).parts()
        for group in groups(joined([part], SCHEMA), keys)
    ]
    assert len(found) == len(in_parts) == len(expected)
    for group in [*found, *in_parts]:
        assert group == expected[tuple(group[0][key] for key in keys)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | st.lists(st.integers(0, 9), max_size=4), max_size=9), st.integers(0, 9))
def test_elements_are_those_of_all_lists(lists: list[list[int] | None], start: int) -> None:
    array = pa.array(lists, pa.list_(pa.int64())).slice(start)
    parents, values = elements(array)
    expected = [(row, value) for row, items in enumerate(lists[start:]) for value in items or ()]
    assert list(zip(parents.tolist(), values.to_pylist(), strict=True)) == expected


def test_what_a_null_list_hides_is_no_element() -> None:
    values, mask = pa.array([1, 2, 3]), pa.array([False, True, False])
    array = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), values, mask=mask)
    parents, shown = elements(array)
    assert (parents.tolist(), shown.to_pylist()) == ([0, 2], [1, 3])
