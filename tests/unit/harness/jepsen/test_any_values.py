"""Elements and values are what EDN and JSON have, and only the same ones are equal."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import Verdict, broken, merge
from checkers.in_process.engine import InProcessEngine
from checkers.run import check_history
from harness.jepsen import Format, Shape, convert, exported
from harness.record.history import MalformedHistory, read_history
from harness.record.history.named_values import names_of
from stormproof.session.check_spec import CheckSpec, in_memory, of_model, of_workload, shape_of
from stormproof.session.registry import workload

VALUES = {
    "texts": ('"a"', '"b"'),
    "empty text": ('""', '" "'),
    "keywords": (":a", ":b"),
    "keyword and text": (":a", '"a"'),
    "uuids": ('#uuid "0a-1"', '#uuid "0a-2"'),
    "beyond 64 bits": ("12345678901234567890123", "12345678901234567890124"),
    "ends of 64 bits": ("9223372036854775807", "-9223372036854775808"),
    "numbers of names": ("-9223372036854775807", "-9223372036854775806"),
    "number and text": ("1", '"1"'),
    "pairs": ("[0 1]", "[1 1]"),
    "vector and its element": ("[1]", "1"),
    "vector and set": ("[1 2]", "#{1 2}"),
    "empty": ("[]", "{}"),
    "maps": ("{:a {:b [1 2]}}", "{:a {:b [2 1]}}"),
    "truth": ("true", "false"),
    "truth and number": ("true", "1"),
    "reals": ("1.5", "1.25"),
    "zero and false": ("0", "false"),
    "nil within": ("[nil]", "[]"),
}


def history(*operations: str) -> str:
    """Operations one after the other: `add 1 => ok 1`, with the process, if another one, before it: `2 add 1`."""
    rows = []
    for operation in operations:
        asked, _, answered = operation.partition(" => ")
        f, _, value = asked.partition(" ")
        kind, _, answer = answered.partition(" ")
        rows.append(f"{{:process {len(rows)} :type :invoke :f :{f} :value {value or 'nil'}}}")
        rows.append(f"{{:process {len(rows) - 1} :type :{kind} :f :{f} :value {answer or 'nil'}}}")
    return "\n".join(rows)


def judge(tmp_path: Path, text: str, spec: CheckSpec) -> tuple[Verdict, dict[str, int]]:
    (tmp_path / "h").write_text(text)
    rows, spec, _ = in_memory(tmp_path / "h", spec)
    checkers = {name: one for name, one in spec.checkers.items() if name != "statistics"}
    results = check_history(CheckRequest(history=rows, repeats=spec.repeats), checkers, InProcessEngine())
    return merge(result.verdict for result in results.values()), broken(results)


RIGHT_AND_WRONG = {
    "set": (
        ["add {a} => ok {a}", "add {b} => ok {b}", "read => ok #{{{a} {b}}}"],
        ["add {a} => ok {a}", "add {b} => ok {b}", "read => ok #{{{a}}}"],
        "lost",
    ),
    "queue": (
        ["enqueue {a} => ok {a}", "enqueue {b} => ok {b}", "dequeue => ok {a}", "drain => ok [{b}]"],
        ["enqueue {a} => ok {a}", "enqueue {b} => ok {b}", "dequeue => ok {a}", "drain => ok []"],
        "lost",
    ),
    "unique-ids": (
        ["generate => ok {a}", "generate => ok {b}"],
        ["generate => ok {a}", "generate => ok {a}"],
        "duplicated",
    ),
    "causal-reverse": (
        ["write {a} => ok {a}", "write {b} => ok {b}", "read => ok [{a} {b}]"],
        ["write {a} => ok {a}", "write {b} => ok {b}", "read => ok [{b}]"],
        "causal-reverse",
    ),
    "register": (
        ["write {a} => ok {a}", "write {b} => ok {b}", "read => ok {b}", "cas [{b} {a}] => ok [{b} {a}]"],
        ["write {a} => ok {a}", "write {b} => ok {b}", "read => ok {a}"],
        "nonlinearizable",
    ),
    "rw-register": (
        ["txn [[:w x {a}]] => ok [[:w x {a}]]", "txn [[:r x nil]] => ok [[:r x {a}]]"],
        [
            *("txn [[:w x {a}]] => ok [[:w x {a}]]", "txn [[:w x {b}]] => ok [[:w x {b}]]"),
            "txn [[:r x nil]] => ok [[:r x {a}]]",
        ],
        "not-strong-snapshot-isolation",
    ),
    "list-append": (
        [
            *("txn [[:append x {a}]] => ok [[:append x {a}]]", "txn [[:append x {b}]] => ok [[:append x {b}]]"),
            "txn [[:r x nil]] => ok [[:r x [{a} {b}]]]",
        ],
        [
            *("txn [[:append x {a}]] => ok [[:append x {a}]]", "txn [[:append x {b}]] => ok [[:append x {b}]]"),
            *("txn [[:r x nil]] => ok [[:r x [{a}]]]", "txn [[:r x nil]] => ok [[:r x [{a} {b}]]]"),
        ],
        "G-single-item-realtime",
    ),
    "causal": (
        ["write {a} => ok {a}", "read => ok {a}"],
        ["write {a} => ok {a}", "read => ok {b}"],
        "unexpected",
    ),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", RIGHT_AND_WRONG)
def test_any_value_is_one_value_in_every_workload(name: str, kind: str, tmp_path: Path) -> None:
    a, b = VALUES[kind]
    right, wrong, anomaly = RIGHT_AND_WRONG[name]
    options: list[str] = ["initial=77"] if name == "causal" else []
    spec = of_workload(name, options)
    said = history(*(line.format(a=a, b=b) for line in right))
    assert judge(tmp_path, said, spec) == (Verdict.VALID, {}), said
    said = history(*(line.format(a=a, b=b) for line in wrong))
    verdict, found = judge(tmp_path, said, spec)
    assert verdict is Verdict.INVALID, said
    assert anomaly in found


@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind not in ("vector and set", "keyword and text")])
def test_any_value_is_one_value_of_a_model(kind: str, tmp_path: Path) -> None:
    """JSON, of which the states of models are made, has no sets and no keywords."""
    a, b = VALUES[kind]
    right, wrong, anomaly = RIGHT_AND_WRONG["register"]
    spec = of_model("cas-register", initial=None, failed_cas=None)
    assert judge(tmp_path, history(*(line.format(a=a, b=b) for line in right)), spec)[0] is Verdict.VALID
    verdict, found = judge(tmp_path, history(*(line.format(a=a, b=b) for line in wrong)), spec)
    assert (verdict, list(found)) == (Verdict.INVALID, [anomaly])


@pytest.mark.parametrize("name", ["set", "queue", "register", "causal-reverse"])
def test_values_are_told_from_the_keys_that_they_are_lifted_by(name: str, tmp_path: Path) -> None:
    """Pairs as values, and keys before them: what reads are invoked with shows which is which."""
    right, wrong, _ = RIGHT_AND_WRONG[name]
    spec = of_workload(name, ())
    for lines, verdict in ((right, Verdict.VALID), (wrong, Verdict.INVALID)):
        said = [line.format(a="[0 1]", b="[1 1]") for line in lines]
        assert judge(tmp_path, history(*map(lifted, said)), spec)[0] is verdict


def lifted(operation: str) -> str:
    asked, _, answered = operation.partition(" => ")
    f, _, value = asked.partition(" ")
    kind, _, answer = answered.partition(" ")
    return f"{f} [7 {value or 'nil'}] => {kind} [7 {answer}]"


def test_null_is_an_element_of_a_set_and_refused_in_a_queue(tmp_path: Path) -> None:
    lost = history("add nil => ok", "add 1 => ok 1", "read => ok #{1}")
    assert judge(tmp_path, lost, of_workload("set", ())) == (Verdict.INVALID, {"lost": 1})
    kept = history("add nil => ok", "add 1 => ok 1", "read => ok #{1 nil}")
    assert judge(tmp_path, kept, of_workload("set", ()))[0] is Verdict.VALID
    with pytest.raises(MalformedHistory, match="cannot be distinguished from the answer that nothing was there"):
        judge(tmp_path, history("enqueue nil => ok", "drain => ok []"), of_workload("queue", ()))


def test_a_dequeue_shows_several_elements_where_no_element_is_a_list(tmp_path: Path) -> None:
    several = history(
        "enqueue 1 => ok 1", "enqueue 2 => ok 2", "dequeue => ok [1 2]", "dequeue => ok []", "drain => ok []"
    )
    assert judge(tmp_path, several, of_workload("queue", ())) == (Verdict.VALID, {})


def test_a_real_that_is_whole_is_the_integer(tmp_path: Path) -> None:
    assert judge(tmp_path, history("add 1 => ok 1", "read => ok [1.0]"), of_workload("set", ()))[0] is Verdict.VALID


@pytest.mark.parametrize(("f", "answer"), [("read", "3"), ("read", '"abc"'), ("read", ":all")])
def test_what_shows_a_list_shows_no_scalar(f: str, answer: str, tmp_path: Path) -> None:
    with pytest.raises(MalformedHistory, match="read must show a list of elements"):
        judge(tmp_path, history("add 3 => ok 3", f"{f} => ok {answer}"), of_workload("set", ()))


@pytest.mark.parametrize("answer", ["1.5", '"a"', "[1 2]", "true"])
def test_a_counter_counts_whole_numbers_alone(answer: str, tmp_path: Path) -> None:
    with pytest.raises(MalformedHistory, match="value must be"):
        judge(tmp_path, history("add 1 => ok 1", f"read => ok {answer}"), of_workload("counter", ()))


@pytest.mark.parametrize("form", list(Format))
def test_what_was_numbered_is_exported_as_it_was(form: Format, tmp_path: Path) -> None:
    shape = shape_of(workload("set"))
    (tmp_path / "h").write_text(history('add {"a" [1 nil]} => ok', "add 5 => ok 5", 'read => ok [5 {"a" [1 nil]}]'))
    convert(tmp_path / "h", tmp_path / "h.parquet", shape)
    (tmp_path / "again").write_text("".join(exported(read_history(tmp_path / "h.parquet"), form)))
    convert(tmp_path / "again", tmp_path / "again.parquet", shape)
    assert names_of(tmp_path / "again.parquet") == names_of(tmp_path / "h.parquet")
    tables = [read_history(tmp_path / name).table() for name in ("h.parquet", "again.parquet")]
    assert tables[0]["value"].to_pylist() == tables[1]["value"].to_pylist()


def test_integers_need_no_names(tmp_path: Path) -> None:
    (tmp_path / "h").write_text(history("add 1 => ok 1", "read => ok [1]"))
    convert(tmp_path / "h", tmp_path / "h.parquet", Shape(**vars(shape_of(workload("set")))))
    assert not names_of(tmp_path / "h.parquet")
