"""A file between two tasks of Spark that was lost makes a check UNKNOWN; the reason says which one, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import CheckerResult, Verdict
from checkers.run import check_history
from checkers.spark.engine import SparkEngine
from checkers.spark.java import JavaMissing, require_java
from checkers.spark.session import shared_folder, spark_session
from harness.record.meaning import Meaning
from tests.references.history_language import VALUE_TYPES, write_rows

pytestmark = pytest.mark.xdist_group("spark")

INDICES = pa.schema([pa.field("index", pa.int64())])


def as_they_are(rows: pa.Table) -> pa.Table:
    """Kernel."""
    return rows


@dataclass(frozen=True)
class LosingItsFiles:
    """Keeps rows, which it can gather until the files that they are in are removed."""

    folder: Path
    name: ClassVar[str] = "losing"
    meanings: ClassVar[Mapping[str, Meaning]] = {}

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        before = set(self.folder.glob("*/*"))
        with engine.kept(engine.mapped(engine.history(request.history, ("index",)), as_they_are, INDICES)) as kept:
            assert engine.gather(kept, 10).num_rows == 2
            (lost,) = (file for file in self.folder.glob("*/*") if file not in before and len(file.name) == 32)
            lost.unlink()
            engine.gather(engine.grouped(kept, ("index",), as_they_are, INDICES), 10)
        return CheckerResult(verdict=Verdict.VALID)


def test_a_check_whose_files_were_lost_says_which_and_what_to_do(tmp_path: Path) -> None:
    try:
        require_java()
    except JavaMissing as missing:
        pytest.skip(str(missing))
    session = spark_session("local[2]")
    folder = shared_folder(session)
    assert folder is not None
    row = {"process": 0, "f": "add", "key": None, "value": {"value": 1}}
    rows = [{**row, "type": "invoke"}, {**row, "type": "ok"}]
    request = CheckRequest(history=write_rows(rows, VALUE_TYPES["counter"], tmp_path / "history.parquet"))
    result = check_history(request, {"losing": LosingItsFiles(folder)}, SparkEngine(session))["losing"]
    assert result.verdict is Verdict.UNKNOWN
    (reason,) = result.reasons
    assert reason.startswith(f"the losing checker failed: TaskFailed: checkers.spark.payloads.LostFile: {folder}/")
    assert "run the check again" in reason
