"""Whatever breaks in a checker, a verdict comes out of it, and never VALID; what is no history is refused."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from harness.record.history import MalformedHistory, history_schema
from harness.record.meaning import Meaning

SCHEMA = history_schema(pa.struct([pa.field("value", pa.int64())]))


class Broken:
    name = "broken"
    meanings: ClassVar[dict[str, Meaning]] = {}

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        raise ZeroDivisionError("by zero\nand more")


class Content:
    name = "content"
    meanings: ClassVar[dict[str, Meaning]] = {}

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        return CheckerResult(verdict=Verdict.VALID)


class Refusing:
    name = "refusing"
    meanings: ClassVar[dict[str, Meaning]] = {}

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        raise MalformedHistory(3, "of a reason of its own")


def history(path: Path, rows: list[dict[str, object]]) -> CheckRequest:
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path)
    return CheckRequest(history=path)


def test_a_checker_that_crashes_is_unknown_and_the_others_still_answer(tmp_path: Path) -> None:
    request = history(tmp_path / "h.parquet", [])
    results = check_history(request, {"a": Broken(), "b": Content()}, InProcessEngine())
    assert list(results) == ["a", "b"]
    assert results["a"].verdict is Verdict.UNKNOWN
    assert results["a"].reasons == ("the broken checker failed: ZeroDivisionError: by zero",)
    assert results["b"].verdict is Verdict.VALID


def test_what_is_no_history_is_no_verdict(tmp_path: Path) -> None:
    row = {"index": 0, "time": 0, "process": 0, "type": "ok", "f": "read"}
    with pytest.raises(MalformedHistory, match="row 0"):
        check_history(history(tmp_path / "h.parquet", [row]), {"b": Content()}, InProcessEngine())
    with pytest.raises(MalformedHistory, match="of its own"):
        check_history(history(tmp_path / "i.parquet", []), {"c": Refusing()}, InProcessEngine())
