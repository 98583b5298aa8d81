"""Registers whose values are integers take a way of their own: what they answer and certify."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.model import FailedCas, Model
from checkers.linearizable.objects import MODELS
from checkers.linearizable.objects.register import cas_register
from checkers.linearizable.replay import OBJECTS, fault
from harness.record.history import history_schema
from results.output import write

VALUE = pa.struct([("value", pa.int64()), ("expected", pa.int64())])

Row = dict[str, Any]


def row(process: int, kind: str, f: str, value: int | None, *, key: str = "x", **more: Any) -> Row:
    return {
        "process": process,
        "type": kind,
        "f": f,
        "key": key,
        "value": {"value": value, **more.pop("of", {})},
    } | more


def done(process: int, f: str, value: int | None, key: str = "x") -> list[Row]:
    asked = None if f == "read" else value
    return [row(process, "invoke", f, asked, key=key), row(process, "ok", f, value, key=key)]


def cas(kind: str, error: str | None = None) -> list[Row]:
    """From 1 to 2."""
    swap = partial(row, 0, f="cas", value=2, of={"expected": 1})
    return [swap(kind="invoke"), swap(kind=kind, error=error)]


def table(*parts: list[Row]) -> pa.Table:
    rows = [{"index": i, "time": i, **one} for i, one in enumerate(one for part in parts for one in part)]
    return pa.Table.from_pylist(rows, schema=history_schema(VALUE))


def judge(model: Model, history: pa.Table) -> CheckerResult:
    return Linearizable(model).check(CheckRequest(history=history), InProcessEngine())


@pytest.mark.parametrize(
    ("history", "if_answer", "if_ignored"),
    [
        (table(done(0, "write", 1), cas("fail")), Verdict.INVALID, Verdict.VALID),
        (table(done(0, "write", 3), cas("fail")), Verdict.VALID, Verdict.VALID),
        (table(done(0, "write", 1), cas("fail", error="timed out")), Verdict.VALID, Verdict.VALID),
        (table(done(0, "write", 1), cas("info"), done(1, "read", 1)), Verdict.VALID, Verdict.VALID),
        (table(done(0, "write", 1), cas("ok"), done(1, "read", 1)), Verdict.INVALID, Verdict.INVALID),
        (
            table([row(0, "invoke", "write", 1), row(0, "fail", "write", 1)], done(1, "read", None)),
            Verdict.VALID,
            Verdict.VALID,
        ),
    ],
)
def test_a_failed_cas_says_that_another_value_was_there_where_that_is_an_answer(
    history: pa.Table, if_answer: Verdict, if_ignored: Verdict
) -> None:
    assert judge(cas_register(FailedCas.ANSWER), history).verdict is if_answer
    assert judge(cas_register(FailedCas.IGNORED), history).verdict is if_ignored


def test_every_register_is_certified_also_one_without_operations(tmp_path: Path) -> None:
    at_once = [row(0, "invoke", "write", 1), row(1, "invoke", "read", None), row(1, "ok", "read", 1)]
    failed = [row(2, "invoke", "read", None, key="y"), row(2, "fail", "read", None, key="y")]
    history = table([*at_once, row(0, "ok", "write", 1)], failed, done(1, "read", None, key="z"))
    path = tmp_path / "certificate"
    checker = Linearizable(MODELS["cas-register"])
    checker.certify(CheckRequest(history=history), InProcessEngine(), partial(write, path))
    _, *lines = map(json.loads, path.read_text().splitlines())
    orders = {line["key"]: line["order"] for line in lines}
    assert orders.keys() == {"x", "y", "z"} and orders["x"] == [0, 1] and orders["y"] == []
    rows = [one | {"value": one["value"]["value"]} for one in history.to_pylist()]
    assert fault(rows, orders, lambda: OBJECTS["cas-register"](None), False) is None


def test_a_register_of_integers_contradicts_itself_as_any_does() -> None:
    unended = [row(5, "invoke", "write", 9), row(6, "invoke", "read", None)]
    stale = table(unended, done(0, "write", 1), done(0, "write", 2), done(1, "read", 1))
    result = judge(MODELS["cas-register"], stale)
    assert (result.verdict, result.anomalies["nonlinearizable"].count) == (Verdict.INVALID, 1)
    (anomaly,) = result.anomalies["nonlinearizable"].examples
    assert anomaly.operations == (2, 3, 4, 5, 6, 7)
    fresh = table(unended, done(0, "write", 1), done(0, "write", 2), done(1, "read", 2))
    assert judge(MODELS["cas-register"], fresh).verdict is Verdict.VALID


def test_a_read_of_what_somebody_wrote_who_never_ended_names_no_end() -> None:
    overwritten = [row(0, "invoke", "write", 1), *done(1, "read", 1), *done(2, "write", 2), *done(3, "read", 2)]
    (anomaly,) = (
        judge(MODELS["cas-register"], table(overwritten, done(3, "read", 1))).anomalies["nonlinearizable"].examples
    )
    assert max(anomaly.operations) < len(overwritten) + 2
