"""The checker for any model: what it says, what it certifies, and models from other packages."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.evidence import Evidence, any_ok
from checkers.api.plan import CheckRequest
from checkers.api.verdict import CheckerResult, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.linearizable.checker import CONFIGURATIONS, Linearizable, TooLargeToCertify
from checkers.linearizable.model import ANYTHING, Call, FailedCas, Model
from checkers.linearizable.objects import MODELS
from checkers.linearizable.objects.register import cas_register
from harness.record.history import MalformedHistory, history_schema
from results.output import write

VALUE = pa.struct([pa.field("json", pa.string())])

Event = tuple[int, str, str, Any]
"""Process, type, f, value."""


def written(path: Path, events: list[Event], key: str | None = "k") -> Path:
    rows = [
        {
            "index": number,
            "time": number,
            "process": process,
            "type": kind,
            "f": f,
            "key": key,
            "value": {"json": json.dumps(value)},
        }
        for number, (process, kind, f, value) in enumerate(events)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=history_schema(VALUE)), path)
    return path


def check(model: Model, path: Path, max_configurations: int = CONFIGURATIONS) -> CheckerResult:
    checker = Linearizable(model, max_configurations)
    return checker.check(CheckRequest(history=path), InProcessEngine())


def done(process: int, f: str, argument: Any, result: Any) -> list[Event]:
    return [(process, "invoke", f, argument), (process, "ok", f, result)]


def replayed(history: Path, certificate: Path, model: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "checkers.linearizable.replay", str(history), str(certificate), model]
    return subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)


def test_a_certificate_replays_and_a_forged_one_does_not(tmp_path: Path) -> None:
    events = done(0, "enqueue", 1, 1) + done(0, "enqueue", 2, 2) + done(1, "dequeue", None, 1)
    history = written(tmp_path / "history.parquet", events)
    certificate = tmp_path / "certificate.jsonl"
    request = CheckRequest(history=history)
    to_file = partial(write, certificate)
    assert Linearizable(MODELS["fifo-queue"]).certify(request, InProcessEngine(), to_file) == "orders    1"
    head, order = map(json.loads, certificate.read_text().splitlines())
    assert head == {"model": "fifo-queue", "failed_cas": "ignored"}
    assert order == {"key": "k", "order": [0, 2, 4]}
    assert replayed(history, certificate, "fifo-queue").returncode == 0

    certificate.write_text(json.dumps({"key": "k", "order": [2, 0, 4]}) + "\n")
    forged = replayed(history, certificate, "fifo-queue")
    assert forged.returncode == 3
    assert forged.stdout == "refuted: k: 0 had ended when 2, which the order puts before it, began\n"


@pytest.mark.parametrize(("model", "f"), [("cas-register", "read"), ("fifo-queue", "dequeue")])
def test_no_orders_are_gathered_of_a_history_with_more_rows_than_the_bound(
    model: str, f: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = CheckRequest(history=written(tmp_path / "history.parquet", done(0, f, None, None)))
    monkeypatch.setattr("checkers.linearizable.checker.CERTIFIED_ROWS", 1)
    with pytest.raises(TooLargeToCertify, match="at most 1 rows, this one has 2"):
        Linearizable(MODELS[model]).certify(request, InProcessEngine(), partial(write, tmp_path / "certificate.jsonl"))


def test_a_window_names_what_the_stuck_operation_would_have_had_to_return(tmp_path: Path) -> None:
    events = done(0, "write", 1, 1) + done(0, "read", None, 1) + done(0, "write", 2, 2) + done(1, "read", None, 1)
    found = check(MODELS["cas-register"], written(tmp_path / "history.parquet", events))
    anomaly = found.anomalies["nonlinearizable"].examples[0]
    assert anomaly.operations == (6, 7)
    assert anomaly.because.startswith("k: read that returned 1 (operation 6, completed by 7) fits nowhere")
    [prefix] = anomaly.details["longest_prefixes"]
    assert [prefix[name] for name in ("order", "state", "stuck", "would_have_told")] == [
        [0, 2, 4],
        "2",
        "read that returned 1",
        ["2"],
    ]


@pytest.mark.parametrize(
    ("model", "events"),
    [
        ("register", done(0, "write", 1, 1) + done(0, "read", None, 2)),
        ("cas-register", done(0, "write", "a", "a") + done(0, "cas", ["b", "c"], ["b", "c"])),
        ("stack", done(0, "push", 1, 1) + done(0, "pop", None, 2)),
        ("counter", done(0, "add", 1, 1) + done(0, "read", None, 2)),
    ],
)
def test_explanations_about_an_object_begin_with_its_name_if_it_has_one(
    tmp_path: Path, model: str, events: list[Event]
) -> None:
    named = check(MODELS[model], written(tmp_path / "named.parquet", events))
    nameless = check(MODELS[model], written(tmp_path / "nameless.parquet", events, None))
    [of_k], [of_it] = (found.anomalies["nonlinearizable"].examples for found in (named, nameless))
    assert of_k.because == f"k: {of_it.because}"
    assert not of_it.because.startswith((":", " "))


def test_a_failed_cas_is_an_answer_only_if_asked_for(tmp_path: Path) -> None:
    failed = [(1, "invoke", "cas", [1, 2]), (1, "fail", "cas", [1, 2])]
    path = written(tmp_path / "history.parquet", done(0, "write", 1, 1) + failed)
    assert check(cas_register(FailedCas.IGNORED), path).verdict is Verdict.VALID
    assert check(cas_register(FailedCas.ANSWER), path).verdict is Verdict.INVALID


def test_beyond_its_bound_an_object_is_unknown_with_how_far_it_came(tmp_path: Path) -> None:
    begun = [(process, "invoke", "add", 1 << process) for process in range(12)]
    ended = [(process, "ok", "add", 1 << process) for process in range(12)]
    events = done(20, "read", None, 0) + begun + ended + done(20, "read", None, 4095)
    path = written(tmp_path / "history.parquet", events)
    assert check(MODELS["counter"], path).verdict is Verdict.VALID
    found = check(MODELS["counter"], path, max_configurations=10)
    assert found.verdict is Verdict.UNKNOWN
    assert found.reasons == (
        "k is undecided after 1 of its 14 operations, which have an order, and 17 configurations: "
        "10 configurations side by side were not enough",
    )


def test_an_initial_value_is_given_as_json(tmp_path: Path) -> None:
    path = written(tmp_path / "history.parquet", done(0, "dequeue", None, 3))
    assert check(MODELS["fifo-queue"], path).verdict is Verdict.INVALID
    assert check(MODELS["fifo-queue"].beginning_with([3, 4]), path).verdict is Verdict.VALID


def test_what_was_there_at_first_is_in_every_read_of_a_log(tmp_path: Path) -> None:
    log = MODELS["append-log"].beginning_with([5])
    for read, verdict in (([5], Verdict.VALID), ([], Verdict.INVALID), ([6], Verdict.INVALID)):
        path = written(tmp_path / "history.parquet", done(0, "read", None, read))
        assert check(log, path).verdict is verdict
    path = written(tmp_path / "history.parquet", done(0, "read", None, [5]) + done(0, "read", None, []))
    (anomaly,) = check(log, path).anomalies["nonlinearizable"].examples
    assert anomaly.because.startswith("k: a read (operation 2, completed by 3) lacks what was there at first")


@pytest.mark.parametrize(
    ("model", "accepted", "refused"),
    [
        ("counter", (0, -5, 7), (True, 1.0, "1", None, [])),
        ("fenced-lock", (0, 1, 7), (-1, True, 1.0, "x", None)),
        ("leased-lock", (0, 1, 7), (-1, True, 1.0, "x", None)),
    ],
)
def test_an_object_of_numbers_begins_with_a_number(model: str, accepted: tuple[Any, ...], refused: Any) -> None:
    accepts = MODELS[model].begins.accepts
    assert [accepts(value) for value in accepted] == [True] * len(accepted)
    assert [accepts(value) for value in refused] == [False] * len(refused)


def test_a_value_that_means_nothing_is_malformed_where_its_object_begins(tmp_path: Path) -> None:
    path = written(tmp_path / "history.parquet", done(0, "write", 1, 1) + done(0, "cas", 5, 5))
    with pytest.raises(
        MalformedHistory, match="row 0: object 'k' has a value that means nothing to model cas-register"
    ):
        check(MODELS["cas-register"], path)


def test_a_function_that_the_model_has_not_is_a_malformed_history(tmp_path: Path) -> None:
    path = written(tmp_path / "history.parquet", done(0, "write", 1, 1) + done(0, "toggle", None, None))
    with pytest.raises(MalformedHistory, match="row 2: register has no 'toggle', only read, write"):
        check(MODELS["register"], path)


def _of_reads(state: Any) -> tuple[Evidence, ...]:
    return any_ok("read", "dequeue")


def _light(state: bool, call: Call) -> list[tuple[bool, Any]]:
    return [(not state, ANYTHING)] if call.f == "toggle" else [(state, state)]


LIGHT: dict[str, Any] = {
    "name": "light",
    "initial": False,
    "functions": ("toggle", "read"),
    "apply": _light,
    "evidence": _of_reads,
    "repeats": {},
}


def test_a_model_from_another_package_takes_a_few_lines(tmp_path: Path) -> None:
    light = Model(
        name="light", initial=False, functions=("toggle", "read"), apply=_light, evidence=_of_reads, repeats={}
    )
    events = done(0, "toggle", None, None) + done(1, "read", None, True)
    assert check(light, written(tmp_path / "right.parquet", events)).verdict is Verdict.VALID
    events += done(1, "read", None, False)
    assert check(light, written(tmp_path / "wrong.parquet", events)).verdict is Verdict.INVALID


def test_a_model_from_another_package_may_return_true_which_is_not_1(tmp_path: Path) -> None:
    light = Model(
        name="light", initial=False, functions=("toggle", "read"), apply=_light, evidence=_of_reads, repeats={}
    )
    events = done(0, "toggle", None, None) + done(1, "read", None, 1)
    assert check(light, written(tmp_path / "history.parquet", events)).verdict is Verdict.INVALID


@pytest.mark.parametrize(
    ("one", "other"), [(1, True), (True, 1), (0, False), ([1], [True]), ({"a": 0}, {"a": False}), ({}, [])]
)
@pytest.mark.parametrize("model", ["register", "cas-register"])
def test_a_register_returns_no_value_that_only_python_takes_as_equal_to_its_number(
    tmp_path: Path, model: str, one: Any, other: Any
) -> None:
    events = done(0, "write", one, one) + done(1, "read", None, one)
    assert check(MODELS[model], written(tmp_path / "same.parquet", events)).verdict is Verdict.VALID
    events = done(0, "write", one, one) + done(1, "read", None, other)
    assert check(MODELS[model], written(tmp_path / "other.parquet", events)).verdict is Verdict.INVALID


def test_a_replayed_order_distinguishes_true_from_1(tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.jsonl"
    certificate.write_text(json.dumps({"key": "k", "order": [0, 2]}) + "\n")
    right = written(tmp_path / "right.parquet", done(0, "write", True, True) + done(1, "read", None, True))
    assert replayed(right, certificate, "register").returncode == 0
    wrong = written(tmp_path / "wrong.parquet", done(0, "write", 1, 1) + done(1, "read", None, True))
    finished = replayed(wrong, certificate, "register")
    assert (finished.returncode, finished.stdout) == (3, "refuted: k: read 2 could not have returned True\n")


def _last_in_first_out(state: tuple[Any, ...], call: Call) -> list[tuple[tuple[Any, ...], Any]]:
    if call.f == "enqueue":
        return [((*state, call.argument), ANYTHING)]
    return [(state[:-1], state[-1])] if state else [(state, None)]


def test_a_model_from_another_package_is_judged_by_itself_though_its_name_is_taken(tmp_path: Path) -> None:
    queue = Model(
        name="fifo-queue",
        initial=(),
        functions=("enqueue", "dequeue"),
        apply=_last_in_first_out,
        evidence=_of_reads,
        repeats={},
    )
    events = done(0, "enqueue", 1, 1) + done(0, "enqueue", 2, 2) + done(1, "dequeue", None, 2)
    path = written(tmp_path / "history.parquet", events)
    assert check(queue, path).verdict is Verdict.VALID
    assert check(MODELS["fifo-queue"], path).verdict is Verdict.INVALID


def test_an_anomaly_of_a_queue_ends_where_it_first_failed_and_shows_what_would_have_fitted(tmp_path: Path) -> None:
    events = done(0, "enqueue", 1, 1) + done(0, "enqueue", 2, 2) + done(1, "dequeue", None, 2)
    events += done(1, "dequeue", None, 1) + done(1, "dequeue", None, 9)
    found = check(MODELS["fifo-queue"], written(tmp_path / "history.parquet", events))
    [anomaly] = found.anomalies["nonlinearizable"].examples
    assert anomaly.operations == (0, 1, 2, 3, 4, 5)
    assert anomaly.because == (
        "k: 1 was enqueued (operation 0, completed by 1) before the enqueue of 2 began (operation 2, completed by 3), "
        "but 2 was dequeued (operation 4, completed by 5), and 1 was not taken before; "
        "dequeue that returned 2 would have had to return 1"
    )
    [prefix] = anomaly.details["longest_prefixes"]
    assert [prefix[name] for name in ("order", "state", "stuck", "would_have_told")] == [
        [0, 2],
        "[1, 2]",
        "dequeue that returned 2",
        ["1"],
    ]


def test_where_elements_repeat_and_the_search_gives_up_the_reason_names_both(tmp_path: Path) -> None:
    begun = [(process, "invoke", "enqueue", process % 10) for process in range(12)]
    ended = [(process, "ok", "enqueue", process % 10) for process in range(12)]
    path = written(tmp_path / "history.parquet", begun + ended + done(20, "dequeue", None, 5))
    found = check(MODELS["fifo-queue"], path, max_configurations=10)
    assert found.verdict is Verdict.UNKNOWN
    assert found.reasons[0].endswith("10 configurations side by side were not enough (an element is put twice)")
