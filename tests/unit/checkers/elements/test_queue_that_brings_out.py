"""Elements that come out by what the system does after they are in: without its service nothing is lost for certain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import Verdict
from checkers.elements.queue import QueueChecker
from checkers.in_process.engine import InProcessEngine
from harness.record.facts import RunFacts
from harness.record.history import history_schema

VALUE = pa.struct([("value", pa.int64()), ("values", pa.list_(pa.int64()))])
STEPS = (("invoke", "enqueue", 1), ("ok", "enqueue", 1), ("invoke", "drain", None), ("ok", "drain", None))
SERVED = RunUnderCheck(facts=RunFacts(serves_ns=1))
NEVER = replace(SERVED, facts=RunFacts())


@pytest.mark.parametrize(
    ("run", "comes_later", "verdict"),
    [
        (NEVER, True, Verdict.UNKNOWN),
        (SERVED, True, Verdict.INVALID),
        (None, True, Verdict.INVALID),
        (NEVER, False, Verdict.INVALID),
    ],
)
def test_what_did_not_come_out_is_lost_only_where_the_system_served_again(
    tmp_path: Path, run: RunUnderCheck | None, comes_later: bool, verdict: Verdict
) -> None:
    rows = [
        {"index": n, "time": n, "process": 0, "type": kind, "f": f, "key": "q", "value": {"value": one, "values": []}}
        for n, (kind, f, one) in enumerate(STEPS)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=history_schema(VALUE)), tmp_path / "h.parquet")
    checker = QueueChecker(comes_later=comes_later)
    result = checker.check(CheckRequest(history=tmp_path / "h.parquet", run=run), InProcessEngine())
    assert result.verdict is verdict
    assert (verdict is Verdict.UNKNOWN) == bool(result.reasons)
