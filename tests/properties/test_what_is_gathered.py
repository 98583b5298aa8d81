"""The rows that are gathered to the driver do not grow with the history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from checkers.api.plan import CheckRequest, Dataset
from checkers.in_process.engine import InProcessEngine
from checkers.linearizable.checker import Linearizable
from checkers.linearizable.objects import MODELS
from checkers.run import check_history
from checkers.statistics import Statistics
from checkers.transactions.elle.graph.subgraphs import BLOCK
from stormproof.session.check_spec import checker_for
from tests.references.history_language import VALUE_TYPES, write_rows

Row = dict[str, Any]


@dataclass(frozen=True)
class Watched(InProcessEngine):
    """Counts the rows that are gathered."""

    gathered: list[int] = field(default_factory=list)

    def gather(self, source: Dataset, limit: int) -> pa.Table:
        table = super().gather(source, limit)
        self.gathered.append(table.num_rows)
        return table


def done(f: str, asked: Row, answer: Row, key: str | None = None) -> list[Row]:
    row = {"process": 0, "f": f, "key": key, "error": None, "node": None}
    return [{**row, "type": "invoke", "value": asked}, {**row, "type": "ok", "value": answer}]


def elements(number: int) -> list[Row]:
    """Each third one is lost."""
    dequeued = [] if number % 3 == 0 else done("dequeue", {}, {"value": number})
    return [*done("enqueue", {"value": number}, {"value": number}), *dequeued]


def registers(number: int) -> list[Row]:
    """Each of them is read as a value that was never written."""
    key = str(number)
    return [
        *done("write", {"value": number}, {"value": number}, key),
        *done("read", {}, {"value": number + 1}, key),
    ]


def added(number: int) -> list[Row]:
    return done("add", {"value": number}, {"value": number})


def generated(number: int) -> list[Row]:
    return done("generate", {}, {"value": number // 2})


def lists(number: int) -> list[Row]:
    """Each is appended to, then read as if it had not been, then as it is."""
    key = str(number)
    append = part("append", key) | {"value": number}
    asked = [[append], [part("r", key)], [part("r", key)]]
    answers = [[append], [part("r", key) | {"values": []}], [part("r", key) | {"values": [number]}]]
    return [row for both in zip(asked, answers, strict=True) for row in done("txn", *({"txn": txn} for txn in both))]


def written_registers(number: int) -> list[Row]:
    """Each is written, and read as if it were not."""
    key = str(number)
    write = part("w", key) | {"value": number}
    answers = [[write], [part("r", key)], [part("r", key) | {"value": number}]]
    return [
        row
        for txn in answers
        for row in done("txn", {"txn": [write if txn == [write] else part("r", key)]}, {"txn": txn})
    ]


def part(f: str, key: str) -> Row:
    return {"f": f, "key": key, "value": None, "values": None}


OPERATIONS = {
    "queue": elements,
    "register": registers,
    "set": added,
    "counter": added,
    "unique-ids": generated,
    "list-append": lists,
    "rw-register": written_registers,
}


@pytest.mark.parametrize(
    ("checker", "operations"),
    [
        ("queue", elements),
        ("register", registers),
        ("set", added),
        ("counter", added),
        ("unique-ids", generated),
        ("list-append", lists),
        ("rw-register", written_registers),
    ],
)
def test_ten_times_the_history_gathers_no_more_rows(
    checker: str, operations: Callable[[int], list[Row]], tmp_path: Path
) -> None:
    counts = []
    for size in (300, 3_000):
        rows = [row for number in range(size) for row in operations(number)]
        if checker == "set":
            rows += done("read", {}, {"values": [number for number in range(size) if number % 2]})
        if checker == "queue":
            rows += done("drain", {}, {"values": []})
        history = write_rows(rows, VALUE_TYPES[checker], tmp_path / f"{size}.parquet")
        judge = Linearizable(MODELS["cas-register"]) if checker == "register" else checker_for(checker, {})
        engine = Watched()
        results = check_history(CheckRequest(history=history), {judge.name: judge, "statistics": Statistics()}, engine)
        found = results[judge.name]
        assert checker == "counter" or sum(summary.count for summary in found.anomalies.values()) >= size // 4
        counts.append(engine.gathered)
    # Where the positions of transactions may be cut is gathered as one row a block.
    assert all(more - less in (0, len(rows) // BLOCK) for less, more in zip(*counts, strict=True))
