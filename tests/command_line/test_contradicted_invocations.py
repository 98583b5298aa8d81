"""A completion that says what its invocation did not ask is malformed, in every model and workload, with its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from checkers.linearizable.objects import MODELS
from stormproof.session.registry import names
from tests.command_line.answers import Stormproof

IN_PROCESS = ("--engine", "inprocess")

CONTRADICTED: dict[str, list[str]] = {
    "--model register": [
        "write 1 => 2",
        "write 1 => [1]",
        'write 1 => "1"',
        "write nil => 2",
        "write {:a 1} => {:a 2}",
    ],
    "--model cas-register": ["write 1 => 2", "cas [1 2] => [1 3]", "cas [1 2] => [2 2]"],
    "--model multi-register": [
        "txn [[:write x 1] [:read y nil]] => [[:write x 2] [:read y 1]]",
        "txn [[:write x 1] [:read y nil]] => [[:read y 1] [:write x 1]]",
        "txn [[:write x 1] [:read y nil]] => [[:write x 1]]",
        "read [[:read x nil]] => [[:read y 1]]",
        "write [[:write x 1]] => [[:write x nil]]",
    ],
    "--model map": ['put "a" => "b"', 'append "a" => "ab"'],
    "--model set": ["add 1 => 2", "remove 1 => [1]"],
    "--model mutex": [],
    "--model fenced-lock": ["release 3 => 4", "release nil => 4"],
    "--model leased-lock": ["release 3 => 4"],
    "--model counter": ["add 1 => 2"],
    "--model fifo-queue": ["enqueue 1 => 2"],
    "--model unordered-queue": ["enqueue 1 => 2"],
    "--model priority-queue": ["enqueue 1 => 2"],
    "--model stack": ["push 1 => 2"],
    "--model append-log": ["append 1 => 2", "append 1 => [0 2]"],
    "--model echo": [],
    "--workload bank": ["transfer {:from 0 :to 1 :amount 1} => {:from 0 :to 1 :amount 2}"],
    "--workload causal": ["write 1 => 2", "txn [[:w x 1] [:r y nil]] => [[:w x 1] [:r z 1]]"],
    "--workload causal-reverse": ["write 1 => 2", "write nil => 2"],
    "--workload consumption": [
        "send {:message 1} => {:message 2 :offset 0}",
        'join {:group "g"} => {:group "h" :member "a"}',
        'consume {:group "g"} => {:group "h" :messages []}',
    ],
    "--workload counter": ["add 1 => 2"],
    "--workload delay": ["send {:message 1 :due 5} => {:message 2 :due 5}"],
    "--workload delayed": [
        "enqueue {:value 1 :delay_ms 5} => {:value 2 :delay_ms 5}",
        "enqueue {:value 1 :delay_ms 5} => {:value 1 :delay_ms 6}",
    ],
    "--workload list-append": [
        "txn [[:append x 1] [:r y nil]] => [[:append x 2] [:r y [1]]]",
        "txn [[:append x 1] [:r y nil]] => [[:append y 1] [:r y [1]]]",
        "txn [[:append x 1] [:r y nil]] => [[:r y [1]] [:append x 1]]",
        "txn [[:append x 1] [:r y nil]] => [[:append x 1]]",
        "txn [[:append x 1]] => [[:append x 1] [:append x 2]]",
        "txn [[:append x 1] [:append x 2]] => [[:append x 2] [:append x 1]]",
        "txn [[:append x 1]] => []",
    ],
    "--workload lock": ["release 3 => 4", "release nil => 4"],
    "--workload log": [
        "send {:message 1} => {:message 2 :offset 0}",
        "txn {:txn [{:f send :key q :message 1}]} => {:txn [{:f send :key q :message 2 :offset 0}]}",
    ],
    "--workload long-fork": [
        "write [[:w x 1]] => [[:w x 2]]",
        "read [[:r x nil] [:r y nil]] => [[:r x nil] [:r z 1]]",
    ],
    "--workload monotonic": [],
    "--workload pop": [
        "send {:message 1} => {:message 2}",
        "pop {:invisible_ms 5} => {:invisible_ms 6 :deliveries []}",
        "ack {:message 1} => {:message 2}",
        "change {:message 1 :invisible_ms 5} => {:message 1 :invisible_ms 6}",
    ],
    "--workload queue": ["enqueue 1 => 2", "ack 1 => 2"],
    "--workload register": ["write 1 => 2", "cas [1 2] => [1 3]", "cas [1 2] => [2 2]"],
    "--workload rw-register": [
        "txn [[:w x 1] [:r y nil]] => [[:w x 2] [:r y 1]]",
        "txn [[:w x 1] [:r y nil]] => [[:w x nil] [:r y 1]]",
        "txn [[:r y nil]] => [[:w y 1]]",
    ],
    "--workload set": ["add 1 => 2"],
    "--workload transactional": ["enqueue 1 => 2"],
    "--workload unique-ids": [],
}

REPEATED: dict[str, list[str]] = {
    "--model register": ["write 1 => 1", "write 1 => nil", "write 1.0 => 1", "read nil => 1", "read 5 => 1"],
    "--model cas-register": ["write 1 => 1", "cas [1 2] => [1 2]", "read nil => 2"],
    "--model multi-register": [
        "txn [[:write x 1] [:read y nil]] => [[:write x 1] [:read y nil]]",
        "read [[:read x nil]] => [[:read x 2]]",
    ],
    "--model map": ['put "a" => nil', 'append "b" => "b"', 'get nil => "ab"'],
    "--model set": ["add 1 => true", "add 2 => 2", "contains 1 => true", "remove 1 => nil", "read nil => [2]"],
    "--model mutex": ["acquire nil => 7", "release nil => 8"],
    "--model fenced-lock": ["acquire nil => 3", "release 3 => 3", "acquire nil => 4", "release 4 => nil"],
    "--model leased-lock": ["acquire nil => 3", "release 3 => 3", "acquire nil => 4", "release 4 => nil"],
    "--model counter": ["add 1 => nil", "read nil => 1"],
    "--model fifo-queue": ["enqueue 1 => nil", "dequeue nil => 1"],
    "--model unordered-queue": ["enqueue 1 => 1", "dequeue nil => 1"],
    "--model priority-queue": ["enqueue 1 => 1", "dequeue nil => 1"],
    "--model stack": ["push 1 => 1", "pop nil => 1"],
    "--model append-log": ["append 1 => [0 1]", 'append "a" => [1 "a"]', "append 3 => 3", "append 4 => nil"],
    "--model echo": ["echo 1 => 1", "echo 2 => {:echo 2}"],
    "--workload bank": ["transfer {:from 0 :to 1 :amount 1} => nil", "read nil => {0 1, 1 2}"],
    "--workload causal": ["write 1 => 1", "read nil => 1", "txn [[:w x 2] [:r x nil]] => [[:w x 2] [:r x 2]]"],
    "--workload causal-reverse": ["write 1 => nil", "read nil => [1]"],
    "--workload consumption": [
        "send {:message 1} => {:message 1 :offset 0}",
        'join {:group "g"} => {:group "g" :member "a"}',
        'consume {:group "g"} => {:group "g" :messages [{:message 1 :queue "q" :offset 0 :tries 0}]}',
    ],
    "--workload counter": ["add 1 => 1", "read nil => 1"],
    "--workload delay": ["send {:message 1 :due 0} => {:message 1 :due 1}", "deliver nil => {:messages [1]}"],
    "--workload delayed": [
        "enqueue {:value 1 :delay_ms 5} => {:value 1 :delay_ms 5}",
        "dequeue nil => {:values [1] :places [0]}",
    ],
    "--workload list-append": [
        "txn [[:append x 1] [:r x nil]] => [[:append x 1] [:r x [1]]]",
        "txn [[:append x 2]] => nil",
        "txn [[:r x nil]] => [[:r x [1 2]]]",
    ],
    "--workload lock": ["acquire nil => 3", "release 3 => 3", "acquire nil => 4", "release 4 => nil"],
    "--workload log": [
        "send {:message 1} => {:message 1 :offset 0}",
        "poll {:offset 0} => {:offset 1 :messages [{:offset 0 :message 1}]}",
        "txn {:txn [{:f poll} {:f send :key q :message 2}]} => "
        "{:txn [{:f poll :key q} {:f poll :key r} {:f send :key q :message 2 :offset 1}]}",
        "final-poll {:offset 0} => {:offset 1 :messages [{:offset 0 :message 1}]}",
        "caught-up {:offset 1} => {:offset 1}",
    ],
    "--workload long-fork": ["write [[:w x 1]] => [[:w x 1]]", "read [[:r x nil] [:r y nil]] => [[:r x 1] [:r y nil]]"],
    "--workload monotonic": ["inc nil => 1", "read nil => 1"],
    "--workload pop": [
        "send {:message 1} => {:message 1}",
        "pop {:invisible_ms 5} => {:invisible_ms 5 :deliveries [{:message 1 :times 0}]}",
        "ack {:message 1} => nil",
        "drain {:invisible_ms 5} => {:invisible_ms 5 :deliveries []}",
    ],
    "--workload queue": ["enqueue 1 => 1", "dequeue nil => 1", "ack 1 => nil", "drain nil => []"],
    "--workload register": ["write 1 => 1", "cas [1 2] => nil", "read nil => 2"],
    "--workload rw-register": ["txn [[:w x 1] [:r x nil]] => [[:w x 1] [:r x 1]]"],
    "--workload set": ["add 1 => nil", "read nil => [1]"],
    "--workload transactional": ["enqueue 1 => 1", "dequeue nil => [1]", "drain nil => []"],
    "--workload unique-ids": ["generate nil => 1", "generate nil => 2"],
}


def edn(*operations: str, ended: str = "ok") -> str:
    """Operations of one client, each `f asked => returned`."""
    lines = []
    for operation in operations:
        f, _, values = operation.partition(" ")
        asked, _, returned = values.partition(" => ")
        lines.append(f"{{:process 0, :type :invoke, :f :{f}, :value {asked}}}")
        lines.append(f"{{:process 0, :type :{ended}, :f :{f}, :value {returned}}}")
    return "\n".join(lines) + "\n"


def cases(of: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    return ((judged_as, operation) for judged_as, operations in of.items() for operation in operations)


def test_every_model_and_workload_is_here() -> None:
    known = {f"--model {name}" for name in MODELS} | {f"--workload {name}" for name in names("workloads")}
    assert CONTRADICTED.keys() == REPEATED.keys() == known


@pytest.mark.parametrize(("judged_as", "operation"), list(cases(CONTRADICTED)))
def test_what_contradicts_its_invocation_is_malformed(stormproof: Stormproof, judged_as: str, operation: str) -> None:
    Path("h.edn").write_text(edn(operation))
    answer = stormproof("check", "h.edn", *judged_as.split(), *IN_PROCESS)
    assert answer.code == 254
    (line,) = answer.err.splitlines()
    f = operation.partition(" ")[0]
    assert line.startswith(f"stormproof: h.edn: line 2, row 1: {f} completes with "), line
    assert ": a completion may repeat what was asked or leave it out, not change it (byte " in line


@pytest.mark.parametrize("judged_as", REPEATED)
def test_what_repeats_its_invocation_or_answers_is_judged(stormproof: Stormproof, judged_as: str) -> None:
    Path("h.edn").write_text(edn(*REPEATED[judged_as]))
    answer = stormproof("check", "h.edn", *judged_as.split(), *IN_PROCESS)
    assert answer.code in (0, 1, 2), answer.err


@pytest.mark.parametrize(
    ("judged_as", "operation", "ended", "code"),
    [
        # What counts for nothing may say anything: a number there is a reason.
        ("--workload set", "add 1 => 2", "info", 2),
        ("--workload set", "add 1 => 2", "fail", 2),
        ("--workload set", "add 1 => [:refused 1]", "fail", 2),
        ("--workload list-append", "txn [[:append x 1]] => [[:append x 2]]", "info", 2),
        # A model reads what was asked, and of the completion nothing: many record an error there.
        ("--model register", "write 1 => 2", "info", 2),
        ("--model register", 'write "a" => "timed out"', "fail", 2),
        ("--workload set", "add 1 => :timed-out", "info", 2),
    ],
)
def test_completions_that_are_not_ok(
    stormproof: Stormproof, judged_as: str, operation: str, ended: str, code: int
) -> None:
    Path("h.edn").write_text(edn(operation, ended=ended))
    assert stormproof("check", "h.edn", *judged_as.split(), *IN_PROCESS).code == code


LOG = "INFO  jepsen.util - 0\t:invoke\t:write\t1\nINFO  jepsen.util - 0\t:ok\t:write\t2\n"
JSON = (
    '[{"process": 0, "type": "invoke", "f": "write", "value": 1},\n'
    ' {"process": 0, "type": "ok", "f": "write", "value": 2}]'
)


@pytest.mark.parametrize("name", ["h.log", "h.json"])
def test_however_it_was_recorded(stormproof: Stormproof, name: str) -> None:
    Path(name).write_text(LOG if name == "h.log" else JSON)
    answer = stormproof("check", name, "--model", "register", *IN_PROCESS)
    assert answer.code == 254
    assert f"{name}: line 2, row 1: write completes with 2, but was invoked with 1: " in answer.err


@pytest.mark.parametrize("row_group_size", [1, 2, 3, 1_000])
def test_in_a_stored_history_the_first_is_reported_wherever_it_is_cut(
    stormproof: Stormproof, row_group_size: int, tmp_path: Path
) -> None:
    lines = []
    for number in range(4):
        lines += [f"{{:process {p}, :type :invoke, :f :write, :value {number}{p}}}" for p in range(5)]
        completions = [f"{{:process {p}, :type :ok, :f :write, :value {number}{p}}}" for p in reversed(range(5))]
        lines += completions
    lines[25] = lines[25].replace(":value 24", ":value 25")
    lines[37] = lines[37].replace(":value 32", ":value 77")
    Path("whole.edn").write_text("\n".join(lines).replace(":value 25", ":value 24").replace(":value 77", ":value 32"))
    assert stormproof("check", "whole.edn", "--model", "register", *IN_PROCESS).code == 2
    (kept,) = Path("runs/checked").glob("*/history.parquet")
    table = pq.read_table(kept)
    rows = table.to_pylist()
    rows[25]["value"]["value"], rows[37]["value"]["value"] = 25, 77
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), "stored.parquet", row_group_size=row_group_size)
    for judged_as in (("--model", "register"), ("--workload", "register")):
        answer = stormproof("check", "stored.parquet", *judged_as, *IN_PROCESS)
        assert answer.code == 254
        assert "stored.parquet: row 25: write completes with 25, but was invoked with 24" in answer.err


def test_a_run_whose_history_contradicts_itself_is_malformed(
    stormproof: Stormproof, stored_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for path in stored_run.iterdir():
        if path.is_file():
            (run / path.name).write_bytes(path.read_bytes())
    table = pq.read_table(run / "history.parquet")
    rows = table.to_pylist()
    place = next(i for i, row in enumerate(rows) if row["type"] == "ok" and row["f"] == "send")
    rows[place]["value"]["message"] += 1_000_000
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), run / "history.parquet")
    answer = stormproof("check", run, *IN_PROCESS)
    assert answer.code == 254
    assert f"row {place}: send completes with " in answer.err
