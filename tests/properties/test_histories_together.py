"""Histories judged together are valid exactly where each is by itself, as far as anything is told of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest

from checkers.api.evidence import Evidence
from checkers.api.plan import Checker, CheckRequest
from checkers.api.verdict import CheckerResult, Verdict
from checkers.batch import are_composable, judge_together
from checkers.in_process.engine import InProcessEngine
from checkers.linearizable import MODELS, Linearizable
from checkers.run import check_history
from checkers.transactions.checker import ListAppend, RwRegister
from checkers.transactions.elle.rw_register import Assumption
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.vacuity import Vacuity
from harness.record.history import MalformedHistory, history_schema
from stormproof.session.registry import workload as workload_named
from tests.histories.test_history_files import FILES
from tests.references.history_language import REGISTER_VALUE, VALUE_TYPES, parse_history
from tests.references.list_histories import random_lists
from tests.references.register_histories import random_register_rows
from tests.references.transaction_histories import history_rows, random_registers
from tests.references.written_judgement import checker_of, evidence_of

ENGINE = InProcessEngine()
OF_TRANSACTIONS = ("ruled_out", "strongest", "undecided")


def table(rows: Iterable[Mapping[str, Any]], value_type: pa.DataType) -> pa.Table:
    blank = {"key": None, "error": None, "node": None}
    numbered = [{**blank, **row, "index": index, "time": 1_000 * index} for index, row in enumerate(rows)]
    return pa.Table.from_pylist(numbered, schema=history_schema(value_type))


def by_itself(history: pa.Table, checkers: Mapping[str, Checker]) -> Mapping[str, CheckerResult] | None:
    """None if it is no history."""
    try:
        return check_history(CheckRequest(history=history), checkers, ENGINE)
    except MalformedHistory:
        return None


def is_clean(results: Mapping[str, CheckerResult] | None) -> bool:
    return results is not None and all(
        result.verdict is Verdict.VALID and not result.anomalies for result in results.values()
    )


def assert_alike(histories: list[pa.Table], checker: Checker, evidence: tuple[Evidence, ...]) -> tuple[int, int]:
    """How many of them are valid by themselves, and how many of these are found to be so together."""
    checkers = {checker.name: checker, "vacuity": Vacuity(subject="it", evidence=evidence)}
    alone = [by_itself(history, checkers) for history in histories]
    clean = [place for place, results in enumerate(alone) if is_clean(results)]
    for some in (list(range(len(histories))), clean):
        found = judge_together([histories[place] for place in some], checkers, (), ENGINE)
        valid = [some[place] for place in sorted(found.valid)]
        assert set(valid) <= set(clean)
        for place in valid:
            told, own = (results[checker.name].statistics for results in (found.results, alone[place] or {}))
            assert [told.get(name) for name in OF_TRANSACTIONS] == [own.get(name) for name in OF_TRANSACTIONS]
    return len(clean), len(valid)


TRANSACTIONAL = {
    "strict lists": ListAppend(),
    "lists by snapshots": ListAppend(model=ConsistencyModel.SNAPSHOT_ISOLATION),
    "causal lists": ListAppend(model=ConsistencyModel.CAUSAL),
    "registers": RwRegister(model=ConsistencyModel.SERIALIZABLE),
    "linearizable keys": RwRegister(assume=frozenset({Assumption.LINEARIZABLE_KEYS})),
}


@pytest.mark.parametrize("kind", TRANSACTIONAL)
@pytest.mark.parametrize("lies", [0.0, 0.15])
def test_transactions_together(kind: str, lies: float) -> None:
    checker = TRANSACTIONAL[kind]
    rng = random.Random(f"{kind} {lies}")
    valid = found = 0
    for _ in range(4):
        if isinstance(checker, ListAppend):
            made = [random_lists(rng, rng.randint(1, 12), lies) for _ in range(8)]
        else:
            made = [history_rows(random_registers(rng)) for _ in range(8)]
        histories = [table(rows, TRANSACTION) for rows in made if rows]
        more = assert_alike(histories, checker, workload_named(checker.name).evidence)
        valid, found = valid + more[0], found + more[1]
    assert 0 < found <= valid


@pytest.mark.parametrize("name", ["register", "cas-register"])
def test_registers_together(name: str) -> None:
    rng = random.Random(name)
    valid = found = 0
    for _ in range(6):
        made = [random_register_rows(rng, registers=rng.randint(1, 2)) for _ in range(8)]
        functions = MODELS[name].functions
        histories = [table([row for row in rows if row["f"] in functions], REGISTER_VALUE) for rows in made]
        more = assert_alike(histories, Linearizable(MODELS[name]), MODELS[name].evidence(None))
        valid, found = valid + more[0], found + more[1]
    assert found == valid > 0


def test_smallest_histories_together() -> None:
    written = [one for one in map(parse_history, (file.read_text() for file in FILES)) if not one.demands]
    judged_alike = {kind: list(some) for kind, some in groupby(sorted(written, key=_kind), key=_kind)}
    valid = found = 0
    for some in judged_alike.values():
        checker = checker_of(some[0])
        if are_composable([checker]):
            histories = [table(one.rows, VALUE_TYPES[one.checker]) for one in some if one.rows]
            more = assert_alike(histories, checker, evidence_of(some[0]))
            valid, found = valid + more[0], found + more[1]
    assert valid > 50
    assert found > 0.6 * valid


def _kind(written: Any) -> tuple[str, str, str, str]:
    return written.checker, written.model, str(written.options), str(written.bounds)


def test_keys_that_are_called_alike_stay_apart() -> None:
    """Each history is about one register, of which the other one says something else."""
    steps = [("invoke", "write", 1), ("ok", "write", 1), ("invoke", "read", None), ("ok", "read", 1)]
    other = [("invoke", "read", None), ("ok", "read", None)]
    histories = [
        table(
            [{"process": 0, "type": kind, "f": f, "key": key, "value": {"value": value}} for kind, f, value in some],
            REGISTER_VALUE,
        )
        for key in (None, "1", "0/1")
        for some in (steps, other)
    ]
    model = MODELS["register"]
    checkers = {"it": Linearizable(model), "vacuity": Vacuity(subject="it", evidence=model.evidence(None))}
    assert judge_together(histories, checkers, (), ENGINE).valid == frozenset(range(len(histories)))


def test_what_shows_nothing_of_others_is_left_alone() -> None:
    """It is UNKNOWN by itself, whatever the others show."""
    part = {"key": "x", "value": None, "values": None}

    def of(*steps: dict[str, Any]) -> list[dict[str, Any]]:
        txn = {"txn": [part | step for step in steps]}
        return [{"process": 0, "type": kind, "f": "txn", "value": txn} for kind in ("invoke", "ok")]

    blind = of({"f": "append", "value": 1}, {"f": "r", "values": [1]})
    seeing = [*of({"f": "append", "value": 1}), *of({"f": "r", "values": [1]})]
    histories = [table(rows, TRANSACTION) for rows in (seeing, blind, seeing)]
    evidence = workload_named("list-append").evidence
    checkers = {"list-append": ListAppend(), "vacuity": Vacuity(subject="it", evidence=evidence)}
    assert [is_clean(by_itself(history, checkers)) for history in histories] == [True, False, True]
    assert judge_together(histories, checkers, (), ENGINE).valid == {0, 2}
