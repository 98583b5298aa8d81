"""What was found broken while a run went on is judged: named, placed in time, excused where that is legal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.invariants import Invariants
from harness.errors import UsageError
from harness.record.excuse import Excuse
from harness.record.facts import Breach, RunFacts

BREACHES = tuple(
    Breach(name="unheld-ack", nodes=("b1",), time_ns=second * 1_000_000_000, because=f"b1 lacks {second}")
    for second in (3, 9)
)


def check(*excuses: Excuse, breaches: tuple[Breach, ...] = BREACHES) -> CheckerResult:
    request = CheckRequest(
        history=Path("none"), run=RunUnderCheck(facts=RunFacts(breaches=breaches)), excuses=tuple(excuses)
    )
    return Invariants({}).check(request, InProcessEngine())


def test_none_broken_is_valid() -> None:
    assert check(breaches=()).verdict is Verdict.VALID


def test_each_is_told_with_its_time_and_nodes() -> None:
    result = check()
    assert result.verdict is Verdict.INVALID
    summary = result.anomalies["unheld-ack"]
    assert summary.count == 2
    assert [anomaly.because for anomaly in summary.examples] == ["at 3.000 s b1 lacks 3", "at 9.000 s b1 lacks 9"]
    assert summary.examples[0].details == {"nodes": ["b1"], "time_ns": 3_000_000_000}


def test_an_excuse_holds_within_its_span_and_for_its_names() -> None:
    early = Excuse(anomalies=("unheld-ack",), reason="b1's disk was lost", from_ns=0, until_ns=5_000_000_000)
    result = check(early)
    summary = result.anomalies["unheld-ack"]
    assert (result.verdict, summary.count) == (Verdict.INVALID, 1)
    assert summary.excused is not None
    assert summary.excused.legal == "b1's disk was lost"
    always = Excuse(anomalies=("unheld-ack",), reason="everywhere", from_ns=0, until_ns=1 << 60)
    assert check(always).verdict is Verdict.VALID
    other = Excuse(anomalies=("not-durable",), reason="another", from_ns=0, until_ns=1 << 60)
    assert check(other).anomalies["unheld-ack"].count == 2


def test_facts_come_back_from_their_file_whole() -> None:
    facts = RunFacts(breaches=BREACHES)
    assert RunFacts.from_json(json.loads(json.dumps(facts.to_json()))) == facts


@pytest.mark.parametrize("breach", ["b1", {"name": "unheld-ack"}, {**BREACHES[0].__dict__, "time_ns": "3"}])
def test_a_breach_that_is_none_is_refused(breach: object) -> None:
    with pytest.raises(UsageError, match="breach"):
        RunFacts.from_json({"breaches": [breach]})
