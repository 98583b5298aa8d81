"""Foreign histories are converted without a change of content; what is no history is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harness.jepsen import Shape, convert
from harness.jepsen.edn import written
from harness.jepsen.transactions import MICRO_OPERATION
from harness.record.history import MalformedHistory, read_history

REGISTER = Shape(
    value_type=pa.struct([("value", pa.int64()), ("expected", pa.int64())]), functions=("read", "write", "cas")
)
TEXTS = Shape(value_type=pa.struct([("value", pa.string())]))
LOG = Shape(
    value_type=pa.struct(
        [("message", pa.int64()), ("messages", pa.list_(pa.struct([("offset", pa.int64()), ("message", pa.int64())])))]
    )
)


def converted(tmp_path: Path, text: str, shape: Shape = REGISTER) -> list[dict[str, Any]]:
    source, parquet = tmp_path / "foreign", tmp_path / "h.parquet"
    source.write_text(text, encoding="utf-8")
    assert convert(source, parquet, shape) == read_history(parquet).operations
    rows: list[dict[str, Any]] = read_history(parquet).table().to_pylist()
    return rows


def fields(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


EDN = """{:process 0, :type :invoke, :f :cas, :value [1 2], :time 10}
{:process :nemesis, :type :info, :f :kill, :value "n1", :time 20}
{:process 0, :type :info, :f :cas, :value :timed-out, :time 30}
{:process 0, :type :invoke, :f :read, :value nil, :time 40, :node "n1"}
{:process 0, :type :ok, :f :read, :value 2, :time 50, :node "n1"}
"""
TEXTUAL = """INFO  jepsen.core - Everything is set up
INFO  jepsen.util - 0\t:invoke\t:cas\t[1 2]
INFO  jepsen.util - :nemesis\t:info\t:kill\t"n1"
INFO  jepsen.util - 0\t:info\t:cas\t[1 2]\t:timed-out

INFO  jepsen.util - 0\t:invoke\t:read\tnil
INFO  jepsen.util - 0\t:ok\t:read\t2
"""


def as_json() -> list[dict[str, Any]]:
    rows = [
        (0, "invoke", "cas", [1, 2]),
        ("nemesis", "info", "kill", "n1"),
        (0, "info", "cas", "timed-out"),
        (0, "invoke", "read", None),
        (0, "ok", "read", 2),
    ]
    return [dict(zip(("process", "type", "f", "value"), row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    "text",
    [
        EDN,
        f"[{EDN}]",
        f"; one\n\n({EDN})",
        TEXTUAL,
        json.dumps(as_json()),
        json.dumps(as_json(), indent=2),
        "".join(json.dumps(row) + "\n" for row in as_json()),
    ],
    ids=["edn-lines", "edn-vector", "edn-list", "textual", "json-array", "json-spread-out", "json-lines"],
)
def test_every_format_says_the_same(tmp_path: Path, text: str) -> None:
    rows = converted(tmp_path, text)
    assert fields(rows, "type", "f", "error") == [
        ("invoke", "cas", None),
        ("info", "kill", None),
        ("info", "cas", "timed-out"),
        ("invoke", "read", None),
        ("ok", "read", None),
    ]
    assert rows[0]["value"] == {"value": 2, "expected": 1}
    assert rows[4]["value"] == {"value": 2, "expected": None}
    assert [row["process"] for row in rows] == [0, -1, 0, 1, 1], "a process is a new one after an unknown outcome"


def test_times_and_nodes_are_kept(tmp_path: Path) -> None:
    rows = converted(tmp_path, EDN)
    assert [row["time"] for row in rows] == [10, 20, 30, 40, 50]
    assert [row["node"] for row in rows] == [None, None, None, "n1", "n1"]


def test_without_times_the_order_is_the_time(tmp_path: Path) -> None:
    assert [row["time"] for row in converted(tmp_path, TEXTUAL)] == [0, 1, 2, 3, 4]


def test_neighbours_may_have_changed_places_by_less_than_a_millisecond(tmp_path: Path) -> None:
    text = EDN.replace("{:process :nemesis", "{:process :nemesis").replace(":time ", ":time 10000000")
    rows = converted(tmp_path, text.replace("1000000040", "1000000029"))
    assert [row["time"] for row in rows][2:4] == [1000000030, 1000000030]


@pytest.mark.parametrize("lifted", [False, True], ids=["key", "lifted"])
def test_a_key_is_beside_the_value_or_lifted_into_it(tmp_path: Path, lifted: bool) -> None:
    operations = [(7, "write", 3), (8, "cas", [3, 4]), (7, "read", None)]
    lines = []
    for key, f, value in operations:
        for kind in ("invoke", "ok"):
            held = f":value {written([key, value])}" if lifted else f":key {key}, :value {written(value)}"
            lines.append(f"{{:process 1, :type :{kind}, :f :{f}, {held}}}\n")
    rows = converted(tmp_path, "".join(lines))
    assert [row["key"] for row in rows] == ["7", "7", "8", "8", "7", "7"]
    assert rows[3]["value"] == {"value": 4, "expected": 3}


def test_a_completion_without_a_key_has_that_of_its_invocation(tmp_path: Path) -> None:
    text = "{:process 1, :type :invoke, :f :read, :value [:x nil]}\n{:process 1, :type :info, :f :read, :value nil}"
    assert [row["key"] for row in converted(tmp_path, text)] == ["x", "x"]


def test_a_pair_that_a_cas_swaps_is_no_key(tmp_path: Path) -> None:
    text = "{:process 1, :type :invoke, :f :cas, :value [1 2]}\n{:process 1, :type :fail, :f :cas, :value [1 2]}"
    assert fields(converted(tmp_path, text), "key", "error") == [(None, None), (None, None)]


def test_texts_and_maps_are_values_where_the_struct_has_them(tmp_path: Path) -> None:
    text = (
        '{:process 1, :type :invoke, :f :put, :key "k", :value "x y"}\n{:process 1, :type :fail, :f :put, :value "x y"}'
    )
    assert fields(converted(tmp_path, text, TEXTS), "value", "error") == [({"value": "x y"}, None)] * 2
    text = "{:process 1, :type :invoke, :f :poll, :value {:messages [{:offset 0, :message 5}]}}"
    rows = converted(tmp_path, text, LOG)
    assert rows[0]["value"] == {"message": None, "messages": [{"offset": 0, "message": 5}]}


INVOKE = "{:process 1, :type :invoke, :f :write, :value 3, :time 1000}"
OK = "{:process 1, :type :ok, :f :write, :value 3, :time 1001}"


@pytest.mark.parametrize(
    ("lines", "at", "reason"),
    [
        ([OK], 0, "ok of write without an open invocation"),
        ([INVOKE, INVOKE], 1, "while its write is still open"),
        ([INVOKE, OK.replace("write", "read")], 1, "completes read, but what it has open is write"),
        ([INVOKE, OK.replace(":ok", ":done")], 1, "type must be one of invoke, ok, fail, info, it is :done"),
        ([INVOKE, OK.replace(":type :ok, ", "")], 1, "type must be one of"),
        ([INVOKE.replace("write", "append")], 0, "f must be one of cas, read, write"),
        ([INVOKE, OK, INVOKE.replace("1000", "1002").replace(":value 3", ":value 1.5")], 2, "value must be made of"),
        ([INVOKE, OK, INVOKE.replace("1000", "1002").replace(":value 3", ":value true")], 2, "value must be int64"),
        (
            [INVOKE.replace(":process 1", ":process nil")],
            0,
            "process must be a number of at least 0, a name, or nemesis",
        ),
        ([INVOKE.replace("write", "cas")], 0, "must be [expected new]"),
        (["{:process 2,"], 0, "the text ends"),
        ([INVOKE, '{:process 2, :value "a', OK], 1, "the text ends within an operation"),
    ],
)
def test_what_is_no_history_is_refused_with_row_line_and_reason(
    tmp_path: Path, lines: list[str], at: int, reason: str
) -> None:
    with pytest.raises(MalformedHistory) as caught:
        converted(tmp_path, "; a comment\n" + "\n".join(lines))
    assert (caught.value.position, caught.value.line) == (at, at + 2)
    assert reason in caught.value.reason
    assert sorted(path.name for path in tmp_path.iterdir()) == ["foreign"], "nothing half-written stays"


@pytest.mark.parametrize("broken", ['{"process": 1, "type": "ok"', "[1]", "nonsense", '{"process": 1,, }'])
def test_broken_json_is_refused_with_its_line(tmp_path: Path, broken: str) -> None:
    text = "".join(json.dumps(row) + "\n" for row in as_json())
    with pytest.raises(MalformedHistory) as caught:
        converted(tmp_path, text + broken + "\n" + text)
    assert (caught.value.position, caught.value.line) == (5, 6)


def test_a_broken_log_line_is_refused_with_its_line(tmp_path: Path) -> None:
    for broken in ("INFO jepsen.util - 0 :invoke", "0 :ok", "0\t:ok\t:read\t[1"):
        with pytest.raises(MalformedHistory) as caught:
            converted(tmp_path, TEXTUAL + broken + "\n")
        assert caught.value.line == 8


def test_a_json_array_in_one_line_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.jepsen.source.BLOCK_BYTES", 16)
    monkeypatch.setattr("harness.jepsen.source.SNIFFED_BYTES", 16)
    assert len(converted(tmp_path, json.dumps(as_json()))) == 5


def test_an_empty_history_is_one(tmp_path: Path) -> None:
    for text in ("", "[]", "()", "; nothing\n", "[\n]\n"):
        assert converted(tmp_path, text) == []


ANYTHING = Shape(value_type=pa.struct([("json", pa.string())]))
ELEMENTS = Shape(value_type=pa.struct([("value", pa.int64()), ("values", pa.list_(pa.int64()))]))


def edn(kind: str, f: str, value: str) -> str:
    return f"{{:process 0, :type :{kind}, :f :{f}, :value {value}}}\n"


@pytest.mark.parametrize(
    ("value", "key", "text"),
    [
        ('"a"', None, '"a"'),
        ("1.5", None, "1.5"),
        ("[k [1 nil]]", "k", "[1, null]"),
        ("[[r x 1] [w x 2]]", None, '[["r", "x", 1], ["w", "x", 2]]'),
        ("{:a #{1 2}}", None, '{"a": [1, 2]}'),
        ("{[1] 2}", None, '{"[1]": 2}'),
    ],
)
def test_any_value_is_kept_as_json_where_that_is_asked_for(value: str, key: str, text: str, tmp_path: Path) -> None:
    (row,) = converted(tmp_path, edn("invoke", "write", value), ANYTHING)
    assert (row["key"], row["value"]) == (key, {"json": text})


def test_a_cas_of_three_values_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedHistory, match="line 1"):
        converted(tmp_path, edn("invoke", "cas", "[1 2 3]"), ANYTHING)


def test_a_pair_in_an_answer_is_no_key_if_the_invocation_had_none(tmp_path: Path) -> None:
    rows = converted(tmp_path, edn("invoke", "read", "nil") + edn("ok", "read", "[1 2]"), ELEMENTS)
    assert fields(rows, "key", "value") == [
        (None, {"value": None, "values": None}),
        (None, {"value": None, "values": [1, 2]}),
    ]


def test_balances_by_account_are_read_from_json_as_well(tmp_path: Path) -> None:
    shape = Shape(
        value_type=pa.struct([("balances", pa.list_(pa.struct([("account", pa.int64()), ("amount", pa.int64())])))])
    )
    row = {"process": 0, "type": "invoke", "f": "read", "value": {"0": 5, "1": -2}}
    (read,) = converted(tmp_path, json.dumps(row) + "\n", shape)
    assert read["value"] == {"balances": [{"account": 0, "amount": 5}, {"account": 1, "amount": -2}]}
    with pytest.raises(MalformedHistory, match="an account must be a number"):
        converted(tmp_path, json.dumps(row | {"value": {"a": 5}}), shape)


TRANSACTIONS = Shape(
    value_type=pa.struct(
        [
            pa.field(
                "txn",
                pa.list_(
                    pa.struct(
                        [
                            ("f", pa.string()),
                            ("key", pa.string()),
                            ("value", pa.int64()),
                            ("values", pa.list_(pa.int64())),
                        ]
                    )
                ),
            )
        ]
    )
)


@pytest.mark.parametrize("key", [None, "7"])
def test_transactions_are_lists_of_micro_operations_lifted_or_not(tmp_path: Path, key: str | None) -> None:
    def value(text: str) -> str:
        return text if key is None else f"[{key} {text}]"

    rows = converted(
        tmp_path,
        f"{{:process 0, :type :invoke, :f :txn, :value {value('[[:r :x nil] [:append 2 3]]')}}}\n"
        f"{{:process 0, :type :ok, :f :txn, :value {value('[[:r :x [1 2]] [:append 2 3]]')}}}\n"
        f"{{:process 0, :type :invoke, :f :txn, :value {value('[[:w 2 3]]')}}}\n",
        TRANSACTIONS,
    )
    nothing = {"value": None, "values": None}
    append = {"f": "append", "key": "2", "value": 3, "values": None}
    assert [(row["key"], row["value"]["txn"]) for row in rows] == [
        (key, [{"f": "r", "key": "x"} | nothing, append]),
        (key, [{"f": "r", "key": "x", "value": None, "values": [1, 2]}, append]),
        (key, [{"f": "w", "key": "2", "value": 3, "values": None}]),
    ]


@pytest.mark.parametrize("value", ["[[:r 1]]", "[5]", "[[1 2 3]]", "5"])
def test_a_transaction_of_anything_else_is_malformed(tmp_path: Path, value: str) -> None:
    with pytest.raises(MalformedHistory, match=r"line 1, row 0: .*(\[f key value\]|a map with txn)"):
        converted(tmp_path, f"{{:process 0, :type :invoke, :f :txn, :value {value}}}\n", TRANSACTIONS)


def test_transactions_of_one_kind_may_be_called_after_it(tmp_path: Path) -> None:
    shape = Shape(value_type=pa.struct([("txn", pa.list_(MICRO_OPERATION))]), functions=("txn",))
    lines = [
        f"{{:process 0, :type :{kind}, :f :{f}, :value {value}}}\n"
        for f, value in (("write", "[[:w 1 2]]"), ("txn", "[[:w 1 3] [:r 2 nil]]"), ("read", "[[:r 1 nil]]"))
        for kind in ("invoke", "ok")
    ]
    assert fields(converted(tmp_path, "".join(lines), shape), "f") == [("txn",)] * 6
