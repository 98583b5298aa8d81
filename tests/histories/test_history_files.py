"""Each file under tests/histories is the smallest history with, or without, one anomaly."""

from __future__ import annotations

from pathlib import Path

import pytest
from history_language import parse_history

from checkers.engine_in_process import InProcessEngine
from checkers.linearizable import MODELS, Linearizable, LinearizableRegister
from checkers.log import LogChecker
from checkers.plan import CheckRequest
from checkers.run import check_history

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*/*.history"))
OBJECTS = {name: Linearizable(model) for name, model in MODELS.items() if name != "register"}
CHECKERS = {**OBJECTS, "log": LogChecker(), "register": LinearizableRegister()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_history_gets_the_verdict_it_is_written_for(file: Path, tmp_path: Path) -> None:
    written = parse_history(file.read_text())
    request = CheckRequest(history=written.write(tmp_path / "history.parquet"))
    checker = CHECKERS[written.checker]
    result = check_history(request, {checker.name: checker}, InProcessEngine())[checker.name]
    assert (result.verdict.value, tuple(result.anomalies)) == (written.verdict, written.anomalies), result
    for summary in result.anomalies.values():
        assert summary.count == len(summary.examples)
        for anomaly in summary.examples:
            assert anomaly.operations == tuple(sorted(set(anomaly.operations)))
            assert all(0 <= operation < len(written.rows) for operation in anomaly.operations)


@pytest.mark.parametrize("model", sorted(OBJECTS))
def test_there_are_histories_of_each_model(model: str) -> None:
    written = [parse_history(file.read_text()) for file in FILES]
    assert {history.verdict for history in written if history.checker == model} >= {"valid", "invalid"}


@pytest.mark.parametrize("checker", ["log", "object", "register"])
def test_there_are_histories_with_and_without_anomalies(checker: str) -> None:
    verdicts = {parse_history(file.read_text()).verdict for file in FILES if file.parent.name == checker}
    assert verdicts >= {"valid", "invalid", "unknown"}
