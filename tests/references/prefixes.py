"""Prefixes of histories, what may follow them, and what is told of them too early."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from checkers.api.plan import Checker, CheckRequest
from checkers.api.verdict import CheckerResult
from checkers.completions import CompletionEchoes
from checkers.in_process.engine import InProcessEngine
from checkers.prefix import certain, finals_of
from checkers.run import check_history
from harness.record.history import MalformedHistory, history_schema

ENGINE = InProcessEngine()
OTHERS = 1_000
"""Clients of another history have numbers from here on."""

Row = dict[str, Any]


def judge(
    rows: list[Row], value_type: pa.DataType, checker: Checker, repeats: tuple[CompletionEchoes, ...]
) -> CheckerResult | None:
    """None for what is no history."""
    numbered = []
    time_ns = -1_000
    for index, row in enumerate(rows):
        time_ns = max(row.get("time", time_ns + 1_000), time_ns)
        numbered.append({"key": None, "error": None, "node": None, **row, "index": index, "time": time_ns})
    history = pa.Table.from_pylist(numbered, schema=history_schema(value_type))
    try:
        return check_history(CheckRequest(history=history, repeats=repeats), {"it": checker}, ENGINE)["it"]
    except MalformedHistory:
        return None


def told_early(result: CheckerResult | None, checker: Checker) -> set[str]:
    """The names of what is certain of a prefix with this result."""
    return set() if result is None else {name for _, name, _ in certain({"it": result}, {"it": checker})}


def undone(early: set[str], whole: CheckerResult | None, checker: Checker) -> set[str]:
    """Those of them that the whole does not have, under this name or another one."""
    if whole is None:
        return set()
    broken = {name for name, summary in whole.anomalies.items() if summary.count and not summary.legal}
    return {name for name in early - broken if broken.isdisjoint(finals_of(checker)[name])}


def continued(prefix: list[Row], rest: list[Row], other: list[Row], rng: random.Random) -> Iterator[list[Row]]:
    """What may become of a prefix: it goes on as it did, some of what is open or begins later fails, or it goes on as
    another history does."""
    yield [*prefix, *rest]
    yield _with_failures([*prefix, *rest], len(prefix), rng)
    open_now: dict[int, Row] = {}
    for row in prefix:
        if row["type"] == "invoke":
            open_now[row["process"]] = row
        else:
            open_now.pop(row["process"], None)
    ended = [row | {"type": rng.choice(("fail", "info"))} for row in open_now.values() if rng.random() < 0.7]
    last = max((row["time"] for row in prefix if "time" in row), default=0)
    moved = [row | {"process": row["process"] + OTHERS * (row["process"] >= 0)} | _later(row, last) for row in other]
    yield [*prefix, *({**row, **_at(row, last)} for row in ended), *moved]


def _with_failures(rows: list[Row], since: int, rng: random.Random) -> list[Row]:
    asked: dict[int, Row] = {}
    changed = []
    for place, row in enumerate(rows):
        if row["type"] == "invoke":
            asked[row["process"]] = row
        elif place >= since and row["process"] in asked and rng.random() < 0.5:
            row = row | {"type": "fail", "value": asked[row["process"]]["value"]}
        changed.append(row)
    return changed


def _later(row: Row, last: int) -> Row:
    return {"time": row["time"] + last} if "time" in row else {}


def _at(row: Row, last: int) -> Row:
    return {"time": last} if "time" in row else {}
