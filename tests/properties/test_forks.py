"""Histories with long forks are parallel snapshots though they are none of one store, and are decided as such."""

from __future__ import annotations

import pytest
from transaction_stores import Keys, Level, Store, Values, Violation
from transaction_stores import committed as store_committed

from checkers.api.verdict import Verdict
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.transactions.orders import long_forks, parallel_snapshot
from checkers.transactions.orders.events import ExternalOrder
from checkers.transactions.orders.long_forks import without_forks
from checkers.transactions.orders.parallel_snapshot import MODELS, parallel_snapshot_decided
from checkers.transactions.orders.total_order import decided
from tests.properties.test_parallel_snapshot_against_definition import explains
from tests.references.transaction_histories import committed

LONG_FORK = """
    w(a,1)
    w(b,1)
    r(a,1) r(b,-)
    r(b,1) r(a,-)
"""


@pytest.mark.parametrize("pick", [0, 1])
def test_one_read_of_a_fork_is_left_out_and_who_reads_still_comes_behind(pick: int) -> None:
    left = without_forks(committed(LONG_FORK), ExternalOrder.NOTHING, pick)
    assert left is not None and left[1]
    reads = {(reader, key) for reader, key in zip(left[0].accesses.reader, left[0].accesses.read_key, strict=True)}
    assert len(reads) == 3 and len(reads - {(3, 0), (3, 1), (4, 0), (4, 1)}) == 0
    left = without_forks(committed("w(a,1)\n r(a,1)"), ExternalOrder.NOTHING, pick)
    assert left is not None and not left[1]


def test_contradictions_of_many_events_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_forks, "LARGEST", 3)
    assert without_forks(committed(LONG_FORK), ExternalOrder.NOTHING, 0) is None


FIRST, *OTHERS = MODELS


@pytest.mark.parametrize("model", [FIRST, *(pytest.param(model, marks=pytest.mark.gate) for model in OTHERS)])
def test_a_history_of_busy_sessions_with_a_long_fork_is_found_to_be_one_of_parallel_snapshots(
    model: ConsistencyModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_snapshot, "chained", None)
    store = Store(
        level=Level.SNAPSHOT,
        values=Values.REGISTERS,
        transactions=400,
        sessions=60,
        keys=Keys(alive=20),
        lag=20,
        violation=Violation.LONG_FORK,
    )
    rows = store_committed(store)
    assert decided(rows, ConsistencyModel.SNAPSHOT_ISOLATION).verdict is Verdict.INVALID
    decision = parallel_snapshot_decided(rows, model)
    assert decision.order is not None and explains(model, rows, decision.order.tolist())
