"""What becomes of results where nothing was promised."""

from __future__ import annotations

import pytest

from checkers.api.verdict import (
    AnomalySummary,
    CheckerResult,
    Verdict,
    broken,
    excused,
    found,
    merge,
    with_nothing_promised,
)

LOST = AnomalySummary(count=2)


def test_where_nothing_was_promised_what_was_found_is_legal_and_said() -> None:
    results = {"log": CheckerResult(verdict=Verdict.INVALID, anomalies={"lost": LOST})}
    legal = with_nothing_promised(results, "c1 forgot its votes")
    assert legal["log"].verdict is Verdict.VALID
    assert (broken(legal), excused(legal)) == ({}, "2 lost excused: c1 forgot its votes")


@pytest.mark.parametrize(
    ("before", "reasons", "after"),
    [
        (Verdict.INVALID, ("a read was cut short",), Verdict.UNKNOWN),
        (Verdict.UNKNOWN, ("a read was cut short",), Verdict.UNKNOWN),
        (Verdict.VALID, (), Verdict.VALID),
    ],
)
def test_what_could_not_be_decided_stays_so(before: Verdict, reasons: tuple[str, ...], after: Verdict) -> None:
    (result,) = with_nothing_promised({"log": CheckerResult(verdict=before, reasons=reasons)}, "why").values()
    assert (result.verdict, result.reasons) == (after, reasons)


def test_what_breaks_a_promise_is_told_before_what_is_legal() -> None:
    legal = AnomalySummary(count=3, legal="b1 lost power")
    torn = AnomalySummary(count=1, excused=AnomalySummary(count=4, legal="b2 lost power"))
    results = {
        "a": CheckerResult(verdict=Verdict.VALID, anomalies={"lost": legal, "never": AnomalySummary(count=0)}),
        "b": CheckerResult(verdict=Verdict.INVALID, anomalies={"torn": torn}),
    }
    assert found(results) == (
        "torn: 1 found",
        "lost: 3 found, legal here: b1 lost power",
        "torn: 4 found, legal here: b2 lost power",
    )
    assert broken(results) == {"torn": 1}
    assert excused(results) == "3 lost, 4 torn excused: b1 lost power; b2 lost power"


VALID, INVALID, UNKNOWN = Verdict.VALID, Verdict.INVALID, Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("verdicts", "merged"),
    [
        ([], UNKNOWN),
        ([VALID], VALID),
        ([VALID, VALID], VALID),
        ([VALID, UNKNOWN], UNKNOWN),
        ([VALID, UNKNOWN, INVALID], INVALID),
        ([INVALID, VALID], INVALID),
    ],
)
def test_invalid_outranks_unknown_outranks_valid(verdicts: list[Verdict], merged: Verdict) -> None:
    assert merge(verdicts) is merged
