"""Histories that others recorded get the verdicts that others gave, through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from checkers.linearizable.objects import MODELS
from checkers.spark.java import JavaMissing, require_java
from results.verdict_file import ACCEPTED
from stormproof.cli import main
from stormproof.session.registry import names

FOREIGN = Path(__file__).parents[3] / "shared" / "histories"
needs_histories = pytest.mark.skipif(not FOREIGN.exists(), reason="no ../shared/histories beside the checkout")


IN_PROCESS = ("--engine", "inprocess")
ENGINES = [
    IN_PROCESS,
    pytest.param(
        ("--engine", "spark", "--master", "local[2]"), marks=[pytest.mark.gate, pytest.mark.xdist_group("spark")]
    ),
]


@pytest.fixture(params=ENGINES, ids=["inprocess", "spark"])
def engine(request: pytest.FixtureRequest) -> tuple[str, ...]:
    if "spark" in request.param:
        try:
            require_java()
        except JavaMissing as missing:
            pytest.skip(f"not run: {missing}")
    chosen: tuple[str, ...] = request.param
    return chosen


def checked(
    capsys: pytest.CaptureFixture[str], paths: list[Path], *options: str, engine: tuple[str, ...] = IN_PROCESS
) -> tuple[int, list[dict[str, Any]]]:
    code = main.run(["check", *map(str, paths), *engine, "--json", *options])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


NOTHING_OK = {f"mongodb-v0-ack-rollback-{number}.edn" for number in ("", "9", "10", "11")}
"""Knossos calls them valid, but not one of their operations succeeded."""


@needs_histories
@pytest.mark.parametrize(
    ("folder", "options"),
    [("etcd", ("--failed-cas", "answer")), ("etcd", ()), ("knossos", ("--initial", "0"))],
    ids=["etcd-answer", "etcd-ignored", "knossos"],
)
def test_registers_get_the_known_verdict(
    folder: str, options: tuple[str, ...], engine: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (FOREIGN / folder / "expected.tsv").read_text().splitlines()
    expected = {
        str(FOREIGN / folder / name): verdict
        for name, _, verdict in (line.partition("\t") for line in lines)
        if verdict
    }
    if "spark" in engine:
        expected = dict(list(expected.items())[::4])
    code, answers = checked(
        capsys,
        [Path(path) for path in expected],
        "--model",
        "cas-register",
        "--accept-vacuous",
        *options,
        engine=engine,
    )
    assert [answer["path"] for answer in answers] == list(expected)
    assert {answer["path"]: answer["verdict"] for answer in answers} == expected
    for answer in answers:
        assert answer["anomalies"] == ({"nonlinearizable": 1} if answer["verdict"] == "invalid" else {})
        assert answer["seconds"] > 0
        assert (ACCEPTED in answer) is (Path(answer["path"]).name in NOTHING_OK)
    assert code == 1


@needs_histories
def test_logs_of_a_key_value_store_are_judged_as_maps(
    engine: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    paths = sorted((FOREIGN / "kv").glob("*.txt"))
    _, answers = checked(capsys, paths, "--model", "map", engine=engine)
    assert len(answers) >= 2
    for answer in answers:
        assert answer["verdict"] == ("valid" if answer["path"].endswith("-ok.txt") else "invalid")


def edn(*operations: str) -> str:
    """Operations of one process, each `f asked returned`."""
    lines = []
    for operation in operations:
        f, asked, returned = operation.split(" ", 2)
        for kind, value in (("invoke", asked), ("ok", returned)):
            lines.append(f"{{:process 0, :type :{kind}, :f :{f}, :value {value.replace('_', ' ')}}}\n")
    return "".join(lines)


@pytest.mark.parametrize(
    ("judged_by", "valid", "invalid"),
    [
        ("--model register", ('write "a" "a"', 'read nil "a"'), ('write "a" "a"', 'read nil "b"')),
        ("--model cas-register", ("write 1.5 1.5", "cas [1.5_2] [1.5_2]"), ("write 1.5 1.5", "cas [1_2] [1_2]")),
        (
            "--model multi-register",
            ("txn [[w_x_1]] [[w_x_1]]", "txn [[r_x_nil]] [[r_x_1]]"),
            ("txn [[r_x_nil]] [[r_x_1]]",),
        ),
        ("--model map", ('put ["k"_"a"] ["k"_"a"]', 'get ["k"_nil] ["k"_"a"]'), ('get ["k"_nil] ["k"_"a"]',)),
        ("--model set", ("add 1 1", "read nil #{1}"), ("add 1 1", "read nil #{}")),
        ("--model set --initial [1,2]", ("read nil [1_2]",), ("read nil [1]",)),
        ("--model mutex", ("acquire nil nil", "release nil nil"), ("acquire nil nil", "acquire nil nil")),
        ("--model fenced-lock", ("acquire nil 1", "release 1 1"), ("acquire nil 1", "acquire nil 2")),
        ("--model leased-lock", ("acquire nil 1", "acquire nil 3", "release 3 3"), ("acquire nil 2", "release 1 1")),
        ("--model counter", ("add 2 2", "read nil 2"), ("add 2 2", "read nil 3")),
        ("--model fifo-queue", ("enqueue 1 1", "enqueue 2 2", "dequeue nil 1"), ("enqueue 1 1", "dequeue nil 2")),
        ("--model unordered-queue", ("enqueue 1 1", "enqueue 2 2", "dequeue nil 2"), ("dequeue nil 2",)),
        ("--model priority-queue", ("enqueue 2 2", "enqueue 1 1", "dequeue nil 1"), ("enqueue 2 2", "dequeue nil 1")),
        ("--model stack", ("push 1 1", "push 2 2", "pop nil 2"), ("push 1 1", "push 2 2", "pop nil 1")),
        ("--model append-log", ("append 7 [0_7]", "read nil [7]"), ("append 7 [1_7]",)),
        ("--model echo", ('echo "a" {:type_"echo_ok",:echo_"a"}', "echo [1_2] [1_2]"), ('echo "a" {:echo_"b"}',)),
        ("--workload queue", ("enqueue 1 1", "dequeue nil 1", "drain nil []"), ("enqueue 1 1", "drain nil []")),
        ("--workload set", ("add 1 1", "read nil #{1}"), ("add 1 1", "read nil #{}")),
        ("--workload counter", ("add 2 2", "read nil 2"), ("add 2 2", "read nil 3")),
        ("--workload lock", ("acquire nil 1", "release nil nil"), ("acquire nil 1", "acquire nil 2")),
        ("--workload unique-ids", ("generate nil 1", "generate nil 2"), ("generate nil 1", "generate nil 1")),
        ("--workload bank", ("read nil {0_5,_1_5}", "read nil {0_4,_1_6}"), ("read nil {0_5}", "read nil {0_4}")),
        (
            "--workload long-fork",
            ("write [[:w_1_1]] [[:w_1_1]]", "read [[:r_1_nil]_[:r_2_nil]] [[:r_1_1]_[:r_2_nil]]"),
            (
                "write [[:w_1_1]] [[:w_1_1]]",
                "write [[:w_2_1]] [[:w_2_1]]",
                "read [[:r_1_nil]_[:r_2_nil]] [[:r_1_1]_[:r_2_nil]]",
                "read [[:r_2_nil]_[:r_1_nil]] [[:r_2_1]_[:r_1_nil]]",
            ),
        ),
        (
            "--workload causal",
            ("read-init [1_nil] [1_0]", "write [1_1] [1_1]", "read [1_nil] [1_1]"),
            ("read-init [1_nil] [1_0]", "write [1_1] [1_1]", "read [1_nil] [1_1]", "read [1_nil] [1_0]"),
        ),
        (
            "--workload causal",
            ("txn [[:w_x_1]_[:r_y_nil]] [[:w_x_1]_[:r_y_nil]]", "txn [[:r_x_nil]] [[:r_x_1]]"),
            (
                "txn [[:w_x_1]_[:r_y_nil]] [[:w_x_1]_[:r_y_nil]]",
                "txn [[:r_x_nil]] [[:r_x_nil]]",
                "txn [[:r_x_nil]] [[:r_x_1]]",
            ),
        ),
        (
            "--workload causal-reverse",
            ("write [9_1] [9_1]", "write [9_2] [9_2]", "read [9_nil] [9_[1_2]]"),
            ("write [9_1] [9_1]", "write [9_2] [9_2]", "read [9_nil] [9_[2]]"),
        ),
        (
            "--workload monotonic",
            ("read {1_nil,_2_nil} {1_5,_2_6}", "read {1_nil,_2_nil} {1_5,_2_6}"),
            ("read {1_nil,_2_nil} {1_5,_2_6}", "inc {2_7} {2_7}", "read {1_nil,_2_nil} {1_5,_2_6}"),
        ),
        ("--workload bank --set total=10", ("read nil {0_5,_1_5}",), ("read nil {0_5}",)),
    ],
)
def test_each_model_and_each_workload_judges_what_others_recorded(
    judged_by: str, valid: tuple[str, ...], invalid: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "valid.edn").write_text(edn(*valid))
    (tmp_path / "invalid.edn").write_text(edn(*invalid))
    code, answers = checked(capsys, [tmp_path / "valid.edn", tmp_path / "invalid.edn"], *judged_by.split())
    assert [answer["verdict"] for answer in answers] == ["valid", "invalid"]
    assert code == 1


def test_links_of_a_causal_register_are_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    template = "{:process 0, :type :invoke, :f :%s, :value [7 %s]}\n{:process 0, :type :ok, :f :%s, :value [7 %s], "
    for name, link in (("valid", 1), ("invalid", 9)):
        text = template % ("write", 1, "write", 1) + ":position 1, :link :init}\n"
        text += template % ("read", "nil", "read", 1) + f":position 1, :link {link}}}\n"
        (tmp_path / f"{name}.edn").write_text(text)
        code, (answer,) = checked(capsys, [tmp_path / f"{name}.edn"], "--workload", "causal", "--runs", str(tmp_path))
        assert (answer["verdict"], answer["anomalies"]) == (name, {"broken-link": 1} if code else {})


def test_orders_are_certified_and_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, orders = tmp_path / "h.edn", tmp_path / "orders"
    path.write_text(edn("write 1 1", "cas [1_2] [1_2]", "read nil 2"))
    runs = ("--runs", str(tmp_path / "runs"))
    _, (answer,) = checked(capsys, [path], "--model", "cas-register", "--certify", str(orders), *runs)
    head, *rest = [json.loads(line) for line in orders.read_text().splitlines()]
    assert head["history"]["name"] == str(path)
    assert rest == [{"key": "", "order": [0, 2, 4]}]
    history = Path(answer["directory"]) / "history.parquet"
    program = [sys.executable, "-m", "checkers.linearizable.replay", str(history), str(orders), "cas-register"]
    assert subprocess.run(program, capture_output=True, timeout=60, check=False).returncode == 0
    # What was converted is a stored history, and judged as such.
    _, (again,) = checked(capsys, [history], "--model", "cas-register", *runs)
    assert again["verdict"] == "valid"


def test_orders_that_cannot_be_written_are_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "h.edn").write_text(WRITE)
    for nowhere in (tmp_path / "missing" / "orders", tmp_path / ("n" * 300), tmp_path):
        assert checked(capsys, [tmp_path / "h.edn"], "--model", "register", "--certify", str(nowhere)) == (254, [])


def test_a_value_that_means_nothing_to_the_model_is_malformed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "h.edn").write_text(edn('add "a" "a"'))
    code, (answer,) = checked(capsys, [tmp_path / "h.edn"], "--model", "counter")
    assert (code, answer["verdict"]) == (254, None)
    assert "means nothing to model counter" in answer["error"]


WRITE = "{:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n"
READ = WRITE.replace("write", "read")
MISS = "{:process 0, :type :invoke, :f :cas, :value [1 2]}\n{:process 0, :type :fail, :f :cas, :value [1 2]}\n"


@pytest.mark.parametrize(
    ("text", "options", "verdict"),
    [
        (WRITE + MISS, (), "unknown"),
        (WRITE + MISS + READ, (), "valid"),
        (WRITE + MISS, ("--failed-cas", "answer"), "invalid"),
        (WRITE + MISS.replace("[1 2]", "[3 2]"), ("--failed-cas", "answer"), "valid"),
        (WRITE + MISS.replace("2]}\n{", "2]}\n{:error :timed-out, "), ("--failed-cas", "answer"), "unknown"),
        (MISS, ("--failed-cas", "answer", "--initial", "1"), "invalid"),
        (MISS, ("--failed-cas", "answer", "--initial", "2"), "valid"),
        (WRITE.replace("write", "read"), (), "invalid"),
        (WRITE.replace("write", "read"), ("--initial", "1"), "valid"),
        (WRITE + READ.replace("value 1", "value nil"), (), "invalid"),
        (WRITE + READ.replace("value 1", "value nil"), ("--initial", "0"), "unknown"),
    ],
)
def test_a_failed_cas_and_the_initial_value_are_judged_by_the_given_options(
    text: str, options: tuple[str, ...], verdict: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "h.edn"
    path.write_text(text)
    _, (answer,) = checked(capsys, [path], "--model", "cas-register", "--runs", str(tmp_path / "runs"), *options)
    assert answer["verdict"] == verdict


def test_a_malformed_history_is_254_and_those_after_it_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("bad.edn", WRITE * 2 + WRITE[50:]), ("good.edn", WRITE + READ)):
        (tmp_path / name).write_text(text)
    code, answers = checked(capsys, [tmp_path / "bad.edn", tmp_path / "good.edn"], "--model", "register")
    assert code == 254
    assert [(answer["verdict"], answer["anomalies"]) for answer in answers] == [(None, {}), ("valid", {})]
    assert "line 5, row 4" in answers[0]["error"]
    assert set(answers[1]) == {"path", "verdict", "anomalies", "seconds", "exit_code", "reasons", "checked"}


def test_an_operation_that_the_model_has_not_is_malformed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "h.edn").write_text(MISS)
    code, (answer,) = checked(capsys, [tmp_path / "h.edn"], "--model", "register")
    assert (code, answer["verdict"]) == (254, None)
    assert "f must be one of read, write, it is cas" in answer["error"]


def test_help_names_all_models_and_workloads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["check", "--help"]) == 0
    printed = "".join(capsys.readouterr().out.split())
    assert all(name in printed for name in (*MODELS, *names("workloads")))


def test_a_history_checked_alone_gets_a_report_with_what_it_became(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "h.edn").write_text(WRITE + READ)
    code = main.run(
        ["check", str(tmp_path / "h.edn"), "--workload", "register", "--engine", "inprocess", "--runs", str(tmp_path)]
    )
    assert code == 0
    (directory,) = (tmp_path / "checked").iterdir()
    assert {"history.parquet", "verdict.json", "report.html"} <= {path.name for path in directory.iterdir()}
    assert f"report    {directory / 'report.html'}" in capsys.readouterr().out


def test_a_stored_history_is_exported_and_judged_as_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
        (["--model", "register", "--initial", "NaN"], "--initial takes a value as JSON"),
        (["--model", "counter", "--initial", '"a"'], "--initial of model counter must be an integer, it is "),
        (["--model", "counter", "--initial", "1.5"], "--initial of model counter must be an integer, it is 1.5"),
        (["--model", "mutex", "--initial", "null"], "must be true for held, or false, it is null"),
        (["--model", "fenced-lock", "--initial", "-1"], "must be the last token given away, an integer of at least 0"),
        (["--model", "stack", "--initial", '"abc"'], "must be a list of elements, e.g. [1, 2], it is "),
        (["--model", "unordered-queue", "--initial", "null"], "must be a list of elements, e.g. [1, 2], it is null"),
        (["--model", "priority-queue", "--initial", '[1, "a"]'], "that can be compared with each other"),
        (["--model", "set", "--initial", "[[1]"], "--initial takes a value as JSON"),
        (["--model", "multi-register", "--initial", "[]"], "must be a map from registers to values"),
        (["--model", "map", "--failed-cas", "answer"], "map has no cas"),
        (["--model", "set", "--set", "reads=current"], "--set is for --workload"),
        (["--workload", "set", "--initial", "0"], "--initial is for --model, not for --workload"),
        (["--workload", "register", "--failed-cas", "answer"], "--failed-cas is for --model, not for --w"),
        (["--workload", "set", "--certify", "orders"], "--certify is for a single history with --model"),
        (
            ["--workload", "heap"],
            "known are: " + ", ".join(names("workloads")),
        ),
        (
            ["--workload", "queue", "--set", "reads=current"],
            "setting 'reads' of workload queue; known are: queues, enqueue_share, delivery, ",
        ),
        (
            ["--workload", "queue", "--set", "delivery=twice"],
            "setting delivery takes one of at-most-once, at-least-once, exactly-once, got 'twice'",
        ),
        (
            ["--workload", "bank", "--set", "total=much"],
            "setting total takes a whole number of 64 bits or nothing, got 'much'",
        ),
    ],
)
def test_a_wrong_question_is_refused_in_one_line(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "h.edn").write_text(WRITE)
    assert main.run(["check", str(tmp_path / "h.edn"), "--engine", "inprocess", *options]) == 254
    err = capsys.readouterr().err
    assert words in err
    assert len(err.splitlines()) == 1


def test_what_fits_several_kinds_is_refused_and_unknown_where_nothing_was_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "h.edn").write_text(WRITE)
    assert main.run(["check", str(tmp_path / "h.edn"), "--engine", "inprocess"]) == 2
    words = "which may be --model cas-register or --workload causal-reverse, and nothing could have contradicted either"
    assert words in capsys.readouterr().out
    rows = [("invoke", "add", 1), ("ok", "add", 1), ("invoke", "read", "nil"), ("ok", "read", "nil")]
    text = "".join(f"{{:process 0, :type :{kind}, :f :{f}, :value {value}}}\n" for kind, f, value in rows)
    (tmp_path / "h.edn").write_text(text)
    assert main.run(["check", str(tmp_path / "h.edn"), "--engine", "inprocess"]) == 254
    assert "which may be --workload set or --workload counter; say which" in capsys.readouterr().err
