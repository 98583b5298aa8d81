"""Functions that others call otherwise, and rows that they write in another order."""

from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from checkers.api.verdict import Verdict
from harness.errors import UsageError
from harness.jepsen import held
from harness.jepsen.notations import functions_beside, functions_of
from harness.jepsen.recognise import recognised
from stormproof.session.check_spec import of_workload
from tests.unit.harness.jepsen.test_any_values import history, judge


def test_functions_are_renamed_and_taken_away(tmp_path: Path) -> None:
    spec = of_workload("counter", ()).read_as({"credit": "add", "debit": "-add"})
    assert judge(tmp_path, history("credit 5 => ok 5", "debit 2 => ok 2", "read => ok 3"), spec)[1] == {}
    wrong = history("credit 5 => ok 5", "debit 2 => ok 2", "read => ok 7")
    assert judge(tmp_path, wrong, spec)[1] == {"out-of-bounds": 1}
    lifted = history("credit [k 5] => ok [k 5]", "debit [k 2] => ok [k 2]", "read [k nil] => ok [k 3]")
    assert judge(tmp_path, lifted, spec)[1] == {}


@pytest.mark.parametrize("text", ["broadcast", "=add", "broadcast=", "broadcast=-", ""])
def test_what_renames_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--function takes NAME=FUNCTION"):
        functions_of([text])


def test_a_file_beside_the_history_renames_functions(tmp_path: Path) -> None:
    assert functions_beside(tmp_path / "h.edn") == {}
    (tmp_path / "h.edn.toml").write_text('[functions]\nput-in = "add"\n":look" = "read"\n')
    assert functions_beside(tmp_path / "h.edn") == {"put-in": "add", "look": "read"}
    for broken in ("functions = 3", "[functions]\na = 1", "[functions"):
        (tmp_path / "h.edn.toml").write_text(broken)
        with pytest.raises(UsageError, match=r"h\.edn\.toml"):
            functions_beside(tmp_path / "h.edn")


FINAL = "{:process 9 :type :invoke :f :read :value nil :final? true}\n{:process 9 :type :ok :f :read :value 3}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (history("broadcast 1 => ok 1", "read => ok [1]"), "--workload set --function broadcast=add"),
        (history("write-set 1 => ok 1", "read => ok [1]"), "--workload set --function write-set=add"),
        (
            history("credit 5 => ok 5", "debit 2 => ok 2", "read => ok 3"),
            "--workload counter --function credit=add --function debit=-add",
        ),
        (history("add 3 => ok 3", "read => ok 0") + "\n" + FINAL, "--workload counter --set reads=final"),
        (history("generate => ok [0 1]", "generate => ok [0 2]"), "--workload unique-ids"),
        (history("enqueue [0 1] => ok [0 1]", "dequeue => ok [0 1]"), "--workload queue"),
        (history("add [0 1] => ok [0 1]", "add [1 1] => ok [1 1]", "read => ok #{[0 1] [1 1]}"), "--workload set"),
        (history('add "a" => ok "a"', 'read => ok ["a"]'), "--workload set"),
        (history("txn [[:w x :a]] => ok [[:w x :a]]"), "--workload rw-register"),
    ],
)
def test_a_history_by_other_names_is_known(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "h").write_text(text)
    assert [kind.words() for kind in recognised(tmp_path / "h").kinds] == [words]


def test_functions_that_were_said_are_known(tmp_path: Path) -> None:
    (tmp_path / "h").write_text(history("insert 1 => ok 1", "select => ok [1]"))
    (kind,) = recognised(tmp_path / "h", {"insert": "add", "select": "read"}).kinds
    assert kind.words() == "--workload set"


def test_only_final_reads_of_a_counter_bind_where_that_is_said(tmp_path: Path) -> None:
    text = history("add 3 => ok 3", "read => ok 0") + "\n" + FINAL
    assert judge(tmp_path, text, of_workload("counter", ()))[1] == {"out-of-bounds": 1}
    assert judge(tmp_path, text, of_workload("counter", ("reads=final",))) == (Verdict.VALID, {})
    wrong = text.replace(FINAL, FINAL.replace(":value 3", ":value 2"))
    assert judge(tmp_path, wrong, of_workload("counter", ("reads=final",)))[1] == {"out-of-bounds": 1}
    none = history("add 3 => ok 3", "read => ok 0")
    assert judge(tmp_path, none, of_workload("counter", ("reads=final",)))[0] is Verdict.UNKNOWN


def test_rows_are_put_in_the_order_of_their_times(tmp_path: Path) -> None:
    """However they are written, as long as each process's are in order."""
    lines = [
        f'{{"process": {number % 5}, "type": "{kind}", "f": "write", "value": {number}, "time": {time}}}'
        for number in range(200)
        for kind, time in (("invoke", 10 * number), ("ok", 10 * number + 45))
    ]
    shape = dataclasses.replace(of_workload("register", ()).shape, by_time=True)
    by_process = sorted(lines, key=lambda line: line.partition(",")[0])
    random.Random(3).shuffle(lines)
    (tmp_path / "h").write_text("\n".join(by_process))
    rows = held(tmp_path / "h", shape)
    times = rows["time"].to_pylist()
    assert times == sorted(times)
    assert rows["value"].to_pylist()[0] == {"value": 0, "expected": None}


def test_what_touches_is_concurrent_where_times_say_the_order(tmp_path: Path) -> None:
    text = (
        "{:process 0 :type :invoke :f :write :value 1 :time 10}\n{:process 0 :type :ok :f :write :value 1 :time 20}\n"
        "{:process 0 :type :invoke :f :write :value 2 :time 20}\n{:process 0 :type :ok :f :write :value 2 :time 30}\n"
        "{:process 1 :type :invoke :f :read :value nil :time 30}\n{:process 1 :type :ok :f :read :value 1 :time 30}\n"
    )
    by_time = of_workload("register", ()).read_as({}, by_time=True)
    assert judge(tmp_path, text, of_workload("register", ()))[1] == {"nonlinearizable": 1}
    assert judge(tmp_path, text, by_time) == (Verdict.VALID, {})
    assert judge(
        tmp_path,
        text.replace(":time 30}\n{:process 1 :type :ok", ":time 31}\n{:process 1 :type :ok").replace(
            ":value 1 :time 30", ":value 1 :time 32"
        ),
        by_time,
    )[1] == {"nonlinearizable": 1}
