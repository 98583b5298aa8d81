"""Objects of a model from the command line: as EDN and as Parquet, decided and certified, by both engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.linearizable import replay
from harness.record.history import history_schema
from tests.command_line.answers import Stormproof

IN_PROCESS = ("--engine", "inprocess")
INTEGERS = pa.struct([pa.field("value", pa.int64()), pa.field("expected", pa.int64())])

Event = tuple[int, str, str, Any]
"""Process, type, f, value."""

TAKEN_IN_ORDER: list[Event] = [
    (0, "invoke", "enqueue", 7),
    (1, "invoke", "enqueue", 8),
    (0, "ok", "enqueue", 7),
    (1, "ok", "enqueue", 8),
    (2, "invoke", "dequeue", None),
    (3, "invoke", "dequeue", None),
    (3, "ok", "dequeue", 8),
    (2, "info", "dequeue", None),
    (3, "invoke", "dequeue", None),
    (3, "ok", "dequeue", None),
]
OVERTAKEN: list[Event] = [
    (0, "invoke", "enqueue", 7),
    (0, "ok", "enqueue", 7),
    (1, "invoke", "enqueue", 8),
    (1, "ok", "enqueue", 8),
    (3, "invoke", "dequeue", None),
    (3, "ok", "dequeue", 8),
]


def as_edn(events: list[Event], path: Path, value: str = "{}") -> Path:
    lines = []
    for process, kind, f, content in events:
        text = "nil" if content is None else value.format(content)
        lines.append(f"{{:process {process}, :type :{kind}, :f :{f}, :value {text}}}")
    path.write_text("\n".join(lines) + "\n")
    return path


def as_parquet(events: list[Event], path: Path) -> Path:
    rows = [
        {"index": i, "time": i, "process": process, "type": kind, "f": f, "key": "q", "value": {"value": content}}
        for i, (process, kind, f, content) in enumerate(events)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=history_schema(INTEGERS)), path)
    return path


def replayed(history: Path, certificate: Path, model: str) -> str | None:
    rows = [row | {"value": replay.plain(row["value"])} for row in pq.read_table(history).to_pylist()]
    orders = {entry["key"]: entry["order"] for entry in map(json.loads, certificate.read_text().splitlines()[1:])}
    return replay.fault(rows, orders, lambda: replay.OBJECTS[model](None), False)


@pytest.mark.parametrize("model", ["fifo-queue", "unordered-queue", "priority-queue"])
@pytest.mark.parametrize("value", ["{}", '"element {}"', "[{} :a [1 nil]]"])
def test_a_queue_from_edn_is_certified(stormproof: Stormproof, tmp_path: Path, model: str, value: str) -> None:
    history = as_edn(TAKEN_IN_ORDER, tmp_path / "history.edn", value)
    certificate = tmp_path / "orders.jsonl"
    answer = stormproof("check", history, "--model", model, "--certify", certificate, "--json", *IN_PROCESS)
    assert answer.code == 0, answer.err
    assert replayed(Path(answer.json["directory"]) / "history.parquet", certificate, model) is None


def test_a_queue_of_integers_is_certified_from_parquet(stormproof: Stormproof, tmp_path: Path) -> None:
    history = as_parquet(TAKEN_IN_ORDER, tmp_path / "history.parquet")
    certificate = tmp_path / "orders.jsonl"
    answer = stormproof("check", history, "--model", "fifo-queue", "--certify", certificate, *IN_PROCESS)
    assert answer.code == 0, answer.err
    assert f"orders    1 in {certificate}" in answer.out
    assert replayed(history, certificate, "fifo-queue") is None


@pytest.mark.parametrize("value", ["{}", '"element {}"'])
def test_orders_of_a_history_too_large_to_gather_them_are_refused_before_it_is_judged(
    stormproof: Stormproof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    history, certificate = as_edn(TAKEN_IN_ORDER, tmp_path / "history.edn", value), tmp_path / "orders.jsonl"
    of_queue = ("check", history, "--model", "fifo-queue", "--certify", certificate, "--json", *IN_PROCESS)
    monkeypatch.setattr("checkers.linearizable.checker.CERTIFIED_ROWS", len(TAKEN_IN_ORDER) - 1)
    refused = stormproof(*of_queue)
    assert (refused.code, refused.json["verdict"], certificate.exists()) == (254, None, False)
    assert "at most 9 rows" in refused.err
    assert "this one has 10; check it without --certify, or some of its keys at a time" in refused.err
    monkeypatch.setattr("checkers.linearizable.checker.CERTIFIED_ROWS", len(TAKEN_IN_ORDER))
    assert stormproof(*of_queue).code == 0


@pytest.mark.parametrize(("value", "written"), [("{}", "{}"), ('"element {}"', '"element {}"')])
def test_elements_are_shown_as_they_were_written(
    stormproof: Stormproof, tmp_path: Path, value: str, written: str
) -> None:
    history = as_edn(OVERTAKEN, tmp_path / "history.edn", value)
    answer = stormproof("check", history, "--model", "fifo-queue", "--json", *IN_PROCESS)
    assert answer.code == 1
    assert answer.json["anomalies"] == {"nonlinearizable": 1}
    content = (Path(answer.json["directory"]) / "verdict.json").read_text()
    because = json.loads(content)["checkers"]["linearizable"]["anomalies"]["nonlinearizable"]["examples"][0]["because"]
    overtaken = f"{written.format(8)} was dequeued (operation 4, completed by 5)"
    assert f"but {overtaken}, and {written.format(7)} was not taken before" in because
    assert because.endswith(f"would have had to return {written.format(7)}")


def test_a_queue_begins_with_what_it_is_said_to(stormproof: Stormproof, tmp_path: Path) -> None:
    history = as_parquet([(0, "invoke", "dequeue", None), (0, "ok", "dequeue", 5)], tmp_path / "history.parquet")
    assert stormproof("check", history, "--model", "fifo-queue", *IN_PROCESS).code == 1
    assert stormproof("check", history, "--model", "fifo-queue", "--initial", "[5, 6]", *IN_PROCESS).code == 0
    assert stormproof("check", history, "--model", "fifo-queue", "--initial", "[6, 5]", *IN_PROCESS).code == 1
    assert stormproof("check", history, "--model", "unordered-queue", "--initial", "[6, 5]", *IN_PROCESS).code == 0


ADDED_AT_ONCE: list[Event] = [
    *((process, "invoke", "add", 1 << process) for process in range(40)),
    (40, "invoke", "read", None),
    (40, "ok", "read", (1 << 40) - 2),
    *((process, "ok", "add", 1 << process) for process in range(40)),
]
"""Each set of these has a sum of its own, so that a search would take forever."""


def test_a_search_is_given_up_after_the_time_asked_for(stormproof: Stormproof, tmp_path: Path) -> None:
    history = as_edn(ADDED_AT_ONCE, tmp_path / "sums.edn")
    answer = stormproof("check", history, "--model", "counter", "--give-up-after", "0.001", *IN_PROCESS, "--json")
    [checked] = [json.loads(line) for line in answer.out.splitlines()]
    assert (answer.code, checked["verdict"]) == (2, "unknown")
    assert "there was no time left" in checked["reasons"][0]


def of_three_counters(folder: Path, *totals: int) -> Path:
    """Each of three counters gets 1, and shows that."""
    path = folder / "counters.edn"
    path.write_text(
        "".join(
            f"{{:process 0, :type :{kind}, :f :{f}, :value [:{key} {value}]}}\n"
            for key, total in zip("abc", totals, strict=True)
            for kind, f, value in (
                ("invoke", "add", 1),
                ("ok", "add", 1),
                ("invoke", "read", "nil"),
                ("ok", "read", total),
            )
        )
    )
    return path


@pytest.mark.parametrize(("options", "found", "left"), [((), 1, ["b", "c"]), (("--all-findings",), 2, [])])
def test_once_an_object_is_invalid_no_search_begins_for_others_unless_all_are_asked_for(
    options: tuple[str, ...], found: int, left: list[str], stormproof: Stormproof, tmp_path: Path
) -> None:
    history = of_three_counters(tmp_path, 5, 5, 1)
    answer = stormproof("check", history, "--model", "counter", *options, *IN_PROCESS, "--json")
    [checked] = [json.loads(line) for line in answer.out.splitlines()]
    assert (answer.code, checked["anomalies"]) == (1, {"nonlinearizable": found})
    said = f"not searched, for the verdict was certain: {', '.join(left)} (--all-findings searches them as well)"
    assert checked["reasons"] == [f"nonlinearizable: {found} found", *([said] if left else [])]


NEITHER_ORDER = (
    ("w x 1", "w p 1"),
    ("w x 2", "w q 1"),
    ("w y 1", "w s 1"),
    ("w y 2", "w t 1"),
    ("r x 1", "r s 1", "r t 1"),
    ("r x 2", "r s 1", "r t 1"),
    ("r y 1", "r p 1", "r q 1"),
    ("r y 2", "r p 1", "r q 1"),
)
"""Transactions, all at once. Nothing is forced before one assumes something of x, and then something of y."""


def test_a_search_for_an_order_of_transactions_is_given_up_as_well_and_tells_what_is_left(
    stormproof: Stormproof, tmp_path: Path
) -> None:
    history = tmp_path / "neither.edn"
    steps = ["[" + " ".join(f"[:{step}]".replace(" ", " :", 1) for step in steps) + "]" for steps in NEITHER_ORDER]
    history.write_text(
        "\n".join(
            f"{{:process {process}, :type :{type_}, :f :txn, :value {value}}}"
            for type_ in ("invoke", "ok")
            for process, value in enumerate(steps)
        )
    )
    judged = ("check", history, "--workload", "rw-register", "--set", "model=serializable", *IN_PROCESS)
    assert stormproof(*judged).code == 1
    answer = stormproof(*judged, "--give-up-after", "0.000001")
    assert answer.code == 2
    assert "the time given had passed; left are 4 transactions" in answer.out


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_what_is_no_time_is_refused(seconds: str, stormproof: Stormproof, tmp_path: Path) -> None:
    history = as_edn(TAKEN_IN_ORDER, tmp_path / "queue.edn")
    answer = stormproof("check", history, "--model", "fifo-queue", "--give-up-after", seconds)
    assert answer.code == 254
    assert "--give-up-after" in answer.err
