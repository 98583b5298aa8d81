"""Legal losses, finding by finding: each is excused exactly if what it is about was written within the span."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from checkers.api.anomaly import Anomaly
from checkers.api.plan import CheckRequest
from checkers.api.verdict import CheckerResult, Verdict, excused
from checkers.in_process.engine import InProcessEngine
from checkers.log import LogChecker
from checkers.log.messages import LOSSES
from checkers.log.rows import LOG_MESSAGES
from harness.record.excuse import Excuse
from harness.record.history import history_schema
from tests.references.history_language import parse_history
from tests.references.log_histories import random_history

EXCUSED = (*LOSSES, "inconsistent-offsets", "nonmonotonic-poll", "nonmonotonic-send")
US = 1_000
"""Operations are a microsecond apart."""


def judge(rows: list[dict[str, Any]], *excuses: Excuse) -> CheckerResult:
    numbered = [{"index": i, "time": i * US, **row} for i, row in enumerate(rows)]
    history = pa.Table.from_pylist(numbered, schema=history_schema(LOG_MESSAGES))
    return LogChecker().check(CheckRequest(history=history, excuses=excuses), InProcessEngine())


def identity(anomaly: Anomaly) -> tuple[object, ...]:
    return anomaly.name, anomaly.operations, anomaly.because


def spans(rows: list[dict[str, Any]], anomaly: Anomaly) -> tuple[int, int]:
    """From when to when that was under way which the anomaly is about, in operations."""
    if anomaly.name not in LOSSES:
        return anomaly.operations[0], anomaly.operations[0]
    message = anomaly.details["message"]
    sends = [(i, row) for i, row in enumerate(rows) if row["f"] == "send" and row["value"]["message"] == message]
    begun = [i for i, row in sends if row["type"] in ("invoke", "info")]
    acked = [i for i, row in sends if row["type"] == "ok"]
    (shown,) = anomaly.operations
    known = acked[0] if acked else shown
    return begun[0] if begun else known, known


@pytest.mark.parametrize("cut", ["whole", pytest.param("in-pieces", marks=pytest.mark.gate)])
def test_a_finding_is_excused_exactly_if_what_it_is_about_meets_the_span(
    cut: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.api.findings.EXAMPLES", 1_000)
    for module in ("messages", "conflicts", "jumps"):
        monkeypatch.setattr(f"checkers.log.{module}.EXAMPLES", 1_000)
    if cut == "in-pieces":
        monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 7)
        monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 40)
    seen = 0
    for seed in range(12):
        rng = random.Random(seed)
        rows = random_history(rng, 40)
        first = rng.randrange(len(rows))
        last = first + rng.randrange(len(rows) // 2)
        excuse = Excuse(anomalies=EXCUSED, reason="power", from_ns=first * US - 3, until_ns=last * US + 3)
        strict, lenient = judge(rows), judge(rows, excuse)
        for name, summary in strict.anomalies.items():
            assert len(summary.examples) == summary.count
            meets = {
                identity(anomaly)
                for anomaly in summary.examples
                if name in EXCUSED and spans(rows, anomaly)[0] <= last and spans(rows, anomaly)[1] >= first
            }
            of_name = [found for of, found in lenient.found() if of == name]
            legal = {identity(anomaly) for found in of_name if found.legal for anomaly in found.examples}
            broken = {identity(anomaly) for found in of_name if not found.legal for anomaly in found.examples}
            assert legal == meets, (seed, name)
            assert broken == {identity(anomaly) for anomaly in summary.examples} - meets, (seed, name)
            assert sum(found.count for found in of_name) == summary.count
            seen += bool(legal) + bool(broken)
        assert (lenient.verdict is Verdict.INVALID) == any(not found.legal for _, found in lenient.found())
    assert seen > 40


def test_what_was_excused_is_said_in_one_line_with_every_reason_once() -> None:
    rows = random_history(random.Random(5), 200)
    halves = [
        Excuse(anomalies=EXCUSED, reason=reason, from_ns=from_ns, until_ns=until_ns)
        for reason, from_ns, until_ns in (("b1 lost power", 0, 200 * US), ("b2 lost power", 200 * US + 1, 1_000 * US))
    ]
    words = excused({"log": judge(rows, *halves)})
    assert " excused: " in words
    assert words.count("b1 lost power") == 1


def test_a_write_is_excused_that_began_in_the_span_and_was_acked_behind_it() -> None:
    lost = """source: -
        checker: log
        verdict: invalid
        0 invoke send q0 1
        0 ok send q0 1@0
        0 ok send q0 2@1
        9 ok final-poll q0 at=b1 1:2
        9 ok caught-up q0 at=b1 end=2
    """
    began = Excuse(anomalies=EXCUSED, reason="power", from_ns=0, until_ns=US // 2)
    ((name, found),) = judge(parse_history(lost).rows, began).found()
    assert (name, found.legal) == ("lost-write", "power")
