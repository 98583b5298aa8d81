"""What a completion leaves out is said by its invocation, wherever a history is cut into batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.asked import in_full, leaves_out
from checkers.completions import CompletionEchoes, members, parts, remembered
from checkers.strand import repeats_in_all
from harness.record.history import MalformedHistory, history_schema

PART = pa.struct([("f", pa.string()), ("key", pa.string()), ("value", pa.int64())])
VALUE = pa.struct([("value", pa.int64()), ("link", pa.string()), ("txn", pa.list_(PART))])
REPEATS = (members("write"), remembered("write", of=("link",)), parts("txn", written=("w",)))

Row = dict[str, Any]


def table(rows: list[Row], value: pa.DataType = VALUE) -> pa.Table:
    numbered = [{"index": i, "time": i, "error": None, "node": None} | row for i, row in enumerate(rows)]
    return pa.Table.from_pylist(numbered, schema=history_schema(value))


def row(process: int, kind: str, f: str, value: Any = None, key: str | None = None) -> Row:
    return {"process": process, "type": kind, "f": f, "key": key, "value": value}


def value(number: int | None = None, link: str | None = None, txn: list[tuple[str, int | None]] | None = None) -> Row:
    does = None if txn is None else [{"f": f, "key": "x", "value": written} for f, written in txn]
    return {"value": number, "link": link, "txn": does}


SILENT = [
    row(0, "invoke", "write", value(1, "a"), "q"),
    row(1, "invoke", "write", value(2, "b"), "r"),
    row(2, "invoke", "txn", value(txn=[("w", 3), ("r", None)])),
    row(0, "ok", "write"),
    row(3, "invoke", "txn", value(txn=[("w", 4), ("r", None)])),
    row(4, "invoke", "read", value(7)),
    row(1, "fail", "write", value(503, "sorry"), "r"),
    row(2, "fail", "txn", value(txn=[("w", 5)])),
    row(3, "ok", "txn"),
    row(4, "ok", "read", value()),
    row(-1, "info", "write", value(6)),
]
IN_FULL = {
    3: (value(1, "a"), "q"),
    6: (value(2, "b"), "r"),
    7: (value(txn=[("w", 3), ("r", None)]), None),
    # Nobody knows what it read.
    8: (value(txn=[("w", 4)]), None),
}


def transactions_in(
    rows: list[Row], repeats: tuple[CompletionEchoes, ...], path: Path | None = None
) -> list[tuple[Any, Any]]:
    history: Any = table(rows)
    if path is not None:
        pq.write_table(history, path, row_group_size=2)
        history = path
    with in_full(history, repeats) as full:
        found = (full if isinstance(full, pa.Table) else pq.read_table(full)).to_pylist()
    assert path is None or list(path.parent.iterdir()) == [path]
    assert [(one["index"], one["process"], one["type"]) for one in found] == [
        (i, one["process"], one["type"]) for i, one in enumerate(rows)
    ]
    return [(one["value"], one["key"]) for one in found]


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 5, 1_000])
@pytest.mark.parametrize("in_file", [False, True])
def test_a_completion_says_what_was_asked(
    batch_rows: int, in_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", batch_rows)
    found = transactions_in(SILENT, REPEATS, tmp_path / "history.parquet" if in_file else None)
    for i, one in enumerate(SILENT):
        said = IN_FULL.get(i, (one["value"], one["key"]))
        assert found[i] in (said, (said[0] or value(), said[1])), i


def test_a_history_that_says_everything_stays_as_it_is() -> None:
    rows = table([row(0, "invoke", "write", value(1), "q"), row(0, "ok", "write", value(1), "q")])
    assert not leaves_out(rows, REPEATS)
    with in_full(rows, REPEATS) as full:
        assert full is rows


@pytest.mark.parametrize("completed", ["ok", "fail", "info"])
def test_a_key_is_left_out_whatever_was_done(completed: str) -> None:
    assert transactions_in([row(0, "invoke", "read", key="q"), row(0, completed, "read")], ())[1][1] == "q"


def test_another_key_is_no_answer() -> None:
    with pytest.raises(MalformedHistory, match="read completes with key r, but was invoked with q"):
        leaves_out(table([row(0, "invoke", "read", key="q"), row(0, "ok", "read", key="r"), row(1, "invoke", "x")]), ())


def test_what_may_be_answered_otherwise_counts_as_it_is_answered() -> None:
    rows = [row(0, "invoke", "write", value(1, "a")), row(0, "ok", "write", value(None, "b"))]
    assert transactions_in(rows, REPEATS)[1][0] == value(1, "b")


def test_strands_are_told_apart() -> None:
    of_all = pa.struct([("one", VALUE), ("other", VALUE)])
    repeats = tuple(repeats_in_all("one", each) for each in REPEATS)
    rows = [row(0, "invoke", "one/write", {"one": value(1, "a"), "other": None}), row(0, "ok", "one/write")]
    with in_full(table(rows, of_all), repeats) as full:
        assert full.to_pylist()[1]["value"]["one"] == value(1, "a")
