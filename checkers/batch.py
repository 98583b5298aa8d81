"""Many short histories judged at once, laid behind each other: an order of them all is made of an order of each.

Each gets processes and keys of its own, and begins once the one before it has ended. Nothing that happens in one then
has to do with another one, so where nothing is wrong with all of them, nothing is with any. That holds for checkers
that judge objects or transactions by their keys (`Composable`), and of these alone is it claimed.

Only that nothing is wrong is found out here. A history in which something is, or in which too little happened to tell,
is left to be judged by itself, with what it is told of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from checkers.api.evidence import Evidence
from checkers.api.plan import Checker, CheckRequest, Engine
from checkers.api.verdict import CheckerResult, Verdict
from checkers.completions import CompletionEchoes
from checkers.deadline_engine import EngineInTime
from checkers.history_batches import encoded
from checkers.kernels.columns import Bool, Int64, codes
from checkers.run import check_history
from checkers.search_budget import Searches
from checkers.statistics import Statistics
from checkers.vacuity import Vacuity
from harness.operation import NEMESIS
from harness.record.history import MalformedHistory

ROUNDS = 4
"""So often those are left out with which something is wrong, and the others are judged again."""
MOST_SEARCHED_S = 1.0
"""A history that is searched for longer is judged by itself, where it is searched for as long as it takes."""


@runtime_checkable
class Composable(Protocol):
    """A checker for which histories without a key or a process in common, one behind the other, are right exactly if
    each of them is."""

    @property
    def shows(self) -> tuple[Evidence, ...]:
        """Any of these in a history keeps its verdict from being vacuous in the eyes of the checker; none if all do."""

    def apart(self, rows: pa.Table, names: pa.Array) -> pa.Table:
        """The rows with other keys, before each of which stands the name of its row."""


@dataclass(frozen=True, kw_only=True)
class Together:
    """What some histories came to."""

    valid: frozenset[int] = frozenset()
    """Positions of those in which nothing was found; the others are to be judged by themselves."""
    results: Mapping[str, CheckerResult] = field(default_factory=dict)
    """By checker, as of each of them."""


def are_composable(checkers: Iterable[Checker]) -> bool:
    """Whether histories that these judge can be judged together."""
    return all(isinstance(checker, (Composable, Statistics, Vacuity)) for checker in checkers)


def judge_together(
    histories: Sequence[pa.Table],
    checkers: Mapping[str, Checker],
    repeats: tuple[CompletionEchoes, ...],
    engine: Engine,
) -> Together:
    """`histories` have one schema, and `checkers` are composable."""
    judging = {name: checker for name, checker in checkers.items() if isinstance(checker, Composable)}
    wanted = [one for checker in checkers.values() for one in _evidence(checker) if one]
    left = np.arange(len(histories))
    for number in range(ROUNDS):
        if len(left) < 2:
            break
        laid = _laid([histories[place] for place in left.tolist()])
        if number == 0:
            told = _have_evidence(laid, wanted)
            if not told.all():
                left = left[told]
                continue
        request = CheckRequest(history=_apart(laid, judging.values()), repeats=repeats, searches=Searches.ALL)
        in_time = EngineInTime(engine, time.time() + MOST_SEARCHED_S)
        wrong, results = _check(request, judging, in_time, laid.begins)
        if not wrong.any():
            return Together(valid=frozenset(left.tolist()), results=results)
        left = left[~wrong]
    return Together()


@dataclass(frozen=True, kw_only=True)
class _Laid:
    """Histories behind each other, with the keys that they had."""

    rows: pa.Table
    begins: Int64
    """The first row of each, of which it has at least one."""

    @property
    def owner(self) -> Int64:
        """The history of each row."""
        return _owner(self.begins, np.arange(self.rows.num_rows))


def _owner(begins: Int64, rows: Int64) -> Int64:
    return np.searchsorted(begins, rows, side="right") - 1


def _laid(histories: Sequence[pa.Table]) -> _Laid:
    rows = encoded(pa.concat_tables(histories))
    ends = np.cumsum([history.num_rows for history in histories])
    begins = np.concatenate(([0], ends[:-1]))
    process = rows["process"].to_numpy().astype(np.int64)
    most = np.maximum.reduceat(process, begins) + 1
    before = np.repeat(np.cumsum(most) - most, np.diff(np.append(begins, len(process))))
    own = pa.array(np.where(process == NEMESIS, NEMESIS, process + before), pa.int32())
    places = pa.array(np.arange(rows.num_rows))
    # What lies apart in time is told by the order of rows; moments of several histories need not fit into 64 bits.
    for name, column in (("index", places), ("time", places), ("process", own)):
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
    return _Laid(rows=rows, begins=begins)


def _apart(laid: _Laid, checkers: Iterable[Composable]) -> pa.Table:
    rows, names = laid.rows, pa.array(laid.owner).cast(pa.string())
    for checker in checkers:
        rows = checker.apart(rows, names)
    return rows


def _evidence(checker: Checker) -> tuple[tuple[Evidence, ...], ...]:
    if isinstance(checker, Vacuity):
        return (checker.evidence,)
    return (checker.shows,) if isinstance(checker, Composable) else ()


def _have_evidence(laid: _Laid, wanted: Sequence[tuple[Evidence, ...]]) -> Bool:
    """Which of them have evidence of each of these kinds."""
    client = laid.rows["process"].to_numpy() != NEMESIS
    rows = laid.rows if client.all() else laid.rows.filter(pa.array(client))
    found_all = np.ones(len(laid.begins), dtype=np.bool_)
    for any_of in wanted:
        found = np.zeros(len(found_all), dtype=np.bool_)
        for one in any_of:
            seen = one.among(rows)
            owner, times = _on_one_key(_owner(laid.begins, seen["index"].to_numpy()), seen["key"])
            found[owner[times >= one.at_least]] = True
        found_all &= found
    return found_all


def _on_one_key(owner: Int64, key: pa.ChunkedArray) -> tuple[Int64, Int64]:
    """Of each key of each owner: the owner, and how many rows there are."""
    number = codes(key, key.unique().drop_null().to_pylist()).astype(np.int64) + 1
    pairs, times = np.unique(owner * (len(number) + 1) + number, return_counts=True)
    return pairs // (len(number) + 1), times


def _check(
    request: CheckRequest, checkers: Mapping[str, Checker], engine: Engine, begins: Int64
) -> tuple[Bool, Mapping[str, CheckerResult]]:
    """With which of them something may be wrong, and what was found of all."""
    try:
        results = check_history(request, checkers, engine)
    except MalformedHistory as error:
        return _named(() if error.position is None else (error.position,), begins), {}
    if all(result.verdict is Verdict.VALID and not result.anomalies for result in results.values()):
        return np.zeros(len(begins), dtype=np.bool_), results
    summaries = [summary for result in results.values() for summary in result.anomalies.values()]
    return _named((row for one in summaries for example in one.examples for row in example.operations), begins), {}


def _named(operations: Iterable[int], begins: Int64) -> Bool:
    """The histories of these operations; all where there are none."""
    rows = np.array(sorted(operations), dtype=np.int64)
    wrong = np.full(len(begins), not len(rows))
    wrong[_owner(begins, rows)] = True
    return wrong
