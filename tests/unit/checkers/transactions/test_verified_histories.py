"""What the verification takes from a history: no more than it says, and at each model as much as that demands."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from checkers.api.plan import CheckRequest
from checkers.in_process.engine import InProcessEngine
from checkers.transactions.checker import ListAppend, RwRegister
from checkers.transactions.evidence.certificate import SHOWN_BY_READS
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel, forbidden
from checkers.transactions.verify import DEMANDS, Refuted, verified
from checkers.transactions.verify.witnesses import forbids
from results.output import write
from tests.references.history_language import write_rows
from tests.references.transaction_histories import history_rows, parsed


def written(text: str, directory: Path) -> Path:
    return write_rows(history_rows(parsed(text)), TRANSACTION, directory / "history.parquet")


def certified(history: Path, checker: ListAppend | RwRegister) -> Any:
    path = history.with_name("certificate.json")
    checker.certify(CheckRequest(history=history), InProcessEngine(), partial(write, path))
    return json.loads(path.read_text())


def anomaly(name: str, *transactions: int) -> dict[str, Any]:
    found = {"name": name, "key": "x", "transactions": list(transactions)}
    return {"model": "serializable", "workload": "rw-register", "verdict": "invalid", "anomaly": found}


def test_each_model_forbids_the_anomalies_that_the_lattice_says() -> None:
    assert set(DEMANDS) - {model.value for model in ConsistencyModel} == {"strong-session-PL-2"}
    for model in ConsistencyModel:
        for name in SHOWN_BY_READS:
            assert forbids(DEMANDS[model.value], name) == (name in forbidden(model)), (model, name)


@pytest.mark.parametrize(
    ("name", "text", "transactions"),
    [
        ("G1a", "w(x,1) !\n w(x,1)\n r(x,1)", (0, 2)),
        ("G1b", "w(x,1) w(x,2)\n w(x,1)\n r(x,1)", (0, 2)),
        ("lost-update", "w(x,1)\n w(x,1)\n r(x,1) w(x,2)\n r(x,1) w(x,3)", (2, 3)),
    ],
)
def test_a_value_that_was_written_twice_shows_nothing(
    name: str, text: str, transactions: tuple[int, ...], tmp_path: Path
) -> None:
    with pytest.raises(Refuted, match="x was written as 1 more than once"):
        verified(anomaly(name, *transactions), written(text, tmp_path))


OWN_WRITE_UNREAD = ("w(x,1) r(x,2)\n w(x,2)", "w(x,1) r(x,-)", "a(x,1) r(x,[2])\n a(x,2)", "a(x,1) r(x,[])\n r(x,[1])")


@pytest.mark.parametrize("text", OWN_WRITE_UNREAD)
def test_reads_against_own_writes_are_judged_by_atomic_models_alone(text: str, tmp_path: Path) -> None:
    history = written(text, tmp_path)
    for model in (
        ConsistencyModel.PL_2,
        ConsistencyModel.PRAM,
        ConsistencyModel.CONSISTENT_VIEW,
        ConsistencyModel.REPEATABLE_READ,
        ConsistencyModel.READ_ATOMIC,
    ):
        certificate = certified(history, ListAppend(model=model) if "a(" in text else RwRegister(model=model))
        assert certificate["verdict"] == ("invalid" if model is ConsistencyModel.READ_ATOMIC else "valid")
        verified(certificate, history)
        order = {"verdict": "valid", "order": [0, 1][: text.count("\n") + 1]}
        if model is ConsistencyModel.READ_ATOMIC:
            with pytest.raises(Refuted):
                verified(certificate | order, history)
        else:
            with pytest.raises(Refuted, match="this model does not forbid internal"):
                verified(
                    certificate | anomaly("internal", 0) | {key: certificate[key] for key in ("model", "workload")},
                    history,
                )


def test_lists_behind_own_appends_show_the_order_of_versions_all_the_same(tmp_path: Path) -> None:
    history = written("a(x,1) r(x,[2])\n a(x,2)", tmp_path)
    certificate = {"model": "repeatable-read", "workload": "list-append", "verdict": "valid", "order": [1, 0]}
    verified(certificate, history)
    with pytest.raises(Refuted, match="0 could not have read what it read of x"):
        verified(certificate | {"order": [0, 1]}, history)


def test_a_completion_without_a_value_is_no_read_of_the_initial_value(tmp_path: Path) -> None:
    rows = history_rows(parsed("[0,1] w(x,1)\n [2,3] r(x,1)"))
    rows[3]["value"] = None
    history = write_rows(rows, TRANSACTION, tmp_path / "history.parquet")
    verified(certified(history, RwRegister()), history)
    unread = {"kind": "rw", "source": 2, "target": 0, "key": "x", "versions": [None, 1]}
    steps = [{"kind": "realtime", "source": 0, "target": 2}, unread | {"because": "initial", "transactions": []}]
    cycle = {"model": "strict-serializable", "workload": "rw-register", "verdict": "invalid", "assumed": []}
    with pytest.raises(Refuted, match="step 1: 2 did not read that"):
        verified(cycle | {"cycle": "G-single-item-realtime", "steps": steps}, history)


def test_a_register_is_not_read_as_a_list(tmp_path: Path) -> None:
    order = {"model": "serializable", "verdict": "valid", "order": [0]}
    with pytest.raises(Refuted, match="something else than a register was read"):
        verified(order | {"workload": "rw-register"}, written("r(x,[1])", tmp_path))
    with pytest.raises(Refuted, match="something else than a list was read"):
        verified(order | {"workload": "list-append"}, written("r(x,1)", tmp_path))


def test_names_of_any_length_are_refuted(tmp_path: Path) -> None:
    history, far = written("w(x,1)", tmp_path), "b" + "9" * 10_000
    certificate = {"model": "snapshot-isolation", "workload": "rw-register"}
    with pytest.raises(Refuted, match="is not the history index of an invocation"):
        verified(certificate | {"verdict": "valid", "order": [far]}, history)
    steps = [{"source": far, "target": far, "because": "inside"}]
    with pytest.raises(Refuted, match="is not the history index of an invocation"):
        verified(
            certificate | {"verdict": "invalid", "proof": [{"within": None, "steps": steps, "cycle": [0]}]}, history
        )


def test_begins_and_commits_of_transactions_that_never_ended_are_certified(tmp_path: Path) -> None:
    history = write_rows(
        [row for row in history_rows(parsed("w(x,1) ?\n w(y,1) ?\n r(x,1) r(y,1)")) if row["type"] != "info"],
        TRANSACTION,
        tmp_path / "history.parquet",
    )
    certificate = certified(history, RwRegister(model=ConsistencyModel.SNAPSHOT_ISOLATION))
    assert len(certificate["order"]) == 6
    verified(certificate, history)


G0 = "a(x,1) a(y,1)\n a(x,2) a(y,2)\n r(x,[1,2]) r(y,[2,1])"
OUT_OF_SESSION = "[0,1] a(x,1) | [2,3] a(x,2)\n [4,5] r(x,[2,1])"


def test_read_uncommitted_orders_writes_and_nothing_else(tmp_path: Path) -> None:
    uncommitted, of_sessions = ConsistencyModel.READ_UNCOMMITTED, ConsistencyModel.STRONG_SESSION_READ_UNCOMMITTED
    history = written(OUT_OF_SESSION, tmp_path)
    certificate = certified(history, ListAppend(model=uncommitted))
    verified(certificate, history)
    assert certificate["order"].index(2) < certificate["order"].index(0)
    with pytest.raises(Refuted, match="a list of x was read that shows another order of 2"):
        verified(certificate | {"order": [0, 2, 4]}, history)
    with pytest.raises(Refuted, match="0 had ended before 2 began"):
        verified(certificate | {"model": of_sessions.value}, history)
    for text, model in ((OUT_OF_SESSION, of_sessions), (G0, uncommitted)):
        history = written(text, tmp_path)
        certificate = certified(history, ListAppend(model=model))
        assert "proof" in certificate
        verified(certificate, history)


def test_read_uncommitted_demands_nothing_of_what_is_read_but_that_it_was_written(tmp_path: Path) -> None:
    of_registers = {"model": "read-uncommitted", "workload": "rw-register"}
    order = of_registers | {"verdict": "valid", "order": [0, 1]}
    verified(order, written("r(x,1)\n w(x,1)", tmp_path))
    with pytest.raises(Refuted, match="x was read as 2, which nobody wrote"):
        verified(order, written("r(x,2)\n w(x,1)", tmp_path))
    with pytest.raises(Refuted, match="a list was read with one element twice"):
        verified(order | {"workload": "list-append"}, written("r(x,[1,1])\n a(x,1)", tmp_path))
    steps = [
        {"source": 1, "target": 0, "because": "read", "key": "x"},
        {"source": 0, "target": 1, "because": "read", "key": "y"},
    ]
    history = written("r(x,1) w(y,1)\n w(x,1) r(y,1)", tmp_path)
    proof = {"verdict": "invalid", "proof": [{"within": None, "steps": steps, "cycle": [0, 1]}]}
    verified(of_registers | proof | {"model": "PL-2"}, history)
    with pytest.raises(Refuted, match="step 0 may not be taken because of 'read'"):
        verified(of_registers | proof, history)
