"""Each smallest history of transactions rules out exactly those models in which no order explains it, by trying all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkers.api.plan import CheckRequest
from checkers.in_process.engine import InProcessEngine
from checkers.transactions.anomalies import NO_ORDER
from checkers.transactions.checker import ListAppend, RwRegister
from checkers.transactions.model.lattice import ConsistencyModel, weakest
from tests.references.commit_orders import allowed
from tests.references.history_language import WrittenHistory, parse_history
from tests.references.transaction_histories import Operation, Transaction, committed_of

CHECKERS = {"list-append": ListAppend(), "rw-register": RwRegister()}

SHOWN_WITHOUT_ORDERS = {
    "G1a",
    "G1b",
    "cyclic-versions",
    "dirty-update",
    "duplicate-elements",
    "future-read",
    "garbage-read",
    "incompatible-order",
    "internal",
}
"""What these are about is not part of what crosses committed transactions."""

HISTORIES = {
    f"{file.parent.name}/{file.stem}": written
    for workload in CHECKERS
    for file in sorted((Path(__file__).parents[1] / "histories" / workload).glob("*.history"))
    if SHOWN_WITHOUT_ORDERS.isdisjoint((written := parse_history(file.read_text())).anomalies)
    and "assume" not in written.options
}


def transactions_of(written: WrittenHistory) -> list[Transaction]:
    begun: dict[int, Transaction] = {}
    open_of: dict[int, int] = {}
    for index, row in enumerate(written.rows):
        process = row["process"]
        start = open_of.pop(process, index)
        kind, end = ("info", None) if row["type"] == "invoke" else (row["type"], index)
        operations = tuple(_operation(part) for part in row["value"]["txn"])
        begun[start] = Transaction(session=process, kind=kind, start=start, end=end, operations=operations)
        if end is None:
            open_of[process] = start
    return list(begun.values())


def _operation(part: dict[str, Any]) -> Operation:
    elements = part["values"]
    return part["f"], part["key"], part["value"] if elements is None else tuple(elements)


@pytest.mark.parametrize("name", HISTORIES)
def test_the_smallest_histories_rule_out_what_no_order_explains(name: str, tmp_path: Path) -> None:
    written = HISTORIES[name]
    transactions = committed_of(transactions_of(written))
    expected = [model for model in ConsistencyModel if not allowed(model.value, transactions)]
    request = CheckRequest(history=written.write(tmp_path / "history.parquet"))
    result = CHECKERS[written.checker].check(request, InProcessEngine())
    assert result.statistics["ruled_out"] == [model.value for model in expected]
    named = {anomaly.removeprefix(NO_ORDER) for anomaly in written.anomalies if anomaly.startswith(NO_ORDER)}
    assert named <= {model.value for model in weakest(expected)}


@pytest.mark.parametrize(
    ("workload", "never"),
    [
        # Sessions add nothing to it that is not a cycle, or forbidden by weaker models.
        ("list-append", {ConsistencyModel.STRONG_SESSION_READ_ATOMIC}),
        # Reads show no order of versions that could contradict itself.
        ("rw-register", {ConsistencyModel.READ_UNCOMMITTED, ConsistencyModel.STRONG_SESSION_READ_UNCOMMITTED}),
    ],
)
def test_each_model_is_the_weakest_that_some_smallest_history_breaks(
    workload: str, never: set[ConsistencyModel]
) -> None:
    weaker_alike = {ConsistencyModel.PARALLEL_SNAPSHOT_ISOLATION, ConsistencyModel.SERIALIZABLE}
    """Consistent view and repeatable read demand as much of what crosses transactions."""
    broken: set[ConsistencyModel] = set()
    for written in HISTORIES.values():
        if written.checker == workload:
            transactions = committed_of(transactions_of(written))
            broken.update(weakest(model for model in ConsistencyModel if not allowed(model.value, transactions)))
    assert broken == set(ConsistencyModel) - never - weaker_alike
