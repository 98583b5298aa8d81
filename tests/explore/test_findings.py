"""Findings are shrunk, a few of each kind; those that come down to the same faults are one cause, with one file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.record.scenario import Scenario
from stormproof.search import findings
from stormproof.search.findings import SHRUNK_OF_ONE, Finding, causes_of, keep, shrunk_row, to_shrink
from stormproof.search.guide import Guide
from stormproof.search.search import Tally
from stormproof.search.space import Space
from stormproof.search.storm_file import load_storm
from stormproof.search.trial import scenario_text

TRACE = "0" * 32


def storm(*lines: str) -> Scenario:
    return Scenario(system="rocketmq", workload="log", schedule=lines, time_limit_s=10.0)


def row(
    number: int, *lines: str, anomaly: str = "lost-write", operations: int = 5, trace: str = TRACE
) -> dict[str, Any]:
    return {
        "number": number,
        "anomaly": anomaly,
        "scenario": scenario_text(storm(*lines)),
        "trace": trace,
        "words": "one was lost",
        "operations": operations,
        "storms": 9,
        "processor_s": 1.0,
    }


def test_equal_faults_in_equal_order_are_one_cause_whichever_node_they_strike() -> None:
    rows = [
        row(4, "1 for 2 kill b1 [kill 0]", "5 for 1 pause c1+c2 [pause 1]"),
        row(9, "2 for 1 kill b3 [kill 2]", "4 for 1 pause c3+c1 [pause 0]", operations=3),
        row(7, "1 for 2 pause c1 [pause 1]", "5 for 1 kill b1 [kill 0]"),
    ]
    first, second = sorted(causes_of(rows), key=lambda cause: cause.numbers)
    assert (first.numbers, first.smallest["number"]) == ((4, 9), 9)
    assert first.faults == ("kill brokers", "pause controllers+controllers")
    assert second.numbers == (7,)
    assert "lost-write: kill brokers, then pause controllers" in first.words()


def test_how_badly_an_impairment_struck_makes_no_other_cause() -> None:
    rows = [
        row(4, "1 for 2 slow links of b1 delay_ms=100 jitter_ms=0 [slow 0]"),
        row(9, "2 for 1 slow links of b2 delay_ms=70 jitter_ms=3 [slow 2]"),
        row(5, "2 for 1 slow links of b2 [slow 2]"),
    ]
    (cause,) = causes_of(rows)
    assert (cause.numbers, cause.faults) == ((4, 5, 9), ("slow links of brokers",))


def test_a_cause_is_kept_as_a_file_that_can_be_read_again(tmp_path: Path) -> None:
    said: list[str] = []
    rows = [row(4, "1 for 2 kill b1 [kill 0]"), row(5, anomaly="unseen", trace="")]
    (file,) = keep(causes_of(rows), tmp_path, said.append)
    read, _ = load_storm(file)
    assert (read.scenario, read.anomaly, read.trace) == (storm("1 for 2 kill b1 [kill 0]"), "lost-write", TRACE)
    assert said == ["storm 5, unseen: one was lost"]


def test_a_few_of_each_set_of_anomalies_are_shrunk() -> None:
    tally = Tally(guide=Guide(space=Space(system="rocketmq", settings={}), root=0))
    tally.causes = {("lost-write", "unseen"): [1, 4, 6, 8], ("no-progress",): [3]}
    tally.invalid = {number: row(number) for number in (1, 3, 4, 6, 8)}
    chosen = [(finding.number, finding.anomaly) for finding in to_shrink(tally)]
    assert len(chosen) == SHRUNK_OF_ONE + 1
    assert chosen == [(1, "lost-write"), (4, "lost-write"), (6, "lost-write"), (3, "no-progress")]


def test_what_cannot_be_shrunk_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any, **__: Any) -> None:
        raise findings.UsageError("it does not show lost-write")

    monkeypatch.setattr(findings, "shrunk", refuses)
    failed = shrunk_row(Finding(number=2, anomaly="lost-write", scenario=storm("1 for 2 kill b1 [kill 0]")))
    assert failed["trace"] == ""
    assert failed["words"] == "it could not be shrunk: it does not show lost-write"
