"""What the compiler is busy with is said while it is, once for each purpose."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.elements.rows import ELEMENTS
from harness import compiled
from harness.compiled import interpreted, store
from harness.record.history import history_schema
from stormproof.cli.compiling import announce_compiling


def test_each_purpose_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_listeners", [])
    said: list[str] = []
    announce_compiling(said.append)
    for module in (
        "checkers.transactions.elle.graph.search",
        "checkers.transactions.orders.weak.levels",
        "checkers.elements.bank",
        "harness.jepsen.scan",
    ):
        compiled._compiling(module)
    assert said == [
        "compiling the search for cycles among transactions (once on this machine, about 50 s)",
        "compiling kernels of the checkers (once on this machine, about 5 s)",
        "compiling the reader of histories (once on this machine, about 6 s)",
    ]


def test_a_first_check_says_on_standard_error_that_it_compiles_and_a_second_has_nothing_to_say(tmp_path: Path) -> None:
    rows = [("invoke", "enqueue", 1), ("ok", "enqueue", 1), ("invoke", "dequeue", None), ("ok", "dequeue", 1)]
    rows += [("invoke", "drain", None), ("ok", "drain", None)]
    history = [
        {"index": i, "time": i, "process": 0, "type": kind, "f": f, "value": {"value": value, "values": []}}
        for i, (kind, f, value) in enumerate(rows)
    ]
    pq.write_table(pa.Table.from_pylist(history, schema=history_schema(ELEMENTS)), tmp_path / "history.parquet")
    command = "from stormproof.cli.main import main; main()"
    words = ["check", "history.parquet", "--workload", "queue", "--engine", "inprocess", "--json"]
    first, second = [
        subprocess.run(
            [sys.executable, "-c", command, *words],
            cwd=tmp_path,
            env={**os.environ, store.CHOSEN: str(tmp_path / "kernels"), interpreted.NEVER: "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        for _ in range(2)
    ]
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert "stormproof: compiling kernels of the checkers (once on this machine, about" in first.stderr
    assert "compiling" not in second.stderr
