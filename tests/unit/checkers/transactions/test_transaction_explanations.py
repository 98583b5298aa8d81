"""Explanations of cycles and proofs: what they say, to the word, and what they hold as data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from checkers.api.plan import CheckRequest
from checkers.in_process.engine import InProcessEngine
from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.graph.cycles import Cycle
from checkers.transactions.elle.reasons import EDGE_REASONS
from checkers.transactions.evidence.certificate import Names
from checkers.transactions.evidence.explain import explained_cycle, explained_proof, indices_of_proof
from checkers.transactions.evidence.proof import Because, Proof, ProofStep
from checkers.transactions.evidence.render import because, details, lines
from checkers.transactions.evidence.shown_transactions import ShownTransaction, involved
from checkers.transactions.history.micro_operations import TRANSACTION
from tests.references.history_language import write_rows
from tests.references.transaction_histories import history_rows, parsed

WRITE_SKEW = "r(x,-) r(y,-) w(x,1)\n r(x,-) r(y,-) w(y,1)"


def transactions_of(text: str, directory: Path) -> dict[int, ShownTransaction]:
    path = write_rows(history_rows(parsed(text)), TRANSACTION, directory / "history.parquet")
    return dict(involved(CheckRequest(history=path), InProcessEngine(), [t.start for t in parsed(text)]))


def reasons(*rows: tuple[Dependency, int, int, str, int | None, int | None, int | None]) -> pa.Table:
    columns = zip(*rows, strict=True)
    return pa.Table.from_arrays(
        [pa.array(list(column), of.type) for column, of in zip(columns, EDGE_REASONS, strict=True)], schema=EDGE_REASONS
    )


def test_a_cycle_of_lists_is_explained_by_what_was_read(tmp_path: Path) -> None:
    text = "r(x,[1,6]) a(y,3)\n a(x,7) r(y,[3])\n a(x,1) a(x,6)\n r(x,[1,6,7])"
    found = reasons((Dependency.RW, 0, 1, "x", 6, 7, 3), (Dependency.WR, 0, 1, "y", 3, None, None))
    backwards = Cycle(name="G-single-item", edges=((Dependency.RW, 0, 1), (Dependency.WW, 1, 0)))
    explanation = explained_cycle(backwards, found, transactions_of(text, tmp_path))
    assert lines(explanation)[:4] == [
        "T1 (at 0): r x = [1, 6], append y 3.",
        "T2 (at 1): append x 7, r y = [3].",
        "T3 (at 3): r x = [1, 6, 7].",
        "T1 did not see T2's append of 7 to x, because it read [1, 6] and 7 comes next in the order that T3 read.",
    ]
    forwards = Cycle(name="G1c", edges=((Dependency.WR, 0, 1), (Dependency.REALTIME, 1, 0)))
    assert lines(explained_cycle(forwards, found, transactions_of(text, tmp_path)))[2:] == [
        "T2 read y as [3], where T1 had appended 3.",
        "T2 ended before T1 began.",
        "So T1 before T2 before T1: a contradiction.",
    ]


def test_a_cycle_of_registers_is_explained_by_values(tmp_path: Path) -> None:
    text = "w(x,3) r(y,-)\n r(x,3) w(x,4) w(y,2)\n w(x,9) ?"
    found = reasons(
        (Dependency.WR, 0, 1, "x", 3, None, None),
        (Dependency.WW, 0, 1, "x", 3, 4, 1),
        (Dependency.RW, 0, 1, "y", None, 2, None),
    )
    edges = ((Dependency.WR, 0, 1), (Dependency.WW, 0, 1), (Dependency.RW, 0, 1), (Dependency.PROCESS, 1, 2))
    explanation = explained_cycle(Cycle(name="none", edges=edges), found, transactions_of(text, tmp_path))
    assert lines(explanation)[:-1] == [
        "T1 (at 0): w x = 3, r y = null.",
        "T2 (at 1): r x = 3, w x = 4, w y = 2.",
        "T3 (at 2, outcome unknown): w x = 9.",
        "T2 read x as 3, which T1 wrote.",
        "T2 wrote x = 4 over T1's 3, as it read x as 3.",
        "T1 read y as null, which it is before any write, and T2 wrote 2 over that.",
        "T2 was before T3 in process 1.",
    ]


def skew() -> tuple[Proof, Names]:
    steps = (
        ProofStep(source=0, target=1, because=Because.INITIAL),
        ProofStep(source=0, target=2, because=Because.INITIAL),
        ProofStep(source=1, target=2, because=Because.OVERWRITES, key=1, reader=1, writer=0, path=(1,)),
        ProofStep(source=2, target=1, because=Because.OVERWRITES, key=0, reader=2, writer=0, path=(0,)),
        ProofStep(source=0, target=1, because=Because.READ, key=0),
    )
    names = Names(model="serializable", workload="rw-register", start=np.array([-1, 0, 1]), keys=["x", "y"])
    return Proof(steps=steps, cycle=(2, 3)), names


def test_a_proof_shows_the_steps_that_it_needs_and_no_others(tmp_path: Path) -> None:
    proof, names = skew()
    explanation = explained_proof(proof, names, transactions_of(WRITE_SKEW, tmp_path))
    assert indices_of_proof(proof, names) == {0, 1}
    assert lines(explanation) == [
        "T0 (before all others): nothing is written yet.",
        "T1 (at 0): r x = null, r y = null, w x = 1.",
        "T2 (at 1): r x = null, r y = null, w y = 1.",
        "(0) T1 comes after the initial transaction T0.",
        "(1) T2 comes after the initial transaction T0.",
        "(2) T2, which wrote y = 1, follows T0 (1), and T1 reads y as null: so T1 comes before T2.",
        "(3) T1, which wrote x = 1, follows T0 (0), and T2 reads x as null: so T2 comes before T1.",
        "So T1 before T2 before T1 (2, 3): a contradiction.",
    ]
    found = details(explanation)
    assert json.loads(json.dumps(found)) == found
    assert found["transactions"][0] == {
        "name": "T1",
        "index": 0,
        "process": 0,
        "operations": ["r x = null", "r y = null", "w x = 1"],
    }
    assert [(edge["kind"], edge["source"], edge["target"], edge["key"]) for edge in found["edges"]] == [
        ("rw", "T1", "T2", "y"),
        ("rw", "T2", "T1", "x"),
    ]


def test_cases_are_shown_behind_each_other(tmp_path: Path) -> None:
    proof, names = skew()
    assumed = [ProofStep(source=s, target=t, because=Because.CASE, key=0) for s, t in ((1, 2), (2, 1))]
    one, other = (Proof(steps=(step,), cycle=(2, 3)) for step in assumed)
    within = Proof(steps=(assumed[0],), cases=(one, other))
    nested = Proof(steps=proof.steps, cases=(within, other))
    shown = lines(explained_proof(nested, names, transactions_of(WRITE_SKEW, tmp_path)))
    assert shown[7:] == [
        "There are two cases, and each contradicts itself.",
        "(5) Case 1: suppose that T1 wrote x before T2.",
        "There are two cases, and each contradicts itself.",
        "(6) Case 1.1: suppose that T1 wrote x before T2.",
        "So T1 before T2 before T1 (2, 3): a contradiction in case 1.1.",
        "(6) Case 1.2: suppose that T2 wrote x before T1.",
        "So T1 before T2 before T1 (2, 3): a contradiction in case 1.2.",
        "(5) Case 2: suppose that T2 wrote x before T1.",
        "So T1 before T2 before T1 (2, 3): a contradiction in case 2.",
    ]
    assert details(explained_proof(nested, names, transactions_of(WRITE_SKEW, tmp_path)))["case"] == "1.1"


def test_a_long_proof_is_shown_in_few_lines(tmp_path: Path) -> None:
    steps = [ProofStep(source=t, target=t + 1, because=Because.READ, key=0) for t in range(1, 500)]
    proof = Proof(steps=tuple(steps), cycle=tuple(range(499)))
    names = Names(model="serializable", workload="rw-register", start=np.arange(-1, 500), keys=["x"])
    explanation = explained_proof(proof, names, {})
    assert len(lines(explanation)) < 70 and len(because(explanation)) < 20_000
    assert len(details(explanation)["edges"]) + details(explanation)["edges_left_out"] == 499
    assert lines(explanation)[-2] == "475 more steps are in the certificate."


def test_of_reads_that_differ_the_one_that_is_meant_is_shown(tmp_path: Path) -> None:
    text = "w(x,1)\n w(x,2)\n r(x,1) r(x,2) r(x,-)"
    names = Names(model="read-atomic", workload="rw-register", start=np.array([-1, 0, 1, 2]), keys=["x"])
    steps = tuple(ProofStep(source=w, target=3, because=Because.READ, key=0) for w in (2, 1, 0))
    explanation = explained_proof(Proof(steps=steps, cycle=(0, 1, 2)), names, transactions_of(text, tmp_path))
    assert lines(explanation)[4:7] == [
        "(0) T2 reads x from T1 as 2, so T1 comes before T2.",
        "(1) T2 reads x from T3 as 1, so T3 comes before T2.",
        "(2) T2 reads x as null, so T0 comes before T2.",
    ]
    assert details(explanation)["transactions"][0]["operations"] == ["nothing is written yet"]


def test_at_snapshot_isolation_begins_and_commits_are_named_separately(tmp_path: Path) -> None:
    text = "r(x,-) w(x,1)\n r(x,1) w(x,2)"
    names = Names(model="snapshot-isolation", workload="rw-register", start=np.array([-1, 0, 1]), keys=["x"])
    steps = (
        ProofStep(source=3, target=4, because=Because.READ, key=0),
        ProofStep(source=2, target=3, because=Because.INSIDE),
        ProofStep(source=5, target=2, because=Because.EXCLUSIVE, key=0, path=(0, 1)),
        ProofStep(source=4, target=5, because=Because.INSIDE),
        ProofStep(source=4, target=3, because=Because.OVERWRITES, key=0, reader=2, writer=1, path=(1, 0)),
        ProofStep(source=5, target=2, because=Because.OVERWRITTEN, key=0, reader=1, writer=0, path=(2,)),
        ProofStep(source=5, target=2, because=Because.SESSION),
    )
    explanation = explained_proof(
        Proof(steps=steps, cycle=(0, 3, 5, 1, 0, 3, 6, 1, 0, 4)), names, transactions_of(text, tmp_path)
    )
    assert lines(explanation)[2:] == [
        "(0) T2 reads x from T1 as 1, so T1 commits before T2 begins.",
        "(1) T1 begins before it commits.",
        "(2) T2 begins before T1 commits (0, 1), and both wrote x: so T2 commits before T1 begins.",
        "(3) T2 begins before it commits.",
        "(4) T1, which wrote x = 1, commits after T1 began (1, 0), so after it committed, because both wrote x, and "
        "T2 reads x from T1 as 1: so T2 begins before T1 commits.",
        "(5) T2, which wrote x = 2, commits before T1 begins (2), and T1 reads x as null: so T2 commits before "
        "T1 begins.",
        "(6) T2 was before T1 in process 1, so T2 commits before T1 begins.",
        "So T1 commits before T2 begins before T2 commits before T1 begins before T1 commits before T2 begins before "
        "T2 commits before T1 begins before T1 commits before T2 begins before T1 commits "
        "(0, 3, 5, 1, 0, 3, 6, 1, 0, 4): a contradiction.",
    ]


def test_of_long_lists_and_transactions_only_the_elements_near_the_steps_are_shown(tmp_path: Path) -> None:
    others = " ".join(f"a(z,{value})" for value in range(30))
    many = ",".join(map(str, range(40)))
    text = f"{others} a(x,20)\n a(x,21)\n r(x,[{many}])"
    edges = Cycle(name="none", edges=((Dependency.WW, 0, 1),))
    explanation = explained_cycle(
        edges, reasons((Dependency.WW, 0, 1, "x", 20, 21, 2)), transactions_of(text, tmp_path)
    )
    assert lines(explanation)[:4] == [
        "T1 (at 0): append z 0, append z 1, append z 2, append z 3, append z 4, append z 5, append z 6, append x 20, "
        "… 23 more.",
        "T2 (at 1): append x 21.",
        "T3 (at 2): r x = [0, 1, 2, 3, 4, 5, … 13 more …, 19, 20, 21, … 12 more …, 34, 35, 36, 37, 38, 39].",
        "T2 appended 21 to x after T1's 20, as T3 read x as "
        "[0, 1, 2, 3, 4, 5, … 13 more …, 19, 20, 21, … 12 more …, 34, 35, 36, 37, 38, 39].",
    ]


def test_a_list_of_which_nothing_was_seen_is_empty(tmp_path: Path) -> None:
    found = reasons((Dependency.RW, 0, 1, "x", None, 1, None))
    edges = Cycle(name="none", edges=((Dependency.RW, 0, 1),))
    explanation = explained_cycle(edges, found, transactions_of("r(x,-)\n a(x,1)", tmp_path))
    assert lines(explanation)[:3] == [
        "T1 (at 0): r x = [].",
        "T2 (at 1): append x 1.",
        "T1 did not see T2's append of 1 to x, because it read [].",
    ]
