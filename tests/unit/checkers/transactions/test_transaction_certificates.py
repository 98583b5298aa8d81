"""Certificates of transactions: what is written is verified, and nothing else is."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import Verdict
from checkers.transactions.evidence.certificate import (
    SHOWN_BY_READS,
    Names,
    Undecided,
    certificate,
    certificate_of_anomaly,
)
from checkers.transactions.evidence.encoded_proof import decoded_proof, encoded_proof
from checkers.transactions.evidence.proof import Because, Decision, Proof, ProofStep
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.verify import Refuted, verified
from tests.references.history_language import write_rows
from tests.references.transaction_histories import committed_of, history_rows, parsed

ROOT = Path(__file__).resolve().parents[4]

WRITE_SKEW = "r(x,-) r(y,-) w(x,1)\n r(x,-) r(y,-) w(y,1)"
"""Transactions 1 and 2, invoked at 0 and 1; the keys are x and y."""

EITHER_ORDER = "w(x,1)\n w(x,2)\n r(x,1) r(y,-)\n r(x,2) r(y,-)\n r(x,1) w(y,1)\n r(x,2) w(y,2)"
LONG_FORK = "a(x,1)\n a(y,1)\n r(x,[1]) r(y,[])\n r(x,[]) r(y,[1])"


def names(text: str, model: str) -> Names:
    lists = "a(" in text
    committed = committed_of(parsed(text))
    keys = sorted({key for t in parsed(text) for _, key, _ in t.operations})
    return Names(model=model, workload="list-append" if lists else "rw-register", start=committed.start, keys=keys)


def written(text: str, directory: Path) -> Path:
    return write_rows(history_rows(parsed(text)), TRANSACTION, directory / "history.parquet")


def valid(order: list[int]) -> Decision:
    return Decision(verdict=Verdict.VALID, order=np.array(order, dtype=np.int32))


def invalid(*steps: ProofStep, cycle: tuple[int, ...]) -> Decision:
    return Decision(verdict=Verdict.INVALID, proof=Proof(steps=steps, cycle=cycle))


def overwrites(reader: int, key: int, u: int) -> ProofStep:
    """u wrote what `reader` still saw as the initial version; step 0 or 1 puts INITIAL before u."""
    return ProofStep(
        source=reader, target=u, because=Because.OVERWRITES, key=key, reader=reader, writer=0, path=(u - 1,)
    )


SKEWED = invalid(
    ProofStep(source=0, target=1, because=Because.INITIAL),
    ProofStep(source=0, target=2, because=Because.INITIAL),
    overwrites(1, 1, 2),
    overwrites(2, 0, 1),
    cycle=(2, 3),
)


def plain(decision: Decision, names: Names) -> Any:
    return json.loads(certificate(decision, names))


def test_an_order_names_transactions_by_their_invocations(tmp_path: Path) -> None:
    text = "w(x,1)\n r(x,1)\n r(x,-)"
    certificate = plain(valid([0, 3, 1, 2]), names(text, "serializable"))
    assert certificate == {"model": "serializable", "workload": "rw-register", "verdict": "valid", "order": [2, 0, 1]}
    verified(certificate, written(text, tmp_path))
    with pytest.raises(Refuted, match="1 could not have read what it read of x"):
        verified(certificate | {"order": [2, 1, 0]}, tmp_path / "history.parquet")


def test_an_order_of_events_shows_write_skew_at_snapshot_isolation(tmp_path: Path) -> None:
    order = plain(valid([0, 1, 2, 4, 3, 5]), names(WRITE_SKEW, "snapshot-isolation"))
    assert order["order"] == ["b0", "b1", "c0", "c1"]
    history = written(WRITE_SKEW, tmp_path)
    verified(order, history)
    with pytest.raises(Refuted, match="1 could not have read what it read of x"):
        verified(order | {"order": ["b0", "c0", "b1", "c1"]}, history)


def test_a_proof_is_followed_step_by_step(tmp_path: Path) -> None:
    history = written(WRITE_SKEW, tmp_path)
    certificate = plain(SKEWED, names(WRITE_SKEW, "serializable"))
    verified(certificate, history)
    assert certificate["proof"][0]["steps"][2] == {
        "source": 0,
        "target": 1,
        "because": "overwrites",
        "key": "y",
        "reader": 0,
        "writer": -1,
        "path": [1],
    }
    for missing in range(4):
        steps = [step for number, step in enumerate(certificate["proof"][0]["steps"]) if number != missing]
        with pytest.raises(Refuted):
            verified(certificate | {"proof": [certificate["proof"][0] | {"steps": steps}]}, history)
    with pytest.raises(Refuted, match="a reader need not precede the next writer"):
        verified(certificate | {"model": "causal"}, history)


def cases() -> Decision:
    """At serializability 3 and 5 (they read x from 1) are on one side of 2 and its readers, whichever comes first, and
    y was written on each side before it was read as never written. The history says more; that is not needed."""
    first = 0
    reads = [ProofStep(source=w, target=r, because=Because.READ, key=0) for w, r in ((1, 3), (2, 4), (1, 5), (2, 6))]
    initial = [ProofStep(source=0, target=t, because=Because.INITIAL) for t in (5, 6)]
    base = [*reads, *initial]
    before = [
        ProofStep(source=3, target=6, because=Because.OVERWRITES, key=1, reader=3, writer=0, path=(5,)),
        ProofStep(source=4, target=5, because=Because.OVERWRITES, key=1, reader=4, writer=0, path=(4,)),
    ]
    n = first + len(base) + len(before)
    one = Proof(
        steps=(
            ProofStep(source=1, target=2, because=Because.CASE, key=0),
            ProofStep(source=5, target=2, because=Because.OVERWRITES, key=0, reader=5, writer=1, path=(n,)),
        ),
        cycle=(n + 1, 1, 7),
    )
    other = Proof(
        steps=(
            ProofStep(source=2, target=1, because=Because.CASE, key=0),
            ProofStep(source=6, target=1, because=Because.OVERWRITES, key=0, reader=6, writer=2, path=(n,)),
        ),
        cycle=(n + 1, 0, 6),
    )
    return Decision(verdict=Verdict.INVALID, proof=Proof(steps=(*base, *before), cases=(one, other)))


def test_cases_are_both_needed_and_leave_nothing_out(tmp_path: Path) -> None:
    history = written(EITHER_ORDER, tmp_path)
    certificate = plain(cases(), names(EITHER_ORDER, "serializable"))
    assert [block["within"] for block in certificate["proof"]] == [None, 0, 0]
    verified(certificate, history)
    whole, one, other = certificate["proof"]
    for forged in (
        [whole],
        [whole, one],
        [whole, one, one],
        [whole, one, other, other],
        [one, other],
        [whole, one, {**other, "within": 1}],
        [whole, one, {**other, "steps": other["steps"][1:]}],
        [{**whole, "steps": [*whole["steps"], one["steps"][0]]}, one, other],
        [whole, {**one, "within": None}, other],
    ):
        with pytest.raises(Refuted):
            verified(certificate | {"proof": forged}, history)


def test_a_proof_on_its_way_loses_nothing_but_what_it_is_not_about() -> None:
    whole, start = cases().proof, np.array([-1, 0, 1, 2, 3, 4, 5])
    assert whole is not None
    on_its_way = decoded_proof(encoded_proof(whole, 1, start, np.array([10, 11])))
    assert (on_its_way.proof, on_its_way.start.tolist(), on_its_way.keys) == (whole, start.tolist(), (10, 11))

    def about(newest: int, key: int, reader: int) -> Proof:
        """At snapshot isolation, of the initial transaction, of one that read and of the newest one."""
        initial = ProofStep(source=1, target=2 * newest, because=Because.INITIAL)
        unseen = ProofStep(
            source=2, target=2 * newest + 1, because=Because.OVERWRITES, key=key, reader=reader, writer=0, path=(0,)
        )
        return Proof(steps=(initial, unseen), cycle=(0, 1))

    gapped = decoded_proof(encoded_proof(about(3, 2, 1), 2, start[:4], np.array([10, 11, 12])))
    assert (gapped.proof, gapped.start.tolist(), gapped.keys) == (about(2, 0, 1), [-1, 0, 2], (12,))
    by_another = decoded_proof(encoded_proof(about(3, 2, 4), 2, start[:5], np.array([10, 11, 12])))
    assert (by_another.proof, by_another.start.tolist()) == (about(2, 0, 3), [-1, 0, 2, 3])


def test_lists_show_the_order_of_their_writers(tmp_path: Path) -> None:
    text = "a(x,1)\n a(x,2)\n r(x,[1,2])"
    history = written(text, tmp_path)
    verified(plain(valid([0, 1, 2, 3]), names(text, "serializable")), history)
    against = invalid(ProofStep(source=2, target=1, because=Because.VERSION_ORDER, key=0), cycle=(0,))
    with pytest.raises(Refuted, match="step 0 \\(known\\): the longest list that was read does not show this order"):
        verified(plain(against, names(text, "serializable")), history)
    forked = written(LONG_FORK, tmp_path)
    verified(plain(valid([0, 1, 2, 3, 4]), names(LONG_FORK, "causal")), forked)
    for order in ([0, 1, 2, 3, 4], [0, 1, 3, 2, 4], [0, 4, 1, 3, 2]):
        with pytest.raises(Refuted):
            verified(plain(valid(order), names(LONG_FORK, "serializable")), forked)


def test_a_list_that_lost_an_element_shows_both_orders_of_its_writers(tmp_path: Path) -> None:
    text = "a(x,1) a(x,2)\n a(x,3) a(x,4)\n r(x,[2,3,4])"
    both = invalid(
        ProofStep(source=1, target=2, because=Because.VERSION_ORDER, key=0),
        ProofStep(source=2, target=1, because=Because.VERSION_ORDER, key=0),
        cycle=(0, 1),
    )
    verified(plain(both, names(text, "serializable")), written(text, tmp_path))


def test_no_list_shows_a_writer_before_itself(tmp_path: Path) -> None:
    text = "a(x,1) r(x,[1]) a(x,2)"
    alone = invalid(ProofStep(source=1, target=1, because=Because.VERSION_ORDER, key=0), cycle=(0,))
    with pytest.raises(Refuted, match="step 0 \\(known\\): not two writers of the key"):
        verified(plain(alone, names(text, "causal")), written(text, tmp_path))


ANOMALIES = {
    "G1a": "w(x,1) !\n r(x,1)",
    "G1b": "w(x,1) w(x,2)\n r(x,1)",
    "G1b of lists": "a(x,1) a(x,2)\n r(x,[1])",
    "garbage-read": "w(x,1)\n r(x,7)",
    "future-read": "r(x,1) w(x,1)\n r(y,-)",
    "internal": "w(x,1) r(x,2)\n w(x,2)",
    "internal of looks": "r(x,-) r(x,2)\n w(x,2)",
    "internal of lists": "a(x,1) r(x,[])\n r(y,[])",
    "internal of looks at lists": "r(x,[]) r(x,[2])\n a(x,2)",
    "lost-update": "r(x,-) w(x,1)\n r(x,-) w(x,2)",
    "duplicate-elements": "a(x,1)\n r(x,[1,1])",
    "incompatible-order": "r(x,[1,2])\n r(x,[2])\n a(x,1)\n a(x,2)",
    "dirty-update": "a(x,1) !\n a(x,2)\n r(x,[1,2])",
}
"""Each shown by its first two transactions."""

FINE = {
    False: "w(x,3) w(x,1)\n r(x,1) w(x,2) r(x,2)\n w(x,7) !\n r(x,2)",
    True: "a(x,3) a(x,1)\n r(x,[3,1]) a(x,2) r(x,[3,1,2])\n a(x,7) !\n r(x,[3,1,2])",
}


def test_all_anomalies_that_reads_show_are_tried() -> None:
    assert {name.partition(" ")[0] for name in ANOMALIES} == set(SHOWN_BY_READS)


@pytest.mark.parametrize("name", ANOMALIES)
def test_an_anomaly_is_found_where_it_is_and_not_where_it_is_not(name: str, tmp_path: Path) -> None:
    lists = "a(" in ANOMALIES[name]
    workload = "list-append" if lists else "rw-register"
    of_model = Names(model="serializable", workload=workload, start=np.array([-1]), keys=[])
    anomaly = Anomaly(name=name.partition(" ")[0], key="x", operations=(0, 1), because="")
    certificate = json.loads(certificate_of_anomaly(anomaly, of_model))
    verified(certificate, written(ANOMALIES[name], tmp_path))
    with pytest.raises(Refuted, match="these transactions do not show"):
        verified(
            certificate | {"anomaly": certificate["anomaly"] | {"transactions": [0, 1, 2, 3]}},
            written(FINE[lists], tmp_path),
        )


def test_numbers_below_zero_are_told_apart_in_lists(tmp_path: Path) -> None:
    (failed, reader) = parsed(ANOMALIES["G1a"])
    rows = history_rows(
        [
            replace(failed, operations=(("append", "x", -1),)),
            replace(reader, operations=(("r", "x", (-1,)),)),
        ]
    )
    history = write_rows(rows, TRANSACTION, tmp_path / "history.parquet")
    found = {"name": "G1a", "key": "x", "transactions": [0, 1]}
    of_lists = {"model": "serializable", "workload": "list-append", "verdict": "invalid"}
    verified(of_lists | {"anomaly": found}, history)
    with pytest.raises(Refuted, match="these transactions do not show garbage-read"):
        verified(of_lists | {"anomaly": found | {"name": "garbage-read"}}, history)


def test_a_weak_model_does_not_forbid_everything(tmp_path: Path) -> None:
    for name, weakest, weaker in (
        ("internal", "read-atomic", "read-committed"),
        ("lost-update", "parallel-snapshot-isolation", "causal"),
    ):
        history = written(ANOMALIES[name], tmp_path)
        found = {"name": name, "key": "x", "transactions": [0, 1]}
        certificate = {"workload": "rw-register", "verdict": "invalid", "anomaly": found}
        verified(certificate | {"model": weakest}, history)
        with pytest.raises(Refuted, match=f"this model does not forbid {name}"):
            verified(certificate | {"model": weaker}, history)


@pytest.mark.parametrize("model", ["causal", "snapshot-isolation", "strict-serializable"])
def test_content_of_any_wrong_kind_is_refuted_and_breaks_nothing(model: str, tmp_path: Path) -> None:
    history = written(WRITE_SKEW, tmp_path)
    proof = plain(SKEWED, names(WRITE_SKEW, model))
    junk = [None, True, -1, -2, 10**30, 1.5, "b0", "c-1", "x", [], [[]], {}, {"steps": []}]
    for certificate_ in [*junk, *({**proof, name: value} for name in proof for value in junk)]:
        with pytest.raises(Refuted):
            verified(certificate_, history)
    for value in junk:
        with pytest.raises(Refuted):
            verified({**proof, "verdict": "valid", "order": [value, 0, 1]}, history)
        with pytest.raises(Refuted):
            verified({**proof, "anomaly": {"name": value, "key": value}}, history)
        for name in ("key", "transactions"):
            with pytest.raises(Refuted):
                verified({**proof, "anomaly": {"name": "G1b", "key": "x", "transactions": [0], name: value}}, history)
        for block in ({"within": value or 0}, {"steps": value}, {"cycle": value}, {"steps": [value]}):
            with pytest.raises(Refuted):
                verified({**proof, "proof": [{**proof["proof"][0], **block}]}, history)
        for name in ("source", "target", "because", "key", "reader", "writer", "path"):
            for number in range(4):
                steps = [dict(step) for step in proof["proof"][0]["steps"]]
                if steps[number].get(name, []) == value or (name not in steps[number]):
                    continue
                steps[number][name] = value
                with pytest.raises(Refuted):
                    verified({**proof, "proof": [{**proof["proof"][0], "steps": steps}]}, history)


def test_what_is_undecided_has_no_certificate() -> None:
    with pytest.raises(Undecided, match="serializable is unknown"):
        certificate(Decision(verdict=Verdict.UNKNOWN), names(WRITE_SKEW, "serializable"))


def test_the_command_says_what_it_found(tmp_path: Path) -> None:
    history = written(WRITE_SKEW, tmp_path)
    path = tmp_path / "certificate.json"

    def command(text: str) -> tuple[int, str]:
        path.write_text(text)
        code, said, _ = commanded(path, history)
        return code, said

    proof = certificate(SKEWED, names(WRITE_SKEW, "serializable"))
    assert command(proof) == (0, "invalid at serializable: the certificate holds\n")
    assert command(proof.replace("[2, 3]", "[3]")) == (3, "refuted: [3] is no cycle\n")
    assert command("[" * 100_000) == (254, "")


def test_a_file_that_it_cannot_read_refutes_nothing(tmp_path: Path) -> None:
    history, path = written(WRITE_SKEW, tmp_path), tmp_path / "certificate.json"
    code, said, problem = commanded(path, history)
    assert (code, said) == (254, "")
    assert problem.startswith(f"verify: cannot read {path}: No such file")
    path.write_text(certificate(SKEWED, names(WRITE_SKEW, "serializable")))
    nowhere = tmp_path / "none.parquet"
    for wrong, words in (
        (nowhere, f"verify: cannot read {nowhere}: No such file"),
        (path, f"verify: {path} is no history of rw-register in Parquet: "),
    ):
        code, said, problem = commanded(path, wrong)
        assert (code, said) == (254, "")
        assert problem.startswith(words) and problem.count("\n") == 1


def commanded(certificate: Path, history: Path) -> tuple[int, str, str]:
    program = [sys.executable, "-m", "checkers.transactions.verify", str(certificate), str(history)]
    done = subprocess.run(program, capture_output=True, text=True, cwd=ROOT, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("program", ["checkers/transactions/verify", "checkers/linearizable/replay"])
def test_it_shares_no_code_with_what_it_verifies(program: str) -> None:
    """But for the function that makes its one line printable, which decides nothing."""
    own, outside = program.replace("/", "."), {"numpy", "pyarrow", *sys.stdlib_module_names}
    paths = sorted((ROOT / program).glob("*.py"))
    assert paths
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for module in _imported(node):
                is_known = module.startswith(own) or module.partition(".")[0] in outside
                assert is_known or module == "harness.printable", (path, module)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or "."] if isinstance(node, ast.ImportFrom) else []
