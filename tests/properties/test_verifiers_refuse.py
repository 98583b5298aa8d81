"""The two programs that verify certificates answer any input in one line, and with an exit code that says what it is.

0 holds, 3 refuted, 254 no such file or not what is needed. They never fail, and no order that was tampered with holds.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.in_process.engine import InProcessEngine
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.objects import MODELS
from checkers.linearizable.replay.__main__ import main as replay
from checkers.linearizable.replay.objects import OBJECTS
from checkers.transactions.checker import ListAppend, RwRegister
from checkers.transactions.elle.rw_register import Assumption
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.transactions.verify.__main__ import main as verify
from harness.record.history import history_schema
from results.output import write
from tests.references.history_language import write_rows
from tests.references.transaction_histories import history_rows, parsed

HOLDS, REFUTED, WRONG_USAGE = 0, 3, 254
WEIRD = (None, True, -1, 0, 10**30, 1.5, float("nan"), "", "b0", "x\n\x1b[2J", [], [[]], [None], {}, {"a": 1})
STRANGE_BYTES = (
    b"",
    b"\x00" * 64,
    b"\xff\xfe{",
    b"PAR1",
    b"[]",
    b"7",
    b"null",
    b'"x"',
    b"{}",
    b"{",
    b"9" * 5000,
    b"[" * 9999,
)
TEXTS = {
    "order": ("w(x,1)\n r(x,1) w(x,2)\n r(x,2)", ConsistencyModel.SERIALIZABLE, ()),
    "events": ("w(x,1)\n r(x,1) w(y,2)\n r(y,2)", ConsistencyModel.SNAPSHOT_ISOLATION, ()),
    "proof": ("r(x,-) w(y,1)\n r(y,-) w(x,1)\n r(x,1) r(y,1)", ConsistencyModel.SERIALIZABLE, ()),
    "anomaly": ("w(x,1)\n r(x,1) w(x,2)\n r(x,1) w(x,3)", ConsistencyModel.SERIALIZABLE, ()),
    "cycle": (
        "[0,1] w(x,1) | [2,3] w(x,2)\n [4,5] r(x,2) | [6,7] r(x,1)",
        ConsistencyModel.SERIALIZABLE,
        ("linearizable-keys",),
    ),
}

Answer = tuple[int, str]
Program = Callable[[Sequence[str | Path]], Answer]


def program(main: Callable[[Sequence[str]], int], capsys: pytest.CaptureFixture[str]) -> Program:
    """Its exit code and its one line."""

    def run(arguments: Sequence[str | Path]) -> Answer:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        (line,) = (out + err).splitlines()
        assert code in (HOLDS, REFUTED, WRONG_USAGE), line
        assert bool(out) is (code != WRONG_USAGE)
        assert line.startswith("refuted: ") is (code == REFUTED)
        return code, line

    return run


@pytest.fixture
def replaying(capsys: pytest.CaptureFixture[str]) -> Program:
    return program(replay, capsys)


@pytest.fixture
def verifying(capsys: pytest.CaptureFixture[str]) -> Program:
    return program(verify, capsys)


def objects(path: Path, *events: tuple[str, Any, Any]) -> Path:
    """Operations one after the other: f, argument, result."""
    rows = [
        {"index": 2 * number + at, "time": 2 * number + at, "process": 0, "type": kind, "f": f, "key": "k",
         "value": {"json": json.dumps(value)}}
        for number, (f, argument, result) in enumerate(events)
        for at, (kind, value) in enumerate((("invoke", argument), ("ok", result)))
    ]  # fmt: skip
    value = pa.struct([pa.field("json", pa.string())])
    pq.write_table(pa.Table.from_pylist(rows, schema=history_schema(value)), path)
    return path


def certified(checker: Any, history: Path) -> Path:
    path = history.with_suffix(".certificate")
    checker.certify(CheckRequest(history=history), InProcessEngine(), partial(write, path))
    return path


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    return objects(tmp_path / "queue.parquet", ("enqueue", 1, 1), ("enqueue", 2, 2), ("dequeue", None, 1))


@pytest.fixture(params=TEXTS)
def transactions(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A history with its certificate, of each kind, beside it."""
    text, model, assumed = TEXTS[request.param]
    path = write_rows(history_rows(parsed(text)), TRANSACTION, tmp_path / "history.parquet")
    checker = RwRegister(model=model, assume=frozenset(map(Assumption, assumed)))
    stated = json.loads(certified(checker, path).read_text())
    assert {"events": "order"}.get(request.param, request.param) in stated
    return path


def mutated(data: Any) -> Iterator[Any]:
    """The data with one of its parts, in turn, replaced by something weird, taken out, or doubled."""
    for path in _parts(data, ()):
        for weird in WEIRD:
            yield _changed(data, path, lambda container, at, weird=weird: container.__setitem__(at, weird))
        if path:
            yield _changed(data, path, lambda container, at: container.__delitem__(at))
            yield _changed(data, path, _doubled)


def _parts(data: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for at, part in items:
        yield from _parts(part, (*path, at))


def _changed(data: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    whole = [copy.deepcopy(data)]
    container: Any = whole
    *before, at = (0, *path)
    for step in before:
        container = container[step]
    change(container, at)
    return whole[0] if whole else None


def _doubled(container: Any, at: Any) -> None:
    if isinstance(container, list):
        container.insert(at, container[at])


def strange_files(good: Path, folder: Path) -> Iterator[Path]:
    """Whatever may be named by mistake."""
    whole = good.read_bytes()
    path = folder / "strange"
    for content in (*STRANGE_BYTES, *(whole[:size] for size in range(0, len(whole) - 2, max(1, len(whole) // 40)))):
        path.write_bytes(content)
        yield path
    path.write_bytes(b"{")
    os.truncate(path, 1 << 40)
    yield path
    path.unlink()
    yield path
    path.mkdir()
    yield path
    path.rmdir()
    os.mkfifo(path)
    yield path
    path.unlink()
    path.symlink_to("strange")
    yield path
    path.unlink()
    yield Path("/dev/null")
    yield Path("/dev/zero")
    yield path / ("n" * 300)


def test_orders_that_hold_need_no_option_again_and_contradictions_are_named(replaying: Program, tmp_path: Path) -> None:
    history = objects(tmp_path / "cas.parquet", ("read", None, 7), ("cas", [7, 8], [7, 8]))
    model = MODELS["cas-register"].beginning_with(7)
    certificate = certified(Linearizable(replace(model, initial_json="7")), history)
    assert replaying([history, certificate]) == (HOLDS, "1 order holds")
    assert replaying([history, certificate, "cas-register", "--initial", "7", "--failed-cas", "ignored"])[0] == HOLDS
    for options, words in (
        (["register"], "the certificate is of model cas-register, not of register: leave model out"),
        (["--initial", "8"], "by the certificate it begins with 7, not with 8: leave --initial out"),
        (["--initial", "null"], "by the certificate it begins with 7, not with null: leave --initial out"),
        (["--failed-cas", "answer"], "the certificate is of failed-cas ignored, not of answer: leave --failed-cas out"),
        (["--initial", "{"], "takes a value as JSON, e.g. 0 or null, got '{'"),
        (["light"], "the certificate is of model cas-register, not of light: leave model out"),
    ):
        code, line = replaying([history, certificate, *options])
        assert (code, words in line) == (WRONG_USAGE, True), line
    for arguments in ([], [history], [history, certificate, "register", "more"], ["--nonsense"]):
        assert replaying(arguments)[0] == WRONG_USAGE


def test_whether_a_failed_cas_is_in_the_order_is_what_the_certificate_says(replaying: Program, tmp_path: Path) -> None:
    rows = [
        {"index": index, "time": index, "process": 0, "type": kind, "f": "cas", "key": "k", "value": {"json": "[2, 3]"}}
        for index, kind in enumerate(("invoke", "fail"))
    ]
    history, certificate = tmp_path / "cas.parquet", tmp_path / "certificate"
    schema = history_schema(pa.struct([pa.field("json", pa.string())]))
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), history)
    for failed_cas, order, answer in (
        ("answer", [0], (HOLDS, "1 order holds")),
        ("answer", [], (REFUTED, "refuted: k: 0 is missing")),
        ("ignored", [0], (REFUTED, "refuted: k: 0 failed")),
        ("ignored", [], (HOLDS, "1 order holds")),
    ):
        head = {"model": "cas-register", "failed_cas": failed_cas, "initial": 7}
        certificate.write_text(f"{json.dumps(head)}\n{json.dumps({'key': 'k', 'order': order})}\n")
        assert replaying([history, certificate]) == answer


@pytest.mark.parametrize(
    ("column", "wrong"),
    [
        ("index", pa.array([None] * 6, pa.int64())),
        ("process", pa.array(["zero"] * 6)),
        ("key", pa.array([7] * 6)),
        ("type", pa.array(["begin"] * 6)),
    ],
)
def test_a_row_that_lacks_what_names_an_operation_is_none(
    replaying: Program, queue: Path, tmp_path: Path, column: str, wrong: pa.Array
) -> None:
    orders, whole = certified(Linearizable(MODELS["fifo-queue"]), queue), pq.read_table(queue)
    pq.write_table(whole.set_column(whole.column_names.index(column), column, wrong), tmp_path / "wrong.parquet")
    code, line = replaying([tmp_path / "wrong.parquet", orders])
    assert (code, "wrong.parquet is no history: row " in line) == (WRONG_USAGE, True), line


def test_orders_without_their_model_as_older_versions_wrote_them_need_it(replaying: Program, queue: Path) -> None:
    certificate = certified(Linearizable(MODELS["fifo-queue"]), queue)
    certificate.write_text(certificate.read_text().split("\n", 1)[1])
    assert replaying([queue, certificate, "fifo-queue"]) == (HOLDS, "1 order holds")
    code, line = replaying([queue, certificate])
    assert (code, "does not name its model" in line) == (WRONG_USAGE, True)


def test_whatever_file_is_named_is_answered_in_a_line(
    replaying: Program, verifying: Program, queue: Path, transactions: Path, tmp_path: Path
) -> None:
    orders, proof = certified(Linearizable(MODELS["fifo-queue"]), queue), transactions.with_suffix(".certificate")
    for path in strange_files(queue, tmp_path):
        assert replaying([path, orders])[0] == WRONG_USAGE
        assert verifying([proof, path])[0] == WRONG_USAGE
    for path in strange_files(orders, tmp_path):
        assert replaying([queue, path])[0] != HOLDS
    for path in strange_files(proof, tmp_path):
        assert verifying([path, transactions])[0] == WRONG_USAGE
    assert replaying([orders, queue])[0] == WRONG_USAGE
    assert verifying([transactions, proof])[0] == WRONG_USAGE
    assert replaying([transactions, orders])[0] == WRONG_USAGE
    assert replaying([queue, proof])[0] == WRONG_USAGE
    assert verifying([orders, transactions])[0] == WRONG_USAGE
    assert verifying([proof, queue])[0] != HOLDS


def test_no_order_that_was_tampered_with_holds(replaying: Program, queue: Path) -> None:
    certificate = certified(Linearizable(MODELS["fifo-queue"]), queue)
    head, order = map(json.loads, certificate.read_text().splitlines())
    seen = set()
    for changed in mutated(order):
        if changed != order:
            certificate.write_text(f"{json.dumps(head)}\n{json.dumps(changed)}\n")
            seen.add(replaying([queue, certificate])[0])
    assert seen == {REFUTED, WRONG_USAGE}
    for changed in mutated(head):
        certificate.write_text(f"{json.dumps(changed)}\n{json.dumps(order)}\n")
        replaying([queue, certificate])


def test_a_certificate_of_another_history_is_refuted(replaying: Program, verifying: Program, tmp_path: Path) -> None:
    one = objects(tmp_path / "one.parquet", ("enqueue", 1, 1), ("dequeue", None, 1))
    other = objects(tmp_path / "other.parquet", ("enqueue", 1, 1), ("dequeue", None, 1), ("enqueue", 2, 2))
    orders = certified(Linearizable(MODELS["fifo-queue"]), one)
    assert replaying([other, orders]) == (REFUTED, "refuted: k: 4 is missing")
    longer = certified(Linearizable(MODELS["fifo-queue"]), other)
    assert replaying([one, longer]) == (REFUTED, "refuted: k: 4 is no invocation")
    for number, text in enumerate(("w(x,1)\n r(x,1)", "w(x,1)\n r(x,1)\n w(y,1)")):
        write_rows(history_rows(parsed(text)), TRANSACTION, tmp_path / f"{number}.parquet")
    order = certified(RwRegister(), tmp_path / "0.parquet")
    assert verifying([order, tmp_path / "0.parquet"])[0] == HOLDS
    assert verifying([order, tmp_path / "1.parquet"])[0] == REFUTED


def test_a_key_that_the_history_lacks_refutes(replaying: Program, queue: Path) -> None:
    certificate = certified(Linearizable(MODELS["fifo-queue"]), queue)
    with certificate.open("a") as file:
        file.write('{"key": "other", "order": [0]}\n')
    assert replaying([queue, certificate]) == (REFUTED, "refuted: other: nothing in the history is on this key")


@pytest.mark.parametrize("model", OBJECTS)
def test_values_that_an_object_cannot_take_are_no_history_of_it(replaying: Program, tmp_path: Path, model: str) -> None:
    certificate = tmp_path / "certificate"
    for f in MODELS[model].functions:
        for number, argument in enumerate(WEIRD):
            history = objects(tmp_path / f"{f}-{number}.parquet", (f, argument, argument), (f, 1, "y"))
            for initial in ([], None, 5, "x", [1, "a"], {"a": []}):
                head = {"model": model, "failed_cas": "ignored", "initial": initial}
                certificate.write_text(f'{json.dumps(head)}\n{{"key": "k", "order": [0, 2]}}\n')
                replaying([history, certificate])
    history = objects(tmp_path / "foreign.parquet", ("dance", 1, 1))
    certificate.write_text('{"key": "k", "order": [0]}\n')
    code, line = replaying([history, certificate, model])
    assert (code, f"is no history of a {model}: nothing such is asked to dance" in line) == (WRONG_USAGE, True)


def test_no_change_of_a_certificate_crashes_the_verification(verifying: Program, transactions: Path) -> None:
    certificate = transactions.with_suffix(".certificate")
    stated = json.loads(certificate.read_text())
    assert verifying([certificate, transactions])[0] == HOLDS
    for changed in mutated(stated):
        certificate.write_text(json.dumps(changed))
        code, line = verifying([certificate, transactions])
        if code == HOLDS:
            assert changed.get("order") == stated.get("order"), line


def test_a_history_of_lists_is_none_of_registers(verifying: Program, tmp_path: Path) -> None:
    history = write_rows(history_rows(parsed("w(x,1)\n r(x,1)")), TRANSACTION, tmp_path / "history.parquet")
    certificate = certified(RwRegister(), history)
    stated = json.loads(certificate.read_text())
    certificate.write_text(json.dumps(stated | {"workload": ListAppend().name}))
    assert verifying([certificate, history])[0] == REFUTED
