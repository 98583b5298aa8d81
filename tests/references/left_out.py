"""The same history with less said: what documents allow to leave out of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

Row = dict[str, Any]

ASKED: Mapping[str, tuple[str, ...]] = {
    "queue": ("enqueue", "ack"),
    "set": ("add",),
    "counter": ("add",),
    "causal-reverse": ("write",),
    "causal": ("write", "txn"),
    "long-fork": ("write", "txn"),
}
"""Of which functions of a workload an ok completion only repeats what was asked, or parts of it."""


def with_less_said(rows: list[Row], workload: str, rng: random.Random) -> list[Row]:
    """Some indefinite completions are gone; others, and failed ones, hold nothing or no key; ok ones do not repeat."""
    left = []
    for row in rows:
        if row["type"] == "invoke":
            left.append(row)
            continue
        if row["type"] == "info" and rng.random() < 0.5:
            continue
        if row["type"] != "ok":
            row = row | {"value": rng.choice((None, row["value"]))}
        elif row["f"] in ASKED.get(workload, ()) and row["value"] and rng.random() < 0.5:
            row = row | {"value": _silent(row["value"])}
        left.append(row | {"key": rng.choice((None, row["key"], row["key"]))})
    return left


def _silent(value: Row) -> Row:
    if value.get("txn") is None:
        return value | {"value": None}
    # What was read is an answer, and cannot be left out.
    return value if any(part["f"] == "r" for part in value["txn"]) else value | {"txn": None}
