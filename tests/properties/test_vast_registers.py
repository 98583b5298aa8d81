"""The decisive operations of a vast register give the same outcome as all of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.api.verdict import Verdict
from checkers.in_process.engine import InProcessEngine
from checkers.kernels.columns import NONE
from checkers.linearizable import MODELS, FailedCas, Linearizable
from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered, Outcome, Spans
from checkers.linearizable.objects.register import Register
from checkers.linearizable.registers.rows import COLUMNS, all_whole, from_batch, from_table
from checkers.linearizable.registers.sharded_registers import decisive_operations, vast_registers
from harness.record.history import history_schema

REGISTERS = 120
CLIENTS = 4
VALUE = pa.struct([pa.field("value", pa.int64()), pa.field("expected", pa.int64())])

Row = dict[str, Any]


def rows_of_register(rng: random.Random, number: int) -> list[Row]:
    """An atomic register whose operations take effect at a random step; some return a value that they must not."""
    rows: list[Row] = []
    value: int | None = None
    written: list[int | None] = [None]
    opened: dict[int, Row] = {}
    process = [number * 1_000 + client for client in range(CLIENTS)]
    lies, repeats = rng.choice((0.0, 0.0, 0.02, 0.1)), rng.random() < 0.1
    for step in range(1, rng.randint(30, 120)):
        client = rng.randrange(CLIENTS)
        if client not in opened:
            f = rng.choice(("read", "write"))
            argument = rng.randint(1, 9) if repeats else number * 1_000 + step
            content = {"value": argument if f == "write" else None}
            opened[client] = {"process": process[client], "f": f, "key": f"r{number}", "value": content, "done": False}
            rows.append({**opened[client], "type": "invoke"})
            continue
        row = opened[client]
        if not row["done"]:
            row["done"] = True
            if row["f"] == "write":
                value = row["value"]["value"]
                written.append(value)
            else:
                row["value"] = {"value": rng.choice(written) if rng.random() < lies else value}
        elif rng.random() < 0.1:
            rows.append({**opened.pop(client), "type": "info"})
            process[client] += CLIENTS
        else:
            rows.append({**opened.pop(client), "type": "ok"})
    return rows


def write(path: Path, rows: list[Row]) -> Path:
    numbered = [{**row, "index": i, "time": i * 1_000} for i, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(numbered, schema=history_schema(VALUE)), path, row_group_size=50)
    return path


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Registers one behind the other, each over several stretches of time, its operations over several batches."""
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 32)
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 23)
    monkeypatch.setattr("checkers.linearizable.registers.sharded_registers.VAST_ROWS", 10)
    rng = random.Random(5)
    return write(tmp_path / "h.parquet", [row for number in range(REGISTERS) for row in rows_of_register(rng, number)])


def whole_registers(path: Path) -> dict[str, Spans]:
    recorded = all_whole(from_batch(pq.read_table(path), FailedCas.IGNORED))
    return dict(recorded.by_register(np.unique(recorded.register)))


def decisive_of(path: Path) -> dict[str, Spans]:
    engine, rows = InProcessEngine(), pq.read_metadata(path).num_rows
    source = engine.history(path, COLUMNS)
    vast = vast_registers(engine, source, rows)
    decisive = decisive_operations(engine, source, vast, rows=rows, initial=NONE, failed_cas=FailedCas.IGNORED)
    recorded = from_table(engine.gather(decisive, rows))
    return dict(recorded.by_register(np.unique(recorded.register)))


def comparable(spans: Spans, outcome: Outcome) -> object:
    if isinstance(outcome, Contradiction):
        return spans.start[sorted(outcome.operations)].tolist(), outcome.because
    return outcome


def test_the_decisive_operations_give_the_same_outcome_as_all_of_them(history: Path) -> None:
    few = decisive_of(history)
    seen = {Ordered: 0, Contradiction: 0, Open: 0}
    for key, spans in whole_registers(history).items():
        outcome = Register().decide(spans, ())
        of_few = Register().decide(few[key], ())
        assert comparable(few[key], of_few) == comparable(spans, outcome), key
        seen[type(outcome)] += 1
    assert min(seen.values()) > REGISTERS // 20, seen


def test_what_is_kept_of_a_register_grows_with_time_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkers.linearizable.registers.sharded_registers.VAST_ROWS", 10)
    monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 4_000)
    rng = random.Random(8)
    rows: list[Row] = []
    value = None
    for step in range(10_000):
        f = rng.choice(("read", "write"))
        value = step if f == "write" else value
        row = {"process": 0, "f": f, "key": "r"}
        rows += [{**row, "type": "invoke", "value": {"value": step if f == "write" else None}}]
        rows += [{**row, "type": "ok", "value": {"value": value}}]
    few = decisive_of(write(tmp_path / "h.parquet", rows))["r"]
    assert len(few) <= 5 * 6 * 3
    assert isinstance(Register().decide(few, ()), Ordered)


def test_a_vast_register_with_a_cas_is_undecided(history: Path, tmp_path: Path) -> None:
    rows: list[Row] = []
    for step in range(20):
        content = {"value": step, "expected": step - 1} if step else {"value": step}
        row = {"process": 0, "f": "cas" if step else "write", "key": "r", "value": content}
        rows += [{**row, "type": "invoke"}, {**row, "type": "ok"}]
    path = write(tmp_path / "cas.parquet", rows)
    result = Linearizable(MODELS["cas-register"]).check(CheckRequest(history=path), InProcessEngine())
    assert result.verdict is Verdict.UNKNOWN
    assert "too many operations to be searched, and it has a cas (operation 2, completed by 3)" in result.reasons[0]
