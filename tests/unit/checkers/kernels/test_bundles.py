"""Tables travel together as bytes, and are read where these lie."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from checkers.kernels.bundles import BUNDLES, bundled, named, packed_tables, unbundled

NUMBERS = pa.schema([pa.field("number", pa.int64())])
WORDS = pa.schema([pa.field("word", pa.string())])


def numbers(first: int, rows: int) -> pa.Table:
    return pa.table({"number": np.arange(first, first + rows)}, schema=NUMBERS)


def words(*some: str) -> pa.Table:
    return pa.table({"word": pa.array(some)}, schema=WORDS)


def several() -> pa.Table:
    return pa.concat_tables(
        [
            bundled({"numbers": numbers(0, 3), "words": words("a", "b")}),
            bundled({"numbers": numbers(3, 0), "words": words("c")}),
            bundled({"numbers": numbers(3, 4), "words": words()}),
        ]
    ).combine_chunks()


def test_what_was_bundled_comes_back_by_its_name() -> None:
    assert several().schema == BUNDLES
    assert several().num_rows == 4
    assert unbundled(several(), name="numbers", schema=NUMBERS) == numbers(0, 7)
    assert unbundled(several().slice(1), name="words", schema=WORDS) == words("a", "b", "c")
    assert unbundled(several(), name="others", schema=WORDS) == WORDS.empty_table()
    assert unbundled(BUNDLES.empty_table(), name="words", schema=WORDS) == WORDS.empty_table()


def test_those_of_one_name_are_chosen_as_they_are() -> None:
    chosen = named(several(), name="words")
    assert chosen["name"].to_pylist() == ["words", "words"]
    assert unbundled(chosen, name="words", schema=WORDS) == words("a", "b", "c")


def test_tables_are_read_without_a_copy_of_their_bytes() -> None:
    bundles = bundled({"numbers": numbers(0, 1_000_000)})
    before = pa.total_allocated_bytes()
    (table,) = packed_tables(bundles, "numbers")
    assert table.num_rows == 1_000_000
    assert pa.total_allocated_bytes() - before < 100_000
