"""Steps of consumers and producers are the same, whether they come in transactions or one by one."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers.api.plan import CheckRequest
from checkers.in_process.engine import InProcessEngine
from checkers.log import LogChecker
from checkers.log.rows import LOG_MESSAGES
from harness.record.history import history_schema
from tests.references.log_transactions import PLAIN, random_transactions

Row = dict[str, Any]

STEPS = ("nonmonotonic-poll", "nonmonotonic-send", "poll-skip", "internal-skip", "internal-nonmonotonic")


def counted(rows: list[Row], path: Path) -> dict[str, int]:
    numbered = [{"index": i, "time": i * 1_000, **row} for i, row in enumerate(rows)]
    pq.write_table(pa.Table.from_pylist(numbered, schema=history_schema(LOG_MESSAGES)), path, row_group_size=11)
    anomalies = LogChecker().check(CheckRequest(history=path), InProcessEngine()).anomalies
    return {name: anomalies[name].count for name in STEPS if name in anomalies}


def one_by_one(rows: list[Row]) -> list[Row]:
    """Each transaction as single operations, all when it ends: a poll that was repositioned as one that seeks."""
    single: list[Row] = []
    for row in rows:
        for part in ((row["value"] or {}).get("txn") or ()) if row["f"] == "txn" else ():
            own = {"process": row["process"], "f": part["f"], "key": part["key"]}
            asked = 0 if part.get("repositioned") else part.get("from_offset")
            if row["type"] == "invoke":
                # A seek stands although its poll may never end.
                if part["f"] == "poll" and part["from_offset"] is not None:
                    single.append({**own, "type": "invoke", "value": {**PLAIN, "offset": part["from_offset"]}})
                    single.append({**own, "type": "fail", "value": None})
                continue
            single.append({**own, "type": "invoke", "value": {**PLAIN, "message": part["message"], "offset": asked}})
            shown = {name: part[name] for name in PLAIN}
            single.append({**own, "type": row["type"], "value": shown if row["type"] == "ok" else None})
        if row["f"] != "txn":
            single.append(row)
    return single


def compare(seeds: range, directory: Path) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(seed)
        rows = random_transactions(rng, 12)
        for row in rows:
            for part in (row["value"] or {}).get("txn") or ():
                part["repositioned"] = part["f"] == "poll" and row["type"] == "ok" and rng.random() < 0.2
                if part["messages"] and rng.random() < 0.2:
                    part["messages"] = part["messages"][::-1]
                elif part["messages"] and rng.random() < 0.3:
                    del part["messages"][1:2]
        found = counted(rows, directory / "transactions.parquet")
        assert found == counted(one_by_one(rows), directory / "single.parquet"), seed
        seen.update(found.keys())
    return seen


@pytest.mark.parametrize("cut", ["whole", pytest.param("in-pieces", marks=pytest.mark.gate)])
def test_transactions_make_the_steps_of_their_parts(cut: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if cut == "in-pieces":
        monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", 5)
        monkeypatch.setattr("checkers.buckets.BUCKET_ROWS", 7)
    assert set(compare(range(15), tmp_path)) == set(STEPS)
