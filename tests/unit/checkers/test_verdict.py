"""What becomes of results where nothing was promised."""

from __future__ import annotations

import pytest

from checkers.verdict import AnomalySummary, CheckerResult, Verdict, broken, excused, with_nothing_promised

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
