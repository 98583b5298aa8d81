"""Certificates of cycles that rest on what was assumed of versions: each step needs what shows it."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from checkers.api.plan import CheckRequest
from checkers.in_process.engine import InProcessEngine
from checkers.transactions.checker import RwRegister
from checkers.transactions.elle.rw_register import Assumption
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.transactions.verify import Refuted, read_history, verified
from checkers.transactions.verify.assumptions import Assumptions
from checkers.transactions.verify.observations import Observations
from results.output import write
from tests.references.history_language import write_rows
from tests.references.transaction_histories import history_rows, parsed

FRACTURED = "[0,1] w(x,1)\n [2,5] w(x,2) w(y,5)\n [3,4] r(x,1) r(y,5)"
"""0 and 2 wrote x one after the other; 3 saw y of 2, and not its x."""

STALE = "[0,1] w(x,1) | [2,3] w(x,2)\n [4,5] r(x,2) | [6,7] r(x,1)"
"""One session wrote 1 and then 2, the other read 2 and then 1."""

READ_AND_WRITTEN = "[0,1] r(x,1) w(x,2)\n [2,3] r(x,2) w(x,1)"


def written(text: str, directory: Path) -> Path:
    return write_rows(history_rows(parsed(text)), TRANSACTION, directory / "history.parquet")


def certified(text: str, model: str, assumed: str, directory: Path) -> Any:
    """By the checker, and verified."""
    history, path = written(text, directory), directory / "certificate.json"
    checker = RwRegister(model=ConsistencyModel(model), assume=frozenset({Assumption(assumed)}))
    said = checker.certify(CheckRequest(history=history), InProcessEngine(), partial(write, path))
    certificate = json.loads(path.read_text())
    verified(certificate, history)
    if "cycle" in certificate:
        assert said == f"cycle     {certificate['cycle']}, assuming {assumed},"
    return certificate


LINKED = {"versions": [1, 2], "because": "linearizable-keys", "transactions": [0, 2]}


def test_a_cycle_states_what_each_step_rests_on(tmp_path: Path) -> None:
    assert certified(FRACTURED, "snapshot-isolation", "linearizable-keys", tmp_path) == {
        "model": "snapshot-isolation",
        "workload": "rw-register",
        "verdict": "invalid",
        "assume": ["linearizable-keys"],
        "assumed": ["linearizable-keys"],
        "cycle": "G-single-item",
        "steps": [
            {"kind": "wr", "source": 2, "target": 3, "key": "y"},
            {"kind": "rw", "source": 3, "target": 2, "key": "x", **LINKED},
        ],
    }


def test_so_does_a_cycle_of_versions(tmp_path: Path) -> None:
    certificate = certified(STALE, "read-uncommitted", "sequential-keys", tmp_path)
    assert certificate["cycle"] == "cyclic-versions" and certificate["assumed"] == ["sequential-keys"]
    assert sorted(certificate["steps"], key=str) == [
        {"key": "x", "versions": [1, 2], "because": "sequential-keys", "transactions": [0, 2]},
        {"key": "x", "versions": [2, 1], "because": "sequential-keys", "transactions": [4, 6]},
    ]


def test_what_a_transaction_read_and_wrote_orders_versions(tmp_path: Path) -> None:
    certificate = certified(READ_AND_WRITTEN, "read-uncommitted", "wfr-keys", tmp_path)
    assert [step["transactions"] for step in sorted(certificate["steps"], key=str)] == [[0], [2]]


def test_what_holds_without_assumptions_is_proved_without_them(tmp_path: Path) -> None:
    certificate = certified("r(x,-) r(y,-) w(x,1)\n r(x,-) r(y,-) w(y,1)", "serializable", "wfr-keys", tmp_path)
    assert "proof" in certificate and "assumed" not in certificate


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"assumed": []}, "step 1: 'linearizable-keys' is nothing that was assumed"),
        ({"assumed": ["sequential-keys"]}, "['sequential-keys'] was not asked for"),
        ({"assume": ["sequential-keys", "wfr-keys"]}, "['linearizable-keys'] was not asked for"),
        ({"assumed": ["realtime"]}, "are no assumptions"),
        ({"assumed": None}, "are no assumptions"),
        ({"model": "causal"}, "this model does not forbid G-single-item"),
        ({"cycle": "G0"}, "the cycle is G-single-item, not 'G0'"),
        ({"cycle": "cyclic-versions"}, "step 0: it does not name two versions"),
        ({"workload": "list-append"}, "micro-operations of this workload are not w"),
        ({"verdict": "valid", "order": [0, 2, 4]}, "only cycles rest on assumptions"),
        ({"steps": []}, "there are no steps"),
        ({0: {"kind": "rw"}}, "step 0: it does not name two versions"),
        ({0: {"kind": "process"}}, "step 0: not of one process"),
        ({0: {"source": 0}}, "step 0: 3 did not read y from 0"),
        ({0: {"target": 2}}, "step 0: it leads nowhere"),
        ({0: {"kind": "realtime"}}, "step 0: 2 had not ended when 3 began"),
        ({0: {"source": 0, "target": 2, "kind": "realtime"}}, "the steps are no cycle"),
        ({1: {"kind": "ww"}}, "step 1: 3 did not leave 1 there"),
        ({1: {"source": 0}}, "step 1: 0 did not read that"),
        ({1: {"target": 0}}, "step 1: 0 did not leave 2 there"),
        ({1: {"key": "y"}}, "step 1: y had no version 1"),
        ({1: {"versions": [2, 1]}}, "step 1: linearizable-keys does not put 2 before 1"),
        ({1: {"versions": [None, 2]}}, "does not put the initial version before 2"),
        ({1: {"versions": [2, 2]}}, "step 1: not two versions"),
        ({1: {"versions": [1, 7]}}, "step 1: x had no version 7"),
        ({1: {"because": "initial", "transactions": []}}, "step 1: initial does not put 1 before 2"),
        ({1: {"transactions": [2, 0]}}, "step 1: 2 had not ended when 0 began"),
        ({1: {"transactions": [0]}}, "does not put 1 before 2"),
        ({1: {"transactions": [0, 7]}}, "step 1: 7 is not the history index of an invocation"),
    ],
)
def test_every_changed_or_missing_fact_of_a_cycle_is_refuted(
    change: dict[Any, Any], reason: str, tmp_path: Path
) -> None:
    certificate = certified(FRACTURED, "serializable", "linearizable-keys", tmp_path)
    steps = [step | change.get(number, {}) for number, step in enumerate(certificate["steps"])]
    forged = certificate | {"steps": steps} | {name: value for name, value in change.items() if isinstance(name, str)}
    with pytest.raises(Refuted, match=re.escape(reason)):
        verified(forged, tmp_path / "history.parquet")


LOOKED_TWICE = "[0,1] r(x,1) r(x,2) w(x,3)\n [2,5] w(x,1)\n [3,4] w(x,2)"

PRECEDING: list[tuple[str, str, list[int | None], list[int], str]] = [
    (STALE, "initial", [None, 1], [], ""),
    (STALE, "initial", [None, 1], [0], "initial does not put the initial version before 1"),
    (READ_AND_WRITTEN, "wfr-keys", [1, 2], [0], ""),
    (READ_AND_WRITTEN, "wfr-keys", [1, 2], [2], "wfr-keys does not put 1 before 2"),
    (READ_AND_WRITTEN, "wfr-keys", [1, 2], [0, 2], "wfr-keys does not put 1 before 2"),
    (READ_AND_WRITTEN, "wfr-keys", [1, 2], [], "wfr-keys does not put 1 before 2"),
    (LOOKED_TWICE, "wfr-keys", [1, 3], [0], ""),
    (LOOKED_TWICE, "wfr-keys", [2, 3], [0], "wfr-keys does not put 2 before 3"),
    (LOOKED_TWICE, "wfr-keys", [1, 2], [0], "wfr-keys does not put 1 before 2"),
    (STALE, "sequential-keys", [1, 2], [0, 2], ""),
    (STALE, "sequential-keys", [2, 1], [4, 6], ""),
    (STALE, "sequential-keys", [1, 2], [2, 0], "2 had not ended when 0 began"),
    (STALE, "sequential-keys", [1, 2], [0, 4], "sequential-keys does not put 1 before 2"),
    (STALE, "sequential-keys", [1, 2], [0], "sequential-keys does not put 1 before 2"),
    (STALE, "sequential-keys", [1, 2], [0, 2, 2], "sequential-keys does not put 1 before 2"),
    (STALE, "linearizable-keys", [1, 2], [0, 4], ""),
    (STALE, "linearizable-keys", [2, 1], [2, 6], ""),
    (STALE, "linearizable-keys", [2, 1], [0, 4], "linearizable-keys does not put 2 before 1"),
    (STALE, "linearizable-keys", [None, 2], [0, 2], "does not put the initial version before 2"),
    (STALE, "linearizable-keys", [1, 2], [0], "linearizable-keys does not put 1 before 2"),
    (STALE, "linearizable-keys", [1, 2], [0, 2, 2], "linearizable-keys does not put 1 before 2"),
]
"""What transactions did, what is assumed, two versions of x, who shows that the one precedes the other, and what is
wrong with that, if anything is."""


@pytest.mark.parametrize(("text", "assumed", "versions", "transactions", "wrong"), PRECEDING)
def test_what_is_assumed_puts_one_version_before_another(
    text: str, assumed: str, versions: list[int | None], transactions: list[int], wrong: str, tmp_path: Path
) -> None:
    history = read_history(written(text, tmp_path), lists=False)
    assumptions = Assumptions(observations=Observations(history=history), assumed=frozenset({assumed}))
    before, after = versions
    if not wrong:
        assumptions.require_precedes(history.key_named("x"), before, after, assumed, transactions)
        return
    with pytest.raises(Refuted, match=wrong):
        assumptions.require_precedes(history.key_named("x"), before, after, assumed, transactions)


def test_sessions_count_where_the_model_keeps_them(tmp_path: Path) -> None:
    text = "[0,1] w(x,1) | [6,7] w(x,2) w(y,5)\n [2,3] r(y,5) | [4,5] r(x,-)"
    certificate = certified(text, "strong-session-serializable", "sequential-keys", tmp_path)
    assert "proof" in certificate
    steps = [
        {"kind": "process", "source": 0, "target": 6},
        {"kind": "wr", "source": 6, "target": 2, "key": "y"},
        {"kind": "process", "source": 2, "target": 4},
        {"kind": "rw", "source": 4, "target": 0, "key": "x"}
        | {"versions": [None, 1], "because": "initial", "transactions": []},
    ]
    cycle = {"workload": "rw-register", "verdict": "invalid", "assumed": [], "steps": steps}
    history, name = tmp_path / "history.parquet", "G-single-item-process"
    for model in ("strong-session-serializable", "strict-serializable", "strong-session-parallel-snapshot-isolation"):
        verified(cycle | {"model": model, "cycle": name}, history)
    for model in ("serializable", "snapshot-isolation", "parallel-snapshot-isolation", "causal", "read-uncommitted"):
        with pytest.raises(Refuted, match=f"this model does not forbid {name}"):
            verified(cycle | {"model": model, "cycle": name}, history)


@pytest.mark.parametrize(("text", "assumed"), [(FRACTURED, "linearizable-keys"), (STALE, "sequential-keys")])
def test_content_of_any_wrong_kind_is_refuted_and_breaks_nothing(text: str, assumed: str, tmp_path: Path) -> None:
    certificate, history = certified(text, "serializable", assumed, tmp_path), tmp_path / "history.parquet"
    junk = [None, True, -1, 10**30, 1.5, "x", [], [[]], [None], [0, None], {}, [{}], [True, 2], ["wfr-keys"], [[], []]]
    for value in junk:
        for name in certificate:
            with pytest.raises(Refuted):
                verified(certificate | {name: value}, history)
        for number, step in enumerate(certificate["steps"]):
            for name in step:
                if step[name] == value:
                    continue
                steps = [*certificate["steps"][:number], step | {name: value}, *certificate["steps"][number + 1 :]]
                with pytest.raises(Refuted):
                    verified(certificate | {"steps": steps}, history)
