"""Findings on registers do not depend on how a history is split, nor on the engine; what it cannot mean is
refused."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.findings import FINDINGS, gathered_findings
from checkers.api.plan import CheckRequest, Dataset
from checkers.in_process.engine import InProcessEngine
from checkers.kernels.bundles import BUNDLES, unbundled
from checkers.kernels.columns import TYPES
from checkers.transactions.elle.edges import EDGES, Dependency
from checkers.transactions.elle.outcomes import of_outcomes, resolved_in
from checkers.transactions.elle.reasons import EDGE_REASONS, gathered_reasons, wanted_edges
from checkers.transactions.elle.rw_register import (
    MISSING,
    NAMES,
    READS,
    ROWS,
    Assumed,
    Assumption,
    key_names,
    register_edges,
    register_findings,
    register_outcomes,
    register_reasons,
    register_rows,
    resolved,
    rows_with_findings,
)
from checkers.transactions.history.committed_rows import RESOLVED, TOGETHER
from checkers.transactions.history.micro_operations import TRANSACTION
from checkers.transactions.history.micro_rows import MICRO_ROWS, micro_rows
from harness.record.history import MalformedHistory, history_schema
from tests.references.register_transactions import random_transactions

Event = tuple[int, str, list[tuple[str, str, int | None]]]
"""Process, type, micro-operations."""


def write(path: Path, events: list[Event], rows_in_a_group: int = 1_000) -> Path:
    rows = [
        {
            "index": index,
            "time": index,
            "process": process,
            "type": kind,
            "f": "txn",
            "value": {"txn": [{"f": f, "key": key, "value": value} for f, key, value in operations]},
        }
        for index, (process, kind, operations) in enumerate(events)
    ]
    table = pa.Table.from_pylist(rows, schema=history_schema(TRANSACTION))
    pq.write_table(table, path, row_group_size=rows_in_a_group)
    return path


def made_up_events(seed: int) -> list[Event]:
    rng = random.Random(seed)
    events = {}
    for number in range(30):
        for t in random_transactions(rng):
            answered = [(f, f"{key}{number}", value) for f, key, value in t.operations]
            asked = [(f, key, value if f == "w" else None) for f, key, value in answered]
            process = t.process + 100 * number
            events[t.start, number] = process, "invoke", asked
            if t.end < 1_000:
                events[t.end, number] = process, TYPES[t.type], answered
    return [events[at] for at in sorted(events)]


def found_in(path: Path, buckets: int, assumed: Assumed) -> tuple[Any, ...]:
    """(findings, edges, external operations with the names of keys)."""
    engine = InProcessEngine()
    with micro_rows(CheckRequest(history=path), engine) as micro:
        return _found_in(engine, micro, buckets, assumed)


def _found_in(engine: InProcessEngine, micro: Dataset, buckets: int, assumed: Assumed) -> tuple[Any, ...]:
    rows = engine.mapped(micro, partial(register_rows, buckets=buckets), ROWS)

    def gathered(kernel: Any, schema: pa.Schema) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = engine.gather(
            engine.grouped(rows, ("bucket",), kernel, schema), 100_000
        ).to_pylist()
        return found

    edges = gathered(partial(register_edges, assumed=assumed), EDGES)
    operations = gathered(partial(resolved, buckets=buckets), RESOLVED)
    with_findings = engine.mapped(micro, partial(rows_with_findings, buckets=buckets), ROWS)
    kernel = partial(register_outcomes, assumed=assumed, buckets=buckets)
    with engine.kept(engine.grouped(with_findings, ("bucket",), kernel, BUNDLES)) as outcomes:
        found = gathered_findings(engine, of_outcomes(engine, outcomes, "findings"))
        of_keys = engine.grouped(rows, ("bucket",), partial(register_findings, assumed=assumed), FINDINGS)
        assert found == gathered_findings(engine, of_keys)
        links = engine.gather(of_outcomes(engine, outcomes, "links"), 100_000)
        assert links == pa.Table.from_pylist(edges, schema=links.schema)
        bundles = engine.gather(resolved_in(engine, outcomes), 100)
        assert unbundled(bundles, name=TOGETHER, schema=RESOLVED) == pa.Table.from_pylist(operations, schema=RESOLVED)
    codes = frozenset(row["key"] for row in operations)
    named = gathered(partial(key_names, codes=codes, buckets=buckets), NAMES)
    names = {row["key"]: row["name"] for row in named}
    assert len(names) == len(named) == len(set(names.values()))
    external = sorted(tuple((row | {"key": names[row["key"]]}).values()) for row in operations)
    return found, sorted(tuple(row.values()) for row in edges), external


def test_nothing_depends_on_how_a_history_is_split(tmp_path: Path) -> None:
    for seed in range(3):
        events = made_up_events(seed)
        assumed = Assumed(assumptions=frozenset(list(Assumption)[: seed + 1]))
        whole = found_in(write(tmp_path / "whole", events), 1, assumed)
        assert whole == found_in(write(tmp_path / "split", events, rows_in_a_group=7), 5, assumed)
        assert len(whole[0].anomalies) > 5 and all(len(some) > 5 for some in whole[1:])


NOT_ONE = [
    ([(0, "ok", [("append", "x", 1)])], 0, "micro-operation 0 is neither r nor w"),
    ([(0, "ok", [("w", None, 1)])], 0, "micro-operation 0 has no key"),
    (
        [(0, "fail", [("r", "y", None), ("w", "x", None)])],
        0,
        "micro-operation 1 writes null, which is what x is",
    ),
    (
        [(0, "info", [("w", "x", 1)]), (1, "ok", [("w", "x", 1)])],
        2,
        "1 is written to x again, after the transaction",
    ),
    ([(0, "ok", [("w", "x", 1), ("w", "y", 2), ("w", "x", 1)])], 0, "1 is written to x again"),
]


def completed(operations: list[Event]) -> list[Event]:
    """Each with its invocation right before it."""
    return [
        event for process, kind, parts in operations for event in ((process, "invoke", parts), (process, kind, parts))
    ]


@pytest.mark.parametrize(("operations", "position", "reason"), NOT_ONE)
def test_what_registers_cannot_mean_is_refused_with_its_position(
    operations: list[Event], position: int, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(MalformedHistory, match=reason) as refusal:
        found_in(write(tmp_path / "h", completed(operations)), 1, Assumed())
    assert refusal.value.position == position


def test_a_list_that_was_read_is_refused() -> None:
    operation = {"start": 4, "end": 5, "process": 0, "type": 1, "place": 0, "f": 0, "key": "x", "values": [1]}
    rows = register_rows(pa.Table.from_pylist([operation | {"value": 0}], schema=MICRO_ROWS), buckets=3)
    found = register_findings(rows, assumed=Assumed()).to_pylist()
    assert found[-1]["because"] == "micro-operation 0 reads a list, where x is a register"


def test_edges_have_the_reasons_that_their_kind_needs(tmp_path: Path) -> None:
    events = completed(
        [
            (0, "ok", [("r", "x", None), ("r", "y", None)]),
            (1, "ok", [("w", "x", 1)]),
            (2, "ok", [("r", "x", 1), ("w", "x", 2)]),
        ]
    )
    engine = InProcessEngine()
    assumed = Assumed(assumptions=frozenset({Assumption.WFR_KEYS}))
    wanted = wanted_edges([(Dependency.RW, 0, 2), (Dependency.WR, 2, 4), (Dependency.WW, 2, 4)])
    with micro_rows(CheckRequest(history=write(tmp_path / "h", events)), engine) as micro:
        rows = engine.mapped(micro, partial(register_rows, buckets=2), ROWS)
        kernel = partial(register_reasons, wanted=wanted, assumed=assumed)
        reasons = gathered_reasons(engine, engine.grouped(rows, ("bucket",), kernel, EDGE_REASONS), wanted)
    assert [tuple(row.values()) for row in reasons.to_pylist()] == [
        (Dependency.WW, 2, 4, "x", 1, 2, 4),
        (Dependency.WR, 2, 4, "x", 1, None, 4),
        (Dependency.RW, 0, 2, "x", None, 1, None),
    ]


def test_edges_that_would_be_too_many_are_counted(tmp_path: Path) -> None:
    readers, writers = 300, 400
    operations: list[Event] = [(n, "ok", [("r", "x", None)]) for n in range(readers)]
    operations += [(n, "ok", [("w", "x", n)]) for n in range(writers)]
    random.Random(1).shuffle(operations)
    found, edges, _ = found_in(write(tmp_path / "h", completed(operations)), 1, Assumed())
    assert {kind for kind, *_ in edges} == {Dependency.RW}
    assert len(edges) + found.tally(MISSING).count == readers * writers
    assert readers < len(edges) <= 64 * readers
    assert found.tally(READS).count == readers
