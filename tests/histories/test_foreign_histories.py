"""Histories that others recorded get the verdicts that others gave, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main

FOREIGN = Path(__file__).parents[3] / "shared" / "histories"
needs_histories = pytest.mark.skipif(not FOREIGN.exists(), reason="no ../shared/histories beside the checkout")


def checked(capsys: pytest.CaptureFixture[str], paths: list[Path], *options: str) -> tuple[int, list[dict[str, Any]]]:
    code = main.run(["check", *map(str, paths), "--engine", "inprocess", "--json", *options])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@needs_histories
@pytest.mark.parametrize(
    ("folder", "options"),
    [("etcd", ("--failed-cas", "answer")), ("etcd", ()), ("knossos", ("--initial", "0"))],
    ids=["etcd-answer", "etcd-ignored", "knossos"],
)
def test_registers_get_the_known_verdict(
    folder: str, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (FOREIGN / folder / "expected.tsv").read_text().splitlines()
    expected = {
        str(FOREIGN / folder / name): verdict
        for name, _, verdict in (line.partition("\t") for line in lines)
        if verdict
    }
    code, answers = checked(capsys, [Path(path) for path in expected], "--model", "cas-register", *options)
    assert [answer["path"] for answer in answers] == list(expected)
    assert {answer["path"]: answer["verdict"] for answer in answers} == expected
    for answer in answers:
        assert answer["anomalies"] == ({"nonlinearizable": 1} if answer["verdict"] == "invalid" else {})
        assert answer["seconds"] > 0
    assert code == 1


WRITE = "{:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n"
MISS = "{:process 0, :type :invoke, :f :cas, :value [1 2]}\n{:process 0, :type :fail, :f :cas, :value [1 2]}\n"


@pytest.mark.parametrize(
    ("text", "options", "verdict"),
    [
        (WRITE + MISS, (), "valid"),
        (WRITE + MISS, ("--failed-cas", "answer"), "invalid"),
        (WRITE + MISS.replace("[1 2]", "[3 2]"), ("--failed-cas", "answer"), "valid"),
        (WRITE + MISS.replace("2]}\n{", "2]}\n{:error :timed-out, "), ("--failed-cas", "answer"), "valid"),
        (MISS, ("--failed-cas", "answer", "--initial", "1"), "invalid"),
        (MISS, ("--failed-cas", "answer", "--initial", "2"), "valid"),
        (WRITE.replace("write", "read"), (), "invalid"),
        (WRITE.replace("write", "read"), ("--initial", "1"), "valid"),
        (WRITE + WRITE.replace("write", "read").replace("value 1", "value nil"), (), "invalid"),
        (WRITE + WRITE.replace("write", "read").replace("value 1", "value nil"), ("--initial", "0"), "valid"),
    ],
)
def test_what_a_failed_cas_and_the_initial_value_tell(
    text: str, options: tuple[str, ...], verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "h.edn"
    path.write_text(text)
    _, (answer,) = checked(capsys, [path], "--model", "cas-register", "--runs", str(tmp_path / "runs"), *options)
    assert answer["verdict"] == verdict


def test_a_malformed_history_is_254_and_those_after_it_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("bad.edn", WRITE * 2 + WRITE[50:]), ("good.edn", WRITE)):
        (tmp_path / name).write_text(text)
    code, answers = checked(capsys, [tmp_path / "bad.edn", tmp_path / "good.edn"], "--model", "register")
    assert code == 254
    assert [(answer["verdict"], answer["anomalies"]) for answer in answers] == [(None, {}), ("valid", {})]
    assert "line 5, row 4" in answers[0]["error"]
    assert set(answers[1]) == {"path", "verdict", "anomalies", "seconds", "exit_code", "reasons"}


def test_an_operation_that_the_model_has_not_is_malformed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "h.edn").write_text(MISS)
    code, (answer,) = checked(capsys, [tmp_path / "h.edn"], "--model", "register")
    assert (code, answer["verdict"]) == (254, None)
    assert "f must be one of read, write, it is cas" in answer["error"]


def test_a_history_checked_alone_gets_a_report_with_what_it_became(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "h.edn").write_text(WRITE)
    code = main.run(
        ["check", str(tmp_path / "h.edn"), "--workload", "register", "--engine", "inprocess", "--runs", str(tmp_path)]
    )
    assert code == 0
    (directory,) = (tmp_path / "checked").iterdir()
    assert {"history.parquet", "verdict.json", "report.html"} <= {path.name for path in directory.iterdir()}
    assert f"report    {directory / 'report.html'}" in capsys.readouterr().out


def test_a_history_of_ours_is_exported_and_judged_as_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "h.edn").write_text(WRITE + WRITE.replace("write", "read").replace("value 1", "value 2"))
    assert main.run(
        ["check", str(tmp_path / "h.edn"), "--model", "register", "--engine", "inprocess", "--runs", str(tmp_path)]
    )
    (directory,) = (tmp_path / "checked").iterdir()
    for form in ("edn", "json"):
        again = tmp_path / f"again.{form}"
        assert main.run(["export", str(directory), "--format", form, "--output", str(again)]) == 0
        capsys.readouterr()
        _, (answer,) = checked(capsys, [again], "--model", "register", "--runs", str(tmp_path / "runs"))
        assert (answer["verdict"], answer["anomalies"]) == ("invalid", {"nonlinearizable": 1})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--model", "register", "--workload", "register"], "not by both"),
        (["--model", "register", "--initial", "zero"], "--initial takes a value as JSON"),
        (["--model", "register", "--initial", '"a"'], "begins with a whole number"),
        ([], "say what it is one of with --workload"),
    ],
)
def test_a_wrong_question_is_told_in_one_line(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "h.edn").write_text(WRITE)
    assert main.run(["check", str(tmp_path / "h.edn"), "--engine", "inprocess", *options]) == 254
    assert words in capsys.readouterr().err
