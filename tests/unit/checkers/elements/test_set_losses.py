"""The set checker where losses are excused: by when an element was added, one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import CheckerResult, Verdict
from checkers.elements.set import COUNTED, SetChecker
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from harness.record.excuse import Excuse
from harness.record.history import history_schema
from workloads.set import ELEMENTS

S = 10**9


def row(time_s: float, process: int, kind: str, f: str, value: int | None, values: Any = None) -> dict[str, Any]:
    content = {"value": value, "values": values}
    return {"time": int(time_s * S), "process": process, "type": kind, "f": f, "key": "s", "value": content}


def added(element: int, call_s: float, answer_s: float, process: int) -> list[dict[str, Any]]:
    return [row(call_s, process, "invoke", "add", element), row(answer_s, process, "ok", "add", element)]


def read(call_s: float, *elements: int) -> list[dict[str, Any]]:
    return [row(call_s, 9, "invoke", "read", None), row(call_s + 1, 9, "ok", "read", None, list(elements))]


def checked(tmp_path: Path, *excuses: Excuse) -> CheckerResult:
    """Elements 1 to 3 are added from 1 to 2 s, 9 to 10 s and 19 to 20 s; the last read shows the third alone."""
    return judge(tmp_path, added(1, 1, 2, 0), added(2, 9, 10, 1), added(3, 19, 20, 2), read(30, 3), excuses=excuses)


def judge(tmp_path: Path, *parts: list[dict[str, Any]], excuses: tuple[Excuse, ...] = ()) -> CheckerResult:
    rows = [{"index": index, **one} for index, one in enumerate(one for part in parts for one in part)]
    path = tmp_path / "history.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=history_schema(ELEMENTS)), path)
    request = CheckRequest(history=path, excuses=excuses)
    return check_history(request, {"set": SetChecker()}, InProcessEngine())["set"]


def excuse(from_s: float, until_s: float) -> Excuse:
    return Excuse(anomalies=("lost",), reason="power", from_ns=int(from_s * S), until_ns=int(until_s * S))


def test_a_loss_that_no_excuse_covers_is_a_finding(tmp_path: Path) -> None:
    result = checked(tmp_path, excuse(8, 12))
    assert result.verdict is Verdict.INVALID
    lost = result.anomalies["lost"]
    assert lost.count == 1 and [one.details["element"] for one in lost.examples] == [1]
    assert lost.excused is not None and lost.excused.count == 1


@pytest.mark.parametrize("spans", [[(0, 12)], [(1.5, 1.6), (9.5, 9.6)], [(0, 1), (10, 11)]])
def test_all_losses_that_meet_a_span_are_excused(tmp_path: Path, spans: list[tuple[float, float]]) -> None:
    result = checked(tmp_path, *(excuse(*span) for span in spans))
    assert result.verdict is Verdict.VALID
    assert result.anomalies["lost"].count == 2


def test_without_excuses_each_loss_counts(tmp_path: Path) -> None:
    result = checked(tmp_path)
    assert result.verdict is Verdict.INVALID and result.anomalies["lost"].count == 2


def test_what_became_of_elements_is_counted(tmp_path: Path) -> None:
    ended = {2: "info", 3: "fail"}
    parts = [added(element, element, element + 0.5, element) for element in (1, 2, 3, 5, 6)] + [added(7, 22, 23, 7)]
    for _, answer in parts:
        answer["type"] = ended.get(answer["value"]["value"], "ok")
    result = judge(tmp_path, *parts[:5], read(20, 1, 2, 3, 4, 6), parts[5], read(30, 1, 2, 3, 4))
    assert {name: result.statistics[name] for name in COUNTED} == {
        "attempted": 6,
        "acked": 4,  # 1, 5, 6 and 7
        "stable": 4,  # 1, and those that should not be there
        "lost": 3,
        "stale": 0,
        "never-read": 0,
        "recovered": 1,  # 2
    }
