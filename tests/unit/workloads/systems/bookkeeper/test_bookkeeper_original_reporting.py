"""Lines that brokers of a release log become the events that ours write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.reporting import Account
from workloads.systems.bookkeeper.original.reporting import OriginalReporting

AT_NS = 1_795_759_200_000_000_000
"""2026-11-27 06:00:00 in UTC, second 0 of the run."""
LOGGED = (
    "2026-11-27 06:00:01.250 INFO OwnedPartition - owns storm-0",
    "2026-11-27 06:00:01.300 INFO LedgerCreateOp - Ensemble: [b1:3181, b2:3181, b3:3181] for ledger: 7",
    "2026-11-27 06:00:01.500 INFO OwnedPartition - lists ledger 7 of storm-0 at place 2",
    "\tat java.base/java.lang.Thread.run(Thread.java:840)",
    "2026-11-27 06:00:02.000 INFO OwnedPartition - lost ledger 7 of storm-0: BKLedgerFencedException: fenced off",
    "2026-11-27 06:00:03.000 INFO OwnedPartition - owns storm-0 no more",
)


def account(lines: Sequence[str], wall_at_zero_ns: int | None = AT_NS) -> Account:
    return Account(observed=(), logs={"bookkeeper.log": lines}, console=(), wall_at_zero_ns=wall_at_zero_ns)


def events(logged: Account) -> list[dict[str, Any]]:
    return [dict(event) for event in OriginalReporting().events("p1", logged)]


def test_who_owned_a_partition_and_its_ledgers_are_read_from_what_a_broker_logs() -> None:
    assert events(account(LOGGED)) == [
        {"time": 1_250_000_000, "event": "owner", "partition": "storm-0"},
        {"time": 1_500_000_000, "event": "ledger_listed", "partition": "storm-0", "ledger": 7, "place": 2},
        {"time": 2_000_000_000, "event": "ledger_lost", "partition": "storm-0", "ledger": 7},
        {"time": 3_000_000_000, "event": "no_owner", "partition": "storm-0"},
    ]


def test_what_a_wrong_clock_dated_by_a_broker_is_left_out() -> None:
    assert events(account(LOGGED, wall_at_zero_ns=None)) == []


def test_a_bookie_whose_heap_was_too_small_casts_doubt_on_its_run() -> None:
    reporting = OriginalReporting()
    assert reporting.doubts(account(LOGGED)) == []
    assert len(reporting.doubts(account([*LOGGED, "java.lang.OutOfMemoryError: Java heap space"]))) == 1
