"""What faults cost of a log: whose losses they are, and how far back they reach."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.in_process.engine import InProcessEngine
from checkers.log import LogChecker
from checkers.log.rows import LOG_MESSAGES
from harness.record.fault_log import FaultLog, FaultWindow
from harness.record.history import history_schema
from tests.references.history_language import parse_history

LOST = """source: -
    checker: log
    verdict: invalid lost-write
    0 ok send q0 1@0
    0 ok send q0 2@1
    9 ok final-poll q0 at=b1 1:2
    9 ok caught-up q0 at=b1 end=2
"""


def at_risk(*windows: FaultWindow) -> Any:
    """Rows are 10 ns apart: message 1 was acknowledged at 10 ns."""
    rows = [{"index": i, "time": i * 10, **row} for i, row in enumerate(parse_history(LOST).rows)]
    history = pa.Table.from_pylist(rows, schema=history_schema(LOG_MESSAGES))
    request = CheckRequest(history=history, run=RunUnderCheck(faults=FaultLog(windows=windows)))
    return LogChecker().check(request, InProcessEngine()).statistics["data_at_risk"]


@pytest.mark.parametrize(("start_ns", "reach_ns"), [(5, 0), (10, 0), (11, 1), (14, 4)])
def test_a_fault_reaches_back_to_the_first_of_the_losses_that_it_is_blamed_for(start_ns: int, reach_ns: int) -> None:
    (row,) = at_risk(FaultWindow(kind="kill", start_ns=start_ns, stop_ns=99))
    assert (row["lost"], row["start_ns"], row["span_ns"], row["reach_ns"]) == (1, start_ns, 0, reach_ns)


def test_a_loss_behind_all_faults_is_blamed_on_none() -> None:
    (row,) = at_risk(FaultWindow(kind="kill", start_ns=1, stop_ns=2))
    assert row == {"fault": "no fault", "start_ns": None, "lost": 1, "span_ns": 0}


def test_a_log_of_which_nothing_was_read_shows_no_messages() -> None:
    sent = [{"process": 0, "type": kind, "f": "send", "key": "q", "value": {"message": 1}} for kind in ("invoke", "ok")]
    rows = [{"index": i, "time": i, **row} for i, row in enumerate(sent)]
    history = pa.Table.from_pylist(rows, schema=history_schema(pa.struct([("message", pa.int64())])))
    result = LogChecker().check(CheckRequest(history=history), InProcessEngine())
    assert (result.statistics["acked"], result.statistics["polled"]) == (1, 0)
    assert not result.anomalies
