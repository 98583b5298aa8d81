"""`verdict.json` says what the checkers said, in JSON that any parser reads."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from checkers.api.verdict import CheckerResult, Verdict
from results.verdict_file import VerdictFile, read_verdict, write_verdict
from tests.unit.results.synthetic_run import verdict_of


def test_a_verdict_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    write_verdict(tmp_path, verdict_of(Verdict.INVALID))
    assert read_verdict(tmp_path) == verdict_of(Verdict.INVALID)


def test_the_keys_are_the_documented_ones(tmp_path: Path) -> None:
    data = json.loads(write_verdict(tmp_path, verdict_of(Verdict.INVALID)).read_text())
    assert list(data) == [
        "verdict",
        "reasons",
        "accepted_as_vacuous",
        "excused",
        "checkers",
        "passed_over",
        "operations",
        "faults",
        "points",
        "usage",
        "versions",
        "checked",
    ]
    assert data["verdict"] == "invalid"
    assert data["reasons"][0] == "lost-write: 14 found"
    assert data["reasons"][1].startswith("duplicate: 3 found, legal here: ")
    log = data["checkers"]["log"]
    assert {"verdict", "anomalies", "statistics"} <= set(log)
    assert log["anomalies"]["lost-write"]["count"] == 14
    assert log["anomalies"]["lost-write"]["examples"][0]["operations"] == [2310, 2317, 9000]
    assert log["anomalies"]["duplicate"]["legal"]
    meaning = log["anomalies"]["lost-write"]["meaning"]
    assert list(meaning) == ["says", "usually"] and all(meaning.values())


def test_a_verdict_that_was_written_without_meanings_is_read(tmp_path: Path) -> None:
    path = write_verdict(tmp_path, verdict_of(Verdict.INVALID))
    data = json.loads(path.read_text())
    for summary in data["checkers"]["log"]["anomalies"].values():
        del summary["meaning"]
    path.write_text(json.dumps(data))
    assert all(not summary.meaning for summary in read_verdict(tmp_path).checkers["log"].anomalies.values())


def test_numbers_of_numpy_and_numbers_json_cannot_hold_are_written_as_plain_json(tmp_path: Path) -> None:
    statistics = {"count": np.int64(3), "share": math.nan, "rates": np.array([1.5, math.inf]), "where": Path("runs")}
    result = CheckerResult(verdict=Verdict.VALID, statistics=statistics)
    text = write_verdict(tmp_path, VerdictFile(verdict=Verdict.VALID, checkers={"c": result})).read_text()
    written = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    expected = {"count": 3, "share": None, "rates": [1.5, None], "where": "runs"}
    assert written["checkers"]["c"]["statistics"] == expected


def test_a_file_that_is_no_verdict_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text('{"verdict": "fine"}')
    with pytest.raises(ValueError, match=r"verdict\.json is not a verdict"):
        read_verdict(tmp_path)
