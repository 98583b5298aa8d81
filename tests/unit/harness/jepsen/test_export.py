"""What is exported is read back as the same history."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.jepsen import Format, Shape, convert, exported
from harness.record.history import history_schema, read_history

REGISTER = pa.struct([("value", pa.int64()), ("expected", pa.int64())])
ROWS = [
    {"process": 0, "type": "invoke", "f": "cas", "key": "a b", "value": {"value": 2, "expected": 1}},
    {"process": -1, "type": "info", "f": "kill"},
    {"process": 0, "type": "info", "f": "cas", "key": "a b", "error": "client-timeout", "node": "n1"},
    {"process": 1, "type": "invoke", "f": "read", "key": "c", "value": {}},
    {"process": 1, "type": "ok", "f": "read", "key": "c", "value": {"value": 7}},
]


def stored(path: Path) -> Path:
    rows = [{"index": i, "time": 1_000 + i, **row} for i, row in enumerate(ROWS)]
    pq.write_table(pa.Table.from_pylist(rows, schema=history_schema(REGISTER)), path)
    return path


def as_text(path: Path, form: Format) -> str:
    file = StringIO()
    file.writelines(exported(read_history(path), form))
    return file.getvalue()


@pytest.mark.parametrize("form", list(Format))
def test_an_exported_history_is_read_back_as_it_was(tmp_path: Path, form: Format) -> None:
    path = stored(tmp_path / "h.parquet")
    foreign = tmp_path / "foreign"
    foreign.write_text(as_text(path, form))
    convert(foreign, tmp_path / "again.parquet", Shape(value_type=REGISTER))

    def rows_in(parquet: Path) -> list[object]:
        rows = read_history(parquet).table().to_pylist()
        empty = {"value": None, "expected": None}
        return [row | {"value": None if row["value"] == empty else row["value"]} for row in rows]

    # In columns a value without any field and no value are different; for Jepsen both are nil.
    assert [row["value"] or {"value": None} for row in rows_in(path)] == [  # type: ignore[index]
        row["value"] or {"value": None}
        for row in rows_in(tmp_path / "again.parquet")  # type: ignore[index]
    ]
    names = ("index", "time", "process", "type", "f", "key", "error", "node")
    assert [[row[name] for name in names] for row in rows_in(path)] == [  # type: ignore[index]
        [row[name] for name in names]
        for row in rows_in(tmp_path / "again.parquet")  # type: ignore[index]
    ]


def test_edn_has_keywords_where_jepsen_has_them(tmp_path: Path) -> None:
    lines = as_text(stored(tmp_path / "h.parquet"), Format.EDN).splitlines()
    assert lines[0] == '{:index 0, :time 1000, :process 0, :type :invoke, :f :cas, :value ["a b" [1 2]]}'
    assert ":process :nemesis, :type :info, :f :kill, :value nil" in lines[1]
    assert lines[2].endswith(':value ["a b" nil], :error "client-timeout", :node "n1"}')


@pytest.mark.parametrize("form", list(Format))
def test_a_fault_of_many_words_is_one_keyword(tmp_path: Path, form: Format) -> None:
    fault = {
        "index": 0,
        "time": 5,
        "process": -1,
        "type": "info",
        "f": "start-kill process 'etcd' of b1+b2 every 9 for 2",
    }
    path = tmp_path / "h.parquet"
    pq.write_table(pa.Table.from_pylist([fault], schema=history_schema(REGISTER)), path)
    foreign = tmp_path / "foreign"
    foreign.write_text(as_text(path, form))
    convert(foreign, tmp_path / "again.parquet", Shape(value_type=REGISTER))
    (row,) = read_history(tmp_path / "again.parquet").table().to_pylist()
    assert row["f"] == "start-kill-process-etcd-of-b1+b2-every-9-for-2"


def test_json_is_one_object_a_line(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in as_text(stored(tmp_path / "h.parquet"), Format.JSON).splitlines()]
    assert rows[4] == {"index": 4, "time": 1004, "process": 1, "type": "ok", "f": "read", "value": ["c", 7]}
    assert rows[1]["process"] == "nemesis"


def test_transactions_are_written_as_jepsen_writes_them(tmp_path: Path) -> None:
    part = pa.struct(
        [("f", pa.string()), ("key", pa.string()), ("value", pa.int64()), ("values", pa.list_(pa.int64()))]
    )
    kind = pa.struct([("txn", pa.list_(part))])
    asked = [{"f": "r", "key": "x"}, {"f": "w", "key": "y", "value": 2}, {"f": "r", "key": "z", "values": [1]}]
    row = {"index": 0, "time": 0, "process": 0, "type": "invoke", "f": "txn", "value": {"txn": asked}}
    pq.write_table(pa.Table.from_pylist([row], schema=history_schema(kind)), tmp_path / "h.parquet")
    assert ':value [[:r "x" nil] [:w "y" 2] [:r "z" [1]]]' in as_text(tmp_path / "h.parquet", Format.EDN)


def test_a_position_stands_beside_the_value(tmp_path: Path) -> None:
    kind = pa.struct([("value", pa.int64()), ("position", pa.string()), ("link", pa.string())])
    value = {"value": 1, "position": "p", "link": "init"}
    row = {"index": 0, "time": 0, "process": 0, "type": "invoke", "f": "write", "key": "7", "value": value}
    pq.write_table(pa.Table.from_pylist([row], schema=history_schema(kind)), tmp_path / "h.parquet")
    text = as_text(tmp_path / "h.parquet", Format.EDN)
    assert ':value ["7" 1], :position "p", :link "init"}' in text
    (tmp_path / "h.edn").write_text(text)
    convert(tmp_path / "h.edn", tmp_path / "again.parquet", Shape(value_type=kind))
    assert read_history(tmp_path / "again.parquet").table().to_pylist()[0]["value"] == value
