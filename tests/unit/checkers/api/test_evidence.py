"""What of a history could have contradicted anything: answers that say something, and none that leave it out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from checkers.api.evidence import (
    Evidence,
    any_ok,
    in_json,
    looked_at,
    reading,
    shows_a_value,
    shows_members,
    without_error,
)
from harness.record.history import history_schema

JSON = pa.struct([("json", pa.string())])
INTEGER = pa.struct([("value", pa.int64())])
LISTS = pa.struct([("values", pa.list_(pa.int64())), ("node", pa.int64())])
TXN = pa.struct([("txn", pa.list_(pa.struct([("f", pa.string()), ("key", pa.string())])))])


def places_of_evidence(evidence: Evidence, value: pa.DataType, *values: Any, **more: Any) -> list[int]:
    """Which of these reads are evidence, by their places."""
    row = {"time": 0, "process": 0, "type": "ok", "f": "read", **more}
    rows = [{"index": i, "value": one, **row} for i, one in enumerate(values)]
    found = evidence.among(pa.Table.from_pylist(rows, schema=history_schema(value)))
    return list(found["index"].to_pylist())


def parts(*fs: str) -> dict[str, Any]:
    return {"txn": [{"f": f, "key": "x"} for f in fs]}


@pytest.mark.parametrize(
    ("evidence", "value", "silent", "telling"),
    [
        (any_ok("read")[0], INTEGER, [], [None, {"value": None}, {"value": 1}]),
        (shows_a_value("read"), INTEGER, [None, {"value": None}], [{"value": 0}, {"value": 1}]),
        (shows_a_value("read"), JSON, [None, {"json": None}, {"json": "null"}], [{"json": "0"}, {"json": "[]"}]),
        (shows_members("read", "values", "-"), LISTS, [None, {"values": None}, {"values": []}], [{"values": [0]}]),
        (shows_members("read", "node", "-"), LISTS, [None, {"node": None}, {"values": [1]}], [{"node": 0}]),
        (reading("read", "r"), TXN, [None, {"txn": []}, parts("w"), parts("w", "w")], [parts("w", "r"), parts("r")]),
        (reading("read", "r"), INTEGER, [None, {"value": 1}], []),
        (in_json("read", lambda value: value == 7, "-"), JSON, [None, {"json": None}, {"json": "8"}], [{"json": "7"}]),
        (in_json("read", lambda value: value == 7, "-"), INTEGER, [None, {"value": 8}], [{"value": 7}]),
    ],
)
def test_an_answer_is_evidence_if_it_says_something(
    evidence: Evidence, value: pa.DataType, silent: list[Any], telling: list[Any]
) -> None:
    places = list(range(len(silent), len(silent) + len(telling)))
    assert places_of_evidence(evidence, value, *silent, *telling) == places
    assert places_of_evidence(evidence, value, *silent) == []
    for other in ({"type": "invoke"}, {"type": "info"}, {"type": "fail"}, {"f": "write"}):
        assert places_of_evidence(evidence, value, *silent, *telling, **other) == []


def test_a_failure_is_evidence_where_that_is_an_answer() -> None:
    missed = Evidence(f="read", type="fail", which=without_error, columns=("error",))
    assert places_of_evidence(missed, INTEGER, None, type="fail") == [0]
    assert places_of_evidence(missed, INTEGER, None, type="fail", error="timed out") == []
    assert places_of_evidence(missed, INTEGER, None, type="ok") == []


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (Evidence(f="read"), "an ok read"),
        (Evidence(f="cas", type="fail"), "a failed cas"),
        (Evidence(f="acquire", at_least=2), "2 ok acquire on one key"),
        (shows_a_value("read"), "an ok read that shows a value"),
    ],
)
def test_evidence_is_named_in_words(evidence: Evidence, words: str) -> None:
    assert str(evidence) == words


def test_each_column_is_looked_at_once_and_a_whole_one_instead_of_its_members() -> None:
    assert looked_at(any_ok("read")) == ()
    assert looked_at((Evidence(f="read", at_least=2),)) == ("key",)
    assert looked_at((shows_members("a", "x", "-"), shows_members("b", "x", "-"))) == ("value.x",)
    assert looked_at((shows_members("a", "x", "-"), shows_a_value("b"))) == ("value",)
