"""`junit.xml`: what CI systems make of a suite."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import AnomalySummary, CheckerResult, Verdict
from results.junit import Case, anomalies_in_words, junit_xml, write_junit
from tests.unit.results.synthetic_run import verdict_of


def parsed(*cases: Case) -> ElementTree.Element:
    return ElementTree.fromstring(junit_xml("smoke", cases))


def test_each_scenario_is_one_test_case_and_the_totals_add_up(tmp_path: Path) -> None:
    cases = [
        Case(name="a", verdict=Verdict.VALID, seconds=1.5),
        Case(name="b", verdict=Verdict.INVALID, words="lost-write × 3"),
        Case(name="c", verdict=Verdict.UNKNOWN, words="no fault took effect"),
        Case(name="d", verdict=None, words="no Docker engine answers"),
    ]
    write_junit(tmp_path / "junit.xml", "smoke", cases)
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    assert [case.get("name") for case in suite.findall("testcase")] == ["a", "b", "c", "d"]
    totals = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped", "time")}
    assert totals == {"tests": "4", "failures": "2", "errors": "1", "skipped": "0", "time": "1.500"}


def test_invalid_is_a_failure_unknown_is_one_too_and_a_failed_harness_is_an_error() -> None:
    for verdict, tag, type_ in (
        (Verdict.INVALID, "failure", "invalid"),
        (Verdict.UNKNOWN, "failure", "unknown"),
        (None, "error", "harness-failed"),
    ):
        (case,) = parsed(Case(name="s", verdict=verdict, words="first line\nsecond")).iter("testcase")
        (problem,) = list(case)
        assert (problem.tag, problem.get("type"), problem.get("message")) == (tag, type_, "first line")
        assert problem.text == "first line\nsecond"


def test_what_was_expected_passes_whatever_the_verdict_and_anything_else_does_not() -> None:
    for verdict in Verdict:
        (case,) = parsed(Case(name="s", verdict=verdict, as_expected=True, words="lost × 3")).iter("testcase")
        assert list(case) == []
        (case,) = parsed(Case(name="s", verdict=verdict, as_expected=False, words="not as expected")).iter("testcase")
        (problem,) = list(case)
        assert (problem.tag, problem.get("type"), problem.get("message")) == (
            "failure",
            verdict.value,
            "not as expected",
        )


def test_valid_has_nothing_inside_and_nothing_is_ever_skipped() -> None:
    (case,) = parsed(Case(name="s", verdict=Verdict.VALID)).iter("testcase")
    assert list(case) == []
    assert parsed(Case(name="s", verdict=Verdict.UNKNOWN)).find(".//skipped") is None


def test_characters_that_xml_cannot_carry_do_not_break_the_file() -> None:
    words = "\x1b[31mred & <raw> \ud800\nsecond\r\u202e\ufffe\u2028"
    (case,) = parsed(Case(name="a<b>&\x00", verdict=Verdict.INVALID, words=words, notes={"seed": "\x1b"})).iter(
        "testcase"
    )
    assert case.get("name") == r"a<b>&\x00"
    assert case.find("properties/property").get("value") == r"\x1b"
    problem = case.find("failure")
    assert problem.get("message") == r"\x1b[31mred & <raw> \ud800"
    assert problem.text == r"\x1b[31mred & <raw> \ud800" + "\n" + r"second\r\u202e\ufffe\u2028"


def test_an_anomaly_that_holds_line_breaks_is_written_on_one_line() -> None:
    forged = Anomaly(name="lost-write", key="a\nVALID", operations=(1,), because="it\r\nVALID\n was lost")
    result = CheckerResult(
        verdict=Verdict.INVALID, anomalies={"lost-write": AnomalySummary(count=1, examples=(forged,))}
    )
    assert anomalies_in_words(["panicked: a\nVALID"], {"log": result}).split("\n") == [
        "log: lost-write × 1",
        r"  lost-write [a\nVALID]: it\r\nVALID\n was lost (operations 1)",
        r"panicked: a\nVALID",
    ]


def test_anomalies_are_written_in_words_with_their_witnesses_and_legal_ones_are_left_out() -> None:
    content = verdict_of(Verdict.INVALID)
    words = anomalies_in_words(content.reasons, content.checkers)
    assert "log: lost-write × 14" in words
    assert "send of message 712 was acknowledged" in words
    assert "operations 2310, 2317, 9000" in words
    assert "duplicate" not in words
