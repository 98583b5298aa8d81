"""The made-up stores that benchmarks and deciders are held against keep their level, unless something is planted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from transaction_stores import RETIRED, Keys, Level, Store, Values, Violation, committed, rows, write

from checkers.transactions.history.committed import INITIAL, NEVER, WRITES
from harness.record.history import read_history
from tests.references.commit_orders import allowed

PROMISED = {
    (Level.SERIALIZABLE, 0): "strict-serializable",
    (Level.SERIALIZABLE, 3): "strong-session-serializable",
    (Level.SNAPSHOT, 0): "strong-snapshot-isolation",
    (Level.SNAPSHOT, 3): "strong-session-snapshot-isolation",
    (Level.CAUSAL, 0): "causal",
    (Level.CAUSAL, 3): "causal",
}
FORBIDDEN = {
    Violation.WRITE_SKEW: ("serializable", "snapshot-isolation"),
    Violation.LOST_UPDATE: ("parallel-snapshot-isolation", "causal"),
    Violation.LONG_FORK: ("snapshot-isolation", "parallel-snapshot-isolation"),
    Violation.CAUSALITY: ("causal", "read-atomic"),
}
"""The weakest level that rules it out, and one that does not."""


def small(level: Level, lag: int, values: Values, seed: int) -> Store:
    return Store(
        level=level,
        values=values,
        transactions=6,
        sessions=3,
        keys=Keys(alive=2, writes=5),
        lag=lag,
        failed=0.1,
        indefinite=0.1,
        seed=seed,
    )


@pytest.mark.parametrize("values", Values)
@pytest.mark.parametrize(("level", "lag"), PROMISED)
def test_small_stores_keep_their_level(level: Level, lag: int, values: Values) -> None:
    for seed in range(25):
        store = small(level, lag, values, seed)
        assert allowed(PROMISED[level, lag], committed(store)), store


@pytest.mark.slow
@pytest.mark.parametrize("values", Values)
@pytest.mark.parametrize(("level", "lag"), PROMISED)
def test_many_small_stores_keep_their_level(level: Level, lag: int, values: Values) -> None:
    for seed in range(1_000, 1_800):
        store = small(level, lag, values, seed)
        assert allowed(PROMISED[level, lag], committed(store)), store


@pytest.mark.parametrize(
    ("level", "stronger"),
    [
        ((Level.SERIALIZABLE, 3), "strict-serializable"),
        ((Level.SNAPSHOT, 0), "serializable"),
        ((Level.CAUSAL, 3), "parallel-snapshot-isolation"),
    ],
)
def test_stores_are_no_better_than_their_level(level: tuple[Level, int], stronger: str) -> None:
    stores = (small(*level, Values.REGISTERS, seed) for seed in range(200))
    assert not all(allowed(stronger, committed(store)) for store in stores)


@pytest.mark.parametrize("values", Values)
@pytest.mark.parametrize("violation", Violation)
def test_what_is_planted_breaks_one_level_and_none_below(violation: Violation, values: Values) -> None:
    broken, kept = FORBIDDEN[violation]
    for seed in range(10):
        store = replace(small(Level.SERIALIZABLE, 0, values, seed), sessions=4, violation=violation)
        made = committed(store)
        assert not allowed(broken, made), store
        assert allowed(kept, made), store


def test_a_planted_violation_is_in_the_middle_and_changes_nothing_after_it() -> None:
    store = Store(
        level=Level.SERIALIZABLE, values=Values.REGISTERS, transactions=2_000, violation=Violation.LONG_FORK, seed=3
    )
    table = next(rows(store))
    of_keys = [
        (row["index"], part["key"])
        for row in table.select(["index", "value"]).to_pylist()
        for part in row["value"]["txn"]
        if part["key"] in ("10", "11")
    ]
    assert {key for _, key in of_keys} == {"10", "11"}
    assert all(1_600 < index < 2_400 for index, _ in of_keys)


def test_the_same_seed_gives_the_same_history_and_another_seed_another_one() -> None:
    store = Store(level=Level.CAUSAL, values=Values.LISTS, transactions=500, indefinite=0.05, failed=0.05)
    first, again, other = (next(rows(each)) for each in (store, store, replace(store, seed=2)))
    assert first.equals(again)
    assert not first.equals(other)


@pytest.mark.parametrize("sessions", [20, 5_000])
def test_a_written_store_is_a_history_in_row_groups(tmp_path: Path, sessions: int) -> None:
    path = tmp_path / "history.parquet"
    store = Store(
        level=Level.SNAPSHOT,
        values=Values.LISTS,
        transactions=40_000,
        sessions=sessions,
        indefinite=0.01,
        failed=0.01,
    )
    assert write(store, path) == 80_000
    assert pq.read_metadata(path).num_row_groups == 2
    types = Counter(read_history(path).table(["type"])["type"].to_pylist())
    assert types["invoke"] == 40_000 and types["ok"] > 39_000 and types["fail"] and types["info"]


Row = dict[str, Any]


def spans_of(history: list[Row]) -> dict[int, Row]:
    """The completion of each invocation, by the index of this."""
    begun: dict[int, int] = {}
    spans = {}
    for row in history:
        if row["type"] == "invoke":
            begun[row["process"]] = row["index"]
        else:
            spans[begun.pop(row["process"])] = row
    assert not begun
    return dict(sorted(spans.items()))


def writes_of(row: Row) -> dict[str, int]:
    """The last one to each key."""
    return {part["key"]: part["value"] for part in row["value"]["txn"] if part["f"] != "r"}


def shown_by(row: Row, values: Values) -> list[tuple[str, list[int]]]:
    """What reads showed, as lists; of a register, with one element at most."""
    name = "values" if values is Values.LISTS else "value"
    reads = [(part["key"], part[name]) for part in row["value"]["txn"] if part["f"] == "r" and row["type"] == "ok"]
    return [(key, [value] if isinstance(value, int) else value or []) for key, value in reads]


@pytest.mark.parametrize("values", Values)
@pytest.mark.parametrize("level", Level)
def test_what_stands_is_what_the_written_history_says(level: Level, values: Values) -> None:
    store = Store(level=level, values=values, transactions=3_000, keys=RETIRED, lag=5, indefinite=0.05, failed=0.05)
    stands = committed(store)
    spans = spans_of([row for table in rows(store) for row in table.to_pylist()])
    wrote = {
        (part["key"], part["value"]): start
        for start, row in spans.items()
        for part in row["value"]["txn"]
        if part["f"] != "r"
    }
    lists: dict[str, list[int]] = {}
    seen = set()
    for row in spans.values():
        for key, shown in shown_by(row, values):
            seen |= {wrote[key, value] for value in shown}
            before = lists.setdefault(key, shown)
            assert values is Values.REGISTERS or shown[: len(before)] == before[: len(shown)]
            lists[key] = max(before, shown, key=len)
    kept = [start for start, row in spans.items() if row["type"] == "ok" or start in seen]
    assert any(spans[start]["type"] == "info" for start in kept) and all(spans[s]["type"] != "fail" for s in kept)
    number = {start: t for t, start in enumerate(kept, start=1)}
    assert stands.start.tolist() == [-1, *kept]
    assert stands.end.tolist() == [-1, *(spans[s]["index"] if spans[s]["type"] == "ok" else NEVER for s in kept)]
    of_process = {spans[start]["process"]: int(stands.session[number[start]]) for start in kept}
    assert [of_process[spans[start]["process"]] for start in kept] == stands.session[1:].tolist()
    assert sorted(of_process.values()) == list(range(len(of_process)))

    written = []
    for start in kept:
        shown = iter(shown_by(spans[start], values))
        for part in spans[start]["value"]["txn"]:
            if part["f"] != "r" and writes_of(spans[start])[part["key"]] == part["value"]:
                written.append((number[start], part["key"], WRITES))
            elif part["f"] == "r" and spans[start]["type"] == "ok":
                key, values_shown = next(shown)
                writer = wrote[key, values_shown[-1]] if values_shown else None
                assert writer is None or writes_of(spans[writer])[key] == values_shown[-1]
                written.append((number[start], key, INITIAL if writer is None else number[writer]))
    assert [(t, writer) for t, _, writer in written] == list(
        zip(stands.transaction.tolist(), stands.writer.tolist(), strict=True)
    )
    names = dict(zip(stands.key.tolist(), (key for _, key, _ in written), strict=True))
    assert [names[key] for key in stands.key.tolist()] == [key for _, key, _ in written]
    neighbours = {
        (key, number[wrote[key, u]], number[wrote[key, v]])
        for key, shown in lists.items()
        for u, v in pairwise(shown)
        if wrote[key, u] != wrote[key, v]
    }
    assert {(names[key], u, v) for key, u, v in stands.version_edges.tolist()} == neighbours
    assert len(stands.version_edges) == len(neighbours)
