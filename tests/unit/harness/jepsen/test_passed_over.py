"""What judges nothing refuses nothing: it is passed over, and counted."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import Verdict
from checkers.linearizable.objects import MODELS
from harness.jepsen import held
from harness.jepsen.shape import OF_DATA
from harness.record.history import MalformedHistory
from harness.record.history.passed_over import passed_over
from stormproof.session.check_spec import in_memory, of_model, of_workload
from stormproof.session.decide import decide
from stormproof.session.engines import HERE
from stormproof.session.registry import names, workload
from tests.unit.harness.jepsen.test_any_values import history, judge

ADD = "{:process 0 :type :invoke :f :add :value 1 :time 50}\n{:process 0 :type :ok :f :add :value 1 :time 60}\n"
READ = "{:process 1 :type :invoke :f :read :value nil :time 70}\n{:process 1 :type :ok :f :read :value [1] :time 80}\n"


def words(tmp_path: Path, text: str, workload: str = "set") -> tuple[str, pa.Table]:
    (tmp_path / "h").write_text(text)
    rows, *_ = in_memory(tmp_path / "h", of_workload(workload, ()))
    return ", ".join(passed_over(rows).words()), rows


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ('{:process 0 :type :info :f :add :value "late"}', "1 note of clients"),
        ("{:process 7 :type :info :f :start :value nil}", "1 note of clients"),
        ("{:process 7 :type :invoke :f :sleep :value 3}\n{:process 7 :type :ok :f :sleep :value 3}", "2 rows of sleep"),
        (
            "{:process 7 :type :invoke :f :sleep :value 3}\n{:process 7 :type :info :f :sleep}",
            "1 note of clients, 1 row of sleep",
        ),
        ("{:process :nemesis :type :info :f :add :value 5}", ""),
    ],
)
def test_rows_outside_of_any_operation_are_passed_over_and_counted(row: str, expected: str, tmp_path: Path) -> None:
    said, rows = words(tmp_path, f"{ADD}{row}\n{READ}")
    assert said == expected
    notes = [one for one in rows.to_pylist() if one["process"] == -1]
    assert len(notes) == row.count("{")
    assert all(one["value"] is None or set(one["value"].values()) == {None} for one in notes)
    assert not {one["f"] for one in notes} & {"add", "read"}, "no checker takes them for operations"
    assert judge(tmp_path, f"{ADD}{row}\n{READ}", of_workload("set", ())) == (Verdict.VALID, {})


def test_a_note_within_an_operation_leaves_it_open(tmp_path: Path) -> None:
    note = "{:process 0 :type :info :f :slow :value 9}\n"
    invoked, completed = ADD.splitlines(keepends=True)
    said, rows = words(tmp_path, invoked + note + completed + READ)
    assert said == "1 note of clients"
    assert rows["process"].to_pylist() == [0, -1, 0, 1, 1]


def test_what_workloads_and_models_know_reads_or_changes_data() -> None:
    known = {f for name in names("workloads") for f in workload(name).functions}
    known |= {f for model in MODELS.values() for f in model.functions}
    assert known <= OF_DATA


@pytest.mark.parametrize("f", ["remove", "write", "cas"])
def test_functions_that_may_change_what_is_judged_are_refused(f: str, tmp_path: Path) -> None:
    with pytest.raises(MalformedHistory, match=f"line 3, row 2: f must be one of add, read, it is {f}"):
        words(tmp_path, ADD + history(f"{f} 1 => ok 1") + "\n" + READ)


def test_a_history_of_other_functions_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedHistory, match="line 1, row 0: f must be one of add, read, it is sleep"):
        words(tmp_path, history("sleep 1 => ok 1"))


def test_the_order_recorded_decides_where_times_run_back(tmp_path: Path) -> None:
    late = READ.replace("70", "10").replace("80", "20")
    said, rows = words(tmp_path, ADD + late)
    assert said == "2 times that run back by up to 50 ns"
    assert rows["time"].to_pylist() == [50, 60, 60, 60]
    said, _ = words(tmp_path, (ADD + late).replace("50", "5000000050").replace("60", "5000000060"))
    assert said == "2 times that run back by up to 5.0 s"


def test_times_that_are_no_numbers_decide_nothing(tmp_path: Path) -> None:
    said, rows = words(tmp_path, ADD.replace("50", '"12:03"') + READ.replace("80", "1.5"))
    assert said == "2 times that are no numbers"
    assert rows["time"].to_pylist() == [0, 60, 70, 70]


@pytest.mark.parametrize(("time", "reason"), [("7", "time runs back"), (":now", "time must be a number")])
def test_what_is_judged_by_times_needs_them(time: str, reason: str, tmp_path: Path) -> None:
    text = (
        "{:process 0 :type :invoke :f :send :value {:message 1 :due 60} :time 50}\n"
        f"{{:process 0 :type :ok :f :send :value nil :time {time}}}\n"
    )
    with pytest.raises(MalformedHistory, match=f"line 2, row 1: {reason}"):
        words(tmp_path, text, "delay")


@pytest.mark.parametrize("kind", ["fail", "info"])
@pytest.mark.parametrize("reason", ["17", "[:negative 1 -1]", '"no"', "{:code 3}", "nil", "[[]]", "1.5", ":busy"])
@pytest.mark.parametrize(
    ("workload", "operation", "shows"),
    [
        ("set", "add 2", "read => ok [1]"),
        ("queue", "enqueue 2", "drain => ok [1]"),
        ("register", "write 2", "read => ok 1"),
        ("counter", "add 2", "read => ok 1"),
        ("list-append", "txn [[:append x 2]]", "txn [[:r x nil]] => ok [[:r x [1]]]"),
        ("rw-register", "txn [[:w x 2]]", "txn [[:r x nil]] => ok [[:r x 1]]"),
    ],
)
def test_completions_that_count_for_nothing_hold_anything(
    workload: str, operation: str, shows: str, reason: str, kind: str, tmp_path: Path
) -> None:
    done = operation.replace("2", "1")
    said = history(f"{done} => ok{done.removeprefix(done.split()[0])}", f"{operation} => {kind} {reason}", shows)
    assert judge(tmp_path, said, of_workload(workload, ())) == (Verdict.VALID, {}), said


def test_what_failed_is_still_what_was_asked(tmp_path: Path) -> None:
    """And not the reason that is given."""
    aborted = history("add 1 => ok 1", "add 2 => fail 1", "read => ok [1 2]")
    assert judge(tmp_path, aborted, of_workload("set", ()))[1] == {"aborted-read": 1}


def test_a_reason_is_kept_as_an_error(tmp_path: Path) -> None:
    _, rows = words(tmp_path, history("add 1 => fail 404", "add 2 => fail 2", "read => ok []"))
    assert rows["error"].to_pylist() == [None, "404", None, None, None, None]
    assert [one and one["value"] for one in rows["value"].to_pylist()] == [1, None, 2, 2, None, None]


def test_a_failure_closes_what_is_open_by_whatever_name(tmp_path: Path) -> None:
    text = "{:process 0 :type :invoke :f :add :value 2}\n{:process 0 :type :fail :f :txn :value nil}\n"
    assert judge(tmp_path, text + ADD + READ, of_workload("set", ())) == (Verdict.VALID, {})


def test_clients_may_have_names(tmp_path: Path) -> None:
    _, rows = words(
        tmp_path, (ADD + READ).replace(":process 0", ':process "alice"').replace(":process 1", ":process :bob")
    )
    assert rows["process"].to_pylist() == [0, 0, 1, 1]


LOGGED = """
{:process 0 :type :invoke :f :enqueue :value 1}
{:process 0 :type :ok :f :enqueue :value 1}
{:process 0 :type :invoke :f :enqueue :value 2}
{:process 0 :type :ok :f :enqueue :value 2}
{:process 1 :type :invoke :f :drain :value nil}
{:process 1 :type :ok :f :dequeue :value 1}
{:process 1 :type :invoke :f :drain :value nil}
{:process 1 :type :ok :f :dequeue :value 2}
"""


@pytest.mark.parametrize(
    "end",
    [
        "{:process 1 :type :ok :f :drain :value :exhausted}",
        "{:process 1 :type :info :f :drain :value nil}\n"
        + history("drain => ok :exhausted").replace(":process 0", ":process 5"),
        history("drain => ok []").replace(":process 0", ":process 5"),
    ],
    ids=["exhausted", "cut off", "never completed"],
)
def test_a_drain_may_write_what_it_takes_as_dequeues(end: str, tmp_path: Path) -> None:
    spec = of_workload("queue", ("delivery=at-least-once",))
    assert judge(tmp_path, LOGGED + end, spec) == (Verdict.VALID, {})
    less = LOGGED.replace("{:process 1 :type :ok :f :dequeue :value 2}\n", "")
    assert judge(tmp_path, less + end, spec)[1] == {"lost": 1}


def test_a_model_says_whether_a_pair_is_a_key(tmp_path: Path) -> None:
    text = history("write [1 2] => ok [1 2]")
    (tmp_path / "h").write_text(text)
    shape = dataclasses.replace(of_model("map", initial=None, failed_cas=None).shape, functions=("write",))
    for keyed, key in ((None, "1"), (True, "1"), (False, None)):
        rows = held(tmp_path / "h", dataclasses.replace(shape, keyed=keyed))
        assert rows["key"].to_pylist() == [key, key]


def test_a_cas_to_null_has_no_key(tmp_path: Path) -> None:
    (tmp_path / "h").write_text(history("cas [1 nil] => ok [1 nil]", "read => ok nil"))
    rows, *_ = in_memory(tmp_path / "h", of_model("cas-register", initial="1", failed_cas=None))
    assert rows["key"].to_pylist() == [None] * 4
    assert rows["value"].to_pylist()[0] == {"value": None, "expected": 1}


@pytest.mark.parametrize("value", ['"' + "x" * 100_000 + '"', "[" + "[1 2] " * 50_000 + "]"], ids=["text", "list"])
def test_no_message_is_longer_than_two_kilobytes(value: str, tmp_path: Path) -> None:
    with pytest.raises(MalformedHistory) as caught:
        words(tmp_path, history(f"add {value} => ok {value}", f"add 1 => ok {value}"), "counter")
    assert len(str(caught.value).encode()) <= 2_000


@pytest.mark.parametrize("f", ["add", "enqueue"])
def test_no_finding_is_longer_than_two_kilobytes(f: str, tmp_path: Path) -> None:
    value = '"' + "é" * 100_000 + '"'
    workload, read = {"add": ("set", "read"), "enqueue": ("queue", "drain")}[f]
    (tmp_path / "h.edn").write_text(history(f"{f} {value} => ok {value}", f"{read} => ok []"))
    rows, spec, _ = in_memory(tmp_path / "h.edn", of_workload(workload, ()))
    request = CheckRequest(history=rows, repeats=spec.repeats)
    decided = decide(request, spec.checkers, HERE, subject=workload, named="h.edn", progress=quiet)
    (example,) = decided.results[workload].anomalies["lost"].examples
    assert example.because.startswith('element "ééé')
    assert len(example.because.encode()) <= 2_000


def quiet(moment: object) -> None:
    """Nobody listens."""
