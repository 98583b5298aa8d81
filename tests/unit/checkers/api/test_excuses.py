"""An excuse holds for what was under way within its span, both ends included, and for nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from checkers.api.excuses import Excuses
from checkers.in_process.engine import InProcessEngine
from harness.record.excuse import ANY, Excuse
from harness.record.history import history_schema

HISTORY = pa.Table.from_pylist(
    [{"index": i, "time": 10 * i, "process": i, "type": "invoke", "f": "send"} for i in range(4)],
    schema=history_schema(pa.struct([("value", pa.int64())])),
)
"""Operations 0 to 3 began at 0, 10, 20 and 30 ns."""


def excuse(from_ns: int, until_ns: int, *anomalies: str) -> Excuse:
    return Excuse(anomalies=anomalies or ("lost",), reason="power", from_ns=from_ns, until_ns=until_ns)


def split(excuses: Excuses, anomaly: str, *spans: tuple[int, int]) -> dict[int | None, list[int]]:
    begun, ended = (np.array(column, dtype=np.int64) for column in zip(*spans, strict=True))
    return {number: positions.tolist() for number, positions in excuses.split(anomaly, begun, ended)}


@pytest.mark.parametrize("batch_rows", [1, 3, 1_000])
@pytest.mark.parametrize(
    ("from_ns", "until_ns", "operations"),
    [
        (10, 20, (1, 2)),
        (9, 29, (1, 2)),
        (11, 30, (2, 3)),
        (10, 10, (1, 1)),
        (0, 9, (0, 0)),
        (-5, 99, (0, 3)),
        (11, 19, (2, 1)),
        (31, 40, (4, 3)),
        (-5, -1, (0, -1)),
    ],
)
def test_a_span_of_time_is_one_of_operations_both_ends_included(
    from_ns: int, until_ns: int, operations: tuple[int, int], batch_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("checkers.history_batches.BATCH_ROWS", batch_rows)
    other = excuse(0, 30)
    excuses = Excuses.by_operation((excuse(from_ns, until_ns), other), InProcessEngine(), HISTORY)
    assert (excuses.first[0], excuses.last[0]) == operations
    assert (excuses.first[1], excuses.last[1]) == (0, 3)


def test_what_meets_a_span_is_excused_and_what_only_comes_near_is_not() -> None:
    spans = ((0, 9), (0, 10), (12, 15), (0, 99), (20, 30), (21, 30))
    assert split(Excuses.by_time((excuse(10, 20),)), "lost", *spans) == {0: [1, 2, 3, 4], None: [0, 5]}


def test_any_anomaly_is_one_that_is_placed_by_time_and_none_that_is_placed_by_what_was_written() -> None:
    excuses = (excuse(0, 5, "lost"), excuse(10, 20, ANY))
    assert split(Excuses.by_time(excuses), "unheld-ack", (9, 9), (10, 10)) == {1: [1], None: [0]}
    assert split(Excuses.by_operation(excuses, InProcessEngine(), HISTORY), "lost", (1, 1)) == {None: [0]}


@pytest.mark.parametrize("anomaly", [ANY, "lost"])
def test_what_shows_before_what_excuses_it_is_not_excused_however_early_it_was_written(anomaly: str) -> None:
    excuses = Excuses.by_time((replace(excuse(0, 12, anomaly), seen_from_ns=10),))
    placed, seen = np.array([5, 5, 12, 13], dtype=np.int64), np.array([9, 10, 15, 15], dtype=np.int64)
    found = {number: which.tolist() for number, which in excuses.split("lost", placed, placed, seen=seen)}
    assert found == {0: [1, 2], None: [0, 3]}
    assert split(excuses, "lost", (5, 9), (5, 10)) == {0: [1], None: [0]}, "it showed when it ended"


def test_by_when_something_shows_is_counted_in_operations_as_well() -> None:
    excuses = Excuses.by_operation((replace(excuse(0, 30), seen_from_ns=11),), InProcessEngine(), HISTORY)
    assert split(excuses, "lost", (0, 1), (0, 2)) == {0: [1], None: [0]}


def test_the_first_excuse_that_holds_counts_and_only_for_the_anomalies_that_it_names() -> None:
    excuses = Excuses.by_time((excuse(0, 10), excuse(5, 30, "torn"), excuse(0, 20, "torn", "lost")))
    spans = ((1, 1), (15, 15), (25, 25))
    assert split(excuses, "lost", *spans) == {0: [0], 2: [1], None: [2]}
    assert split(excuses, "torn", *spans) == {1: [1, 2], 2: [0], None: []}
    assert split(excuses, "stuck", *spans) == {None: [0, 1, 2]}
    assert split(Excuses(), "lost", *spans) == {None: [0, 1, 2]}
    assert excuses.about("stuck", "torn") and not excuses.about("stuck") and not Excuses().about("lost")


def test_where_nothing_is_excused_no_history_is_read() -> None:
    excuses = Excuses.by_operation((), InProcessEngine(), HISTORY.select(["index"]))
    assert (excuses.of, len(excuses.first), len(excuses.last)) == ((), 0, 0)


def test_an_excuse_for_some_keys_holds_for_these_and_for_what_has_no_known_one() -> None:
    excuses = Excuses.by_time((replace(excuse(0, 30), keys=("a", "b")), replace(excuse(0, 30), keys=("c",))))
    placed = np.zeros(5, dtype=np.int64)
    keys = ["a", "c", "d", None, "b"]
    found = {number: which.tolist() for number, which in excuses.split("lost", placed, placed, keys=keys)}
    assert found == {0: [0, 3, 4], 1: [1], None: [2]}
    assert split(excuses, "lost", (0, 0)) == {0: [0], None: []}, "nobody says which it is about"
    assert excuses.keys == ("a", "b", "c")
