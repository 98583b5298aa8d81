"""Kernels of list-append on single histories: what is malformed, and examples in words."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.anomaly import Anomaly
from checkers.api.findings import FINDINGS, GatheredFindings, gathered_findings
from checkers.api.plan import CheckRequest, Dataset
from checkers.api.verdict import EXAMPLES, Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.transactions.checker import HistoryFacts, ListAppend, _open_searches
from checkers.transactions.elle.edges import EDGES, Dependency
from checkers.transactions.elle.graph.cycles import Cycles
from checkers.transactions.elle.list_append import (
    ROWS,
    key_findings,
    list_edges,
    list_reasons,
    list_resolved,
    list_rows,
    transaction_findings,
)
from checkers.transactions.elle.list_append.dependencies import LEFT_OUT
from checkers.transactions.elle.reasons import EDGE_REASONS, gathered_reasons, wanted_edges
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.history.micro_rows import micro_rows
from checkers.transactions.meanings import OF_CYCLES
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.transactions.model.lattice_position import LatticePosition
from harness.record.history import MalformedHistory, history_schema

ENGINE = InProcessEngine()
Txn = list[tuple[Any, ...]]


def rows_of(tmp_path: Path, *operations: tuple[str, Txn | None], key: str | None = None) -> tuple[Dataset, Dataset]:
    """(transactions, their rows) of operations one after the other; operation n is invoked at 2 * n."""
    with micro_rows(CheckRequest(history=history_of(tmp_path, *operations, key=key)), ENGINE) as micro:
        # In this process they stay of use behind it.
        return micro, ENGINE.mapped(micro, partial(list_rows, buckets=2), ROWS)


def history_of(tmp_path: Path, *operations: tuple[str, Txn | None], key: str | None = None) -> Path:
    events = []
    for number, (kind, txn) in enumerate(operations):
        for step in ("invoke", kind):
            parts = txn and [
                {
                    "f": f,
                    "key": k,
                    "value": value if f != "r" else None,
                    "values": value if f == "r" and kind == step else None,
                }
                for f, k, value in txn
            ]
            events.append(
                {
                    "index": len(events),
                    "time": len(events),
                    "process": number,
                    "type": step,
                    "f": "txn",
                    "key": key,
                    "value": {"txn": parts},
                    "error": None,
                    "node": None,
                }
            )
    path = tmp_path / "history.parquet"
    pq.write_table(pa.Table.from_pylist(events, schema=history_schema(TRANSACTION)), path)
    return path


def found_in(micro: Dataset, rows: Dataset) -> GatheredFindings:
    of_keys = ENGINE.grouped(rows, ("bucket",), key_findings, FINDINGS)
    return gathered_findings(ENGINE, ENGINE.union(ENGINE.mapped(micro, transaction_findings, FINDINGS), of_keys))


def only_example(found: GatheredFindings, name: str) -> Anomaly:
    assert list(found.anomalies) == [name] and found.anomalies[name].count == 1
    return found.anomalies[name].examples[0]


FINE = ("ok", [("append", "x", 1)])


@pytest.mark.parametrize(
    ("operations", "position", "reason"),
    [
        ([FINE, ("ok", [("r", "x", [1]), ("w", "x", 2)])], 2, "micro-operation 1 (w) is neither r nor append"),
        ([FINE, ("ok", [("cas", "x", 2)])], 2, "micro-operation 0 (of an unknown kind) is neither r nor append"),
        ([FINE, ("fail", [("append", None, 2)])], 2, "micro-operation 0 (append) has no key"),
        ([FINE, ("info", [("append", "x", None)])], 2, "micro-operation 0 (append) appends null"),
        ([FINE, ("ok", [("r", "x", [None])])], 2, "micro-operation 0 (r) reads a list with null in it"),
        ([FINE, ("ok", None)], 2, "the operation has no transaction; its value must be [[f key value] …]"),
        (
            [FINE, FINE],
            2,
            "1 is appended to x again, after the transaction invoked at 0: a read does not show which of both it saw",
        ),
        (
            [("fail", [("append", "x", 1), ("append", "x", 1)])],
            0,
            "1 is appended to x again, after the transaction invoked at 0: a read does not show which of both it saw",
        ),
    ],
)
def test_what_means_nothing_is_refused_with_its_place(
    tmp_path: Path, operations: list[tuple[str, Txn | None]], position: int, reason: str
) -> None:
    with pytest.raises(MalformedHistory) as refused:
        found_in(*rows_of(tmp_path, *operations))
    assert (refused.value.position, refused.value.reason) == (position, reason)


def test_operations_have_no_keys_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(MalformedHistory, match="row 0: the operation has a key of its own"):
        found_in(*rows_of(tmp_path, FINE, key="x"))


def test_the_first_operation_is_refused_however_many_there_are(tmp_path: Path) -> None:
    operations = [("ok", [("append", "x", 1)] * 3)] * (EXAMPLES + 5)
    with pytest.raises(MalformedHistory, match="row 0: 1 is appended to x again, after the transaction invoked at 0"):
        found_in(*rows_of(tmp_path, *operations))


def test_a_history_of_nothing_has_nothing(tmp_path: Path) -> None:
    micro, rows = rows_of(tmp_path, ("ok", []), ("fail", [("r", "x", None)]))
    assert found_in(micro, rows) == GatheredFindings(anomalies={}, tallies={})
    assert ENGINE.gather(ENGINE.grouped(rows, ("bucket",), list_edges, EDGES), 0).num_rows == 0
    nothing = ROWS.empty_table()
    assert key_findings(nothing).num_rows == list_edges(nothing).num_rows == list_resolved(nothing).num_rows == 0
    assert list_reasons(nothing, wanted=wanted_edges([(0, 1, 2)])).num_rows == 0


@pytest.mark.parametrize(
    ("operations", "name", "witnesses", "because"),
    [
        (
            [("ok", [("append", "x", 1)]), ("ok", [("r", "x", [1]), ("append", "x", 2), ("r", "x", [1])])],
            "internal",
            (2,),
            "the transaction at 2 read x as [1], which had to be [1, 2] after its own reads and appends",
        ),
        (
            [("ok", [("append", "x", 1), ("append", "x", 2), ("r", "x", [1])])],
            "internal",
            (0,),
            "the transaction at 0 read x as [1], which had to end in its own appends [1, 2]",
        ),
        (
            [("ok", [("r", "x", [1]), ("append", "x", 1)])],
            "future-read",
            (0,),
            "the transaction at 0 read x as [1], which shows 1, and appended that only later",
        ),
        (
            [("ok", [("r", "x", [7])])],
            "garbage-read",
            (0,),
            "the transaction at 0 read x as [7], which shows 7, but no transaction tried to append that",
        ),
        (
            [("fail", [("append", "x", 1)]), ("ok", [("r", "x", [1])])],
            "G1a",
            (0, 2),
            "the transaction at 2 read x as [1], which shows 1: the transaction at 0, which appended that, certainly",
        ),
        (
            [("ok", [("append", "x", 1), ("append", "x", 2)]), ("ok", [("r", "x", [1])])],
            "G1b",
            (0, 2),
            "the transaction at 2 read x as [1], up to 1: the transaction at 0, which appended that, then",
        ),
        (
            [FINE, ("ok", [("r", "x", [1, 1])])],
            "duplicate-elements",
            (2,),
            "the transaction at 2 read x as [1], with 1 again, which was appended once",
        ),
        (
            [FINE, ("ok", [("append", "x", 2)]), ("ok", [("r", "x", [2])]), ("ok", [("r", "x", [1, 2])])],
            "incompatible-order",
            (4, 6),
            "the transaction at 4 read x as [2], and the transaction at 6 read x as [1, 2]: neither",
        ),
        (
            [
                ("ok", [("r", "x", None), ("r", "y", None), ("append", "x", 1)]),
                ("ok", [("r", "x", []), ("append", "x", 2)]),
            ],
            "lost-update",
            (0, 2),
            "2 transactions read x as [] and then appended to it, none having seen what another appended",
        ),
    ],
)
def test_each_anomaly_is_explained_by_the_contradiction(
    tmp_path: Path, operations: list[tuple[str, Txn]], name: str, witnesses: tuple[int, ...], because: str
) -> None:
    example = only_example(found_in(*rows_of(tmp_path, *operations)), name)
    assert (example.key, example.operations) == ("x", witnesses)
    assert example.because.startswith(because)


def edges_in(rows: Dataset) -> set[tuple[str, int, int]]:
    edges = ENGINE.gather(ENGINE.grouped(rows, ("bucket",), list_edges, EDGES), 1_000).to_pylist()
    return {(Dependency(edge["kind"]).name, edge["source"], edge["target"]) for edge in edges}


def test_edges_of_an_indefinite_append_are_given_only_where_they_can_close_a_cycle(tmp_path: Path) -> None:
    reader = ("ok", [("r", "x", None), ("r", "y", [2])])
    _, alone = rows_of(tmp_path, ("info", [("append", "x", 1)]), reader)
    assert edges_in(alone) == set()
    _, torn = rows_of(tmp_path, ("info", [("append", "x", 1), ("append", "y", 2)]), reader)
    assert edges_in(torn) == {("RW", 2, 0), ("WR", 0, 2)}


def test_edges_that_grow_with_readers_times_writers_are_bounded_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.transactions.elle.list_append.dependencies.UNSHOWN", 5)
    readers = [("ok", [("r", "x", None)])] * 3
    writers = [("ok", [("append", "x", number)]) for number in range(3)]
    micro, rows = rows_of(tmp_path, *readers, *writers)
    assert len(edges_in(rows)) == 5
    assert found_in(micro, rows).tally(LEFT_OUT).count == 4


def test_a_reason_names_the_versions_and_the_read_that_shows_their_order(tmp_path: Path) -> None:
    _, rows = rows_of(
        tmp_path,
        ("ok", [("append", "x", 1)]),
        ("ok", [("append", "x", 2)]),
        ("ok", [("r", "x", [1])]),
        ("ok", [("r", "x", [1, 2])]),
        ("ok", [("append", "x", 3)]),
    )
    wanted = wanted_edges(
        [
            (Dependency.WW, 0, 2),
            (Dependency.WR, 0, 4),
            (Dependency.RW, 4, 2),
            (Dependency.RW, 6, 8),
            (Dependency.WW, 0, 8),
        ]
    )
    kernel = partial(list_reasons, wanted=wanted)
    anomalies = gathered_reasons(ENGINE, ENGINE.grouped(rows, ("bucket",), kernel, EDGE_REASONS), wanted).to_pylist()
    assert [tuple(row.values()) for row in anomalies] == [
        (Dependency.WW, 0, 2, "x", 1, 2, 6),
        (Dependency.WR, 0, 4, "x", 1, None, 4),
        (Dependency.RW, 4, 2, "x", 1, 2, 6),
        (Dependency.RW, 6, 8, "x", 2, 3, None),
    ]


STALE = (("ok", [("append", "x", 1)]), ("ok", [("r", "x", [])]), ("ok", [("r", "x", [1])]))
STALE_AND_UNWRITTEN = (*STALE, ("ok", [("r", "x", [1, 7])]))
WHY = "reads of this configuration may be stale"


@pytest.mark.parametrize(
    ("operations", "legal", "verdict"),
    [
        (STALE, {}, Verdict.INVALID),
        (STALE, {"G-single-item-realtime": WHY}, Verdict.VALID),
        (STALE, {"G1a": WHY}, Verdict.INVALID),
        (STALE_AND_UNWRITTEN, {"G-single-item-realtime": WHY}, Verdict.INVALID),
    ],
    ids=["nothing is legal", "what was found is legal", "something else is legal", "only a part of it is legal"],
)
def test_what_a_system_may_legally_show_makes_no_history_invalid(
    tmp_path: Path, operations: tuple[tuple[str, Txn], ...], legal: dict[str, str], verdict: Verdict
) -> None:
    history = history_of(tmp_path, *operations)
    result = ListAppend().check(CheckRequest(history=history, legal=legal), ENGINE)
    assert result.verdict is verdict
    assert result.anomalies["G-single-item-realtime"].legal == legal.get("G-single-item-realtime", "")


@pytest.mark.parametrize(
    ("broken", "legal", "matters"),
    [(True, OF_CYCLES.keys(), False), (False, OF_CYCLES.keys(), True), (True, OF_CYCLES.keys() - {"G2-item"}, True)],
    ids=["all cycles are legal", "nothing is known to be broken", "one kind of cycle is not legal"],
)
def test_a_search_that_was_given_up_matters_unless_all_that_it_could_find_is_legal(
    broken: bool, legal: Iterable[str], matters: bool
) -> None:
    demanded = ConsistencyModel.SERIALIZABLE
    standing = LatticePosition().showing(["G0"]) if broken else LatticePosition()
    known = HistoryFacts(findings={}, read=0, cycles=Cycles(undecided=("given up",)), unordered=0, standing=standing)
    assert bool(_open_searches(demanded, known, dict.fromkeys(legal, WHY))) is matters
