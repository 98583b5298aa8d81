"""The flat rows of transactions, against pairing each process's operations one after the other."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from checkers.api.plan import CheckRequest, Dataset
from checkers.in_process.engine import InProcessEngine
from checkers.kernels.columns import NONE
from checkers.transactions.history.committed import NEVER
from checkers.transactions.history.micro_operations import FUNCTIONS, TRANSACTION
from checkers.transactions.history.micro_rows import ENDS, MICRO_ROWS, NOTHING, micro_rows
from tests.references.history_language import write_rows
from tests.references.thousands import thousands

Row = dict[str, Any]


def random_rows(rng: random.Random) -> list[Row]:
    rows: list[Row] = []
    open_ones: dict[int, list[Row]] = {}
    for _ in range(rng.randrange(1, 30)):
        process = rng.randrange(4)
        if rng.random() < 0.1:
            rows.append({"process": -1, "type": "info", "f": "kill", "key": None, "value": None})
        elif process not in open_ones:
            tried = [_tried(rng) for _ in range(rng.randrange(4))]
            open_ones[process] = tried
            rows.append(_row(process, "invoke", tried))
        else:
            tried = open_ones.pop(process)
            kind = rng.choice(["ok", "ok", "fail", "info"])
            completed = [_answered(rng, part) for part in tried] if kind == "ok" else tried
            rows.append(_row(process, kind, rng.choice([completed, completed, None])))
    return [row | {"index": index} for index, row in enumerate(rows)]


def _row(process: int, kind: str, parts: list[Row] | None) -> Row:
    return {
        "process": process,
        "type": kind,
        "f": "txn",
        "key": None,
        "value": None if parts is None else {"txn": parts},
    }


def _tried(rng: random.Random) -> Row:
    f, key = rng.choice(FUNCTIONS), rng.choice("xyz")
    return {"f": f, "key": key, "value": None if f == "r" else rng.randrange(9), "values": None}


def _answered(rng: random.Random, part: Row) -> Row:
    return part | {"values": rng.choice([None, [], [1], [1, 2]])} if part["f"] == "r" else part


def expected(rows: list[Row]) -> list[tuple[Any, ...]]:
    """One transaction after the other, as (start, end, process, type, parts)."""
    found = []
    open_ones: dict[int, Row] = {}
    clients = [row for row in rows if row["process"] != -1]
    for row in [*clients, *({"process": p, "type": None} for p in range(4))]:
        process = row["process"]
        begun = open_ones.pop(process, None)
        if begun is not None:
            found.append(_transaction(begun, row))
        if row["type"] == "invoke":
            open_ones[process] = row
    return sorted(found)


def _transaction(begun: Row, ended: Row) -> tuple[Any, ...]:
    kind = ("invoke", "ok", "fail", "info").index(ended["type"] or "info")
    end = NEVER if ended["type"] is None else ended["index"]
    answer = (ended.get("value") or {}).get("txn") if kind == 1 else None
    parts = answer or (begun["value"] or {"txn": []})["txn"]
    read_or_written = [
        (place, FUNCTIONS.index(part["f"]), part["key"], part["value"], part["values"])
        for place, part in enumerate(parts)
        if answer or part["f"] != "r"
    ]
    return (begun["index"], end, begun["process"], kind, read_or_written)


def found_by_plan(path: Path) -> list[tuple[Any, ...]]:
    engine = InProcessEngine()
    with micro_rows(CheckRequest(history=path), engine) as micro:
        table = engine.gather(micro, 1_000)
    assert table.schema.names == MICRO_ROWS.names
    transactions: dict[int, list[Row]] = {}
    for row in table.to_pylist():
        transactions.setdefault(row["start"], []).append(row)
    found = []
    for parts in transactions.values():
        first = parts[0]
        read_or_written = [
            (part["place"], part["f"], part["key"], None if part["value"] == NONE else part["value"], part["values"])
            for part in parts
            if part["f"] > NOTHING
        ]
        found.append((first["start"], first["end"], first["process"], first["type"], read_or_written))
    return sorted(found)


@thousands()
def test_transactions_are_paired_however_the_history_is_cut(tmp_path: Path, seeds: range) -> None:
    for seed in seeds[::5]:  # each takes as long as five decisions
        rng = random.Random(seed)
        rows = random_rows(rng)
        path = write_rows(rows, TRANSACTION, tmp_path / "history.parquet")
        pq.write_table(pq.read_table(path), path, row_group_size=rng.choice([1, 2, 5, 100]))
        transactions = expected(rows)
        assert found_by_plan(path) == transactions, seed
        with micro_rows(CheckRequest(history=path), InProcessEngine(), ENDS) as ends:
            for _ in range(2):
                assert ends_of(ends) == [one[:4] for one in transactions], seed


def ends_of(rows: Dataset) -> list[tuple[Any, ...]]:
    table = InProcessEngine().gather(rows, 1_000)
    return sorted(zip(*(table[name].to_pylist() for name in ("start", "end", "process", "type")), strict=True))
