"""Operations of a tool that writes its rows in another order than that in which things happened, by their times.

Rows of one moment are concurrent: invocations come before completions, but what one process does stays in its order.
All of the history is in memory meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from harness.jepsen.operation_columns import OperationColumns, joined
from harness.jepsen.scan import ABSENT, Int64
from harness.jepsen.source import BrokenText

_LAST = 1 << 40
"""Sorts a completion behind all invocations of its moment."""


def by_time(blocks: Iterable[OperationColumns]) -> OperationColumns:
    """All operations. Raises OSError, BrokenText, also where one has no time."""
    recorded = joined(list(blocks))
    time = recorded.numbers["time"]
    untimed = np.flatnonzero(time == ABSENT)
    if len(untimed):
        raise BrokenText(int(recorded.at[untimed[0]]), "an operation has no time, by which they are to be ordered")
    return recorded.taken(_order(time, _processes(recorded), _is_invoked(recorded)))


def _processes(recorded: OperationColumns) -> Int64:
    column = recorded.fields["process"]
    known: dict[object, int] = {}
    numbers = [known.setdefault((value.__class__, str(value)), len(known)) for value in column.values]
    return np.asarray(np.array(numbers, np.int64)[column.codes])


def _is_invoked(recorded: OperationColumns) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    column = recorded.fields["type"]
    return np.asarray(np.array([value == "invoke" for value in column.values], np.bool_)[column.codes])


def _order(time: Int64, process: Int64, invoked: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Int64:
    """Positions of the rows in the order in which they are taken to have happened."""
    rows = np.arange(len(time))
    if not len(rows):
        return rows
    together = np.lexsort((rows, process, time))
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = (time[together[1:]] != time[together[:-1]]) | (process[together[1:]] != process[together[:-1]])
    first = np.flatnonzero(starts)[np.cumsum(starts) - 1]
    ends = np.append(starts[1:], True)
    # A completion with which a process begins in this moment comes after the invocations of others.
    rank = rows - first + ~invoked[together[first]]
    rank[ends & ~invoked[together]] = _LAST
    of_row = np.empty(len(rows), np.int64)
    of_row[together] = rank
    return np.asarray(np.lexsort((rows, of_row, time)), np.int64)
