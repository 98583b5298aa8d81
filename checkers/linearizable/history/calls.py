"""Calls on one object that may have happened.

A call that failed did not happen (but see `FailedCas`). One that is indefinite or never completed may have happened at
any time after its invocation, or never. A call that only reads, and has no result, is left out."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from checkers.kernels.columns import (
    Int64,
)
from checkers.linearizable.model import FAILED, INDEFINITE, Call, FailedCas, Model
from checkers.linearizable.values import NEVER


class Row(NamedTuple):
    """A row of a history about one object. `at` is its index in the history; the default is its place among the
    rows."""

    process: int
    type: str
    f: str
    value: Hashable
    error: str | None = None
    at: int = -1


@dataclass(frozen=True, kw_only=True)
class Calls:
    """The calls on one object that may have happened, in the order of invocations. Times are history indices."""

    calls: Sequence[Call]
    start: Int64
    end: Int64
    """When each call ended; NEVER if indefinite."""

    def part(self, chosen: Int64) -> Calls:
        return Calls(calls=[self.calls[n] for n in chosen.tolist()], start=self.start[chosen], end=self.end[chosen])


def calls_of(model: Model, rows: Iterable[Row]) -> Calls:
    """The calls of rows. Raises ValueError for a function that the model does not have."""
    opened: dict[int, tuple[int, Row]] = {}
    found: list[tuple[int, int, Call]] = []
    for number, row in enumerate(rows):
        index = number if row.at < 0 else row.at
        if row.f not in model.functions:
            raise ValueError(f"row {index}: {model.name} has no {row.f!r}, only {', '.join(model.functions)}")
        if row.type == "invoke":
            opened[row.process] = (index, row)
            continue
        began, invocation = opened.pop(row.process)
        if row.type == "ok":
            found.append((began, index, Call(f=row.f, argument=invocation.value, result=row.value)))
        elif row.type == "info":
            found.append((began, NEVER, Call(f=row.f, argument=invocation.value, result=INDEFINITE)))
        elif row.f == "cas" and model.failed_cas is FailedCas.ANSWER and row.error is None:
            found.append((began, index, Call(f=row.f, argument=invocation.value, result=FAILED)))
    for began, invocation in opened.values():
        found.append((began, NEVER, Call(f=invocation.f, argument=invocation.value, result=INDEFINITE)))
    kept = sorted((entry for entry in found if not model.says_nothing(entry[2])), key=lambda entry: entry[0])
    return Calls(
        calls=[call for _, _, call in kept],
        start=np.array([start for start, _, _ in kept], dtype=np.int64),
        end=np.array([end for _, end, _ in kept], dtype=np.int64),
    )
