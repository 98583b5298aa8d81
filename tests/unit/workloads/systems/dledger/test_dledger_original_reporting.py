"""Lines that members of the public library log become the events that ours write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.reporting import Account
from workloads.systems.dledger.original_reporting import OriginalReporting

AT_NS = 1_795_759_200_000_000_000
"""2026-11-27 06:00:00 in UTC, second 0 of the run."""
ELECTOR = "INFO io.openmessaging.storage.dledger.DLedgerLeaderElector -"
LOGGED = (
    f"2026-11-27 06:00:01.250 [StateMaintainer] {ELECTOR} [n1] [ChangeRoleToCandidate] from term: 2 and currTerm: 1",
    f"2026-11-27 06:00:01.500 [StateMaintainer] {ELECTOR} [n1] [ChangeRoleToLeader] from term: 2 and currTerm: 2",
    "java.lang.IllegalStateException: of no date",
    f"2026-11-27 06:00:02.000 [NettyServerPublicExecutor_4] {ELECTOR} [n1][ChangeRoleToFollower] from term: 3 "
    "leaderId: n2 and currTerm: 3",
)


def account(console: Sequence[str], wall_at_zero_ns: int | None = AT_NS) -> Account:
    return Account(observed=(), logs={}, console=console, wall_at_zero_ns=wall_at_zero_ns)


def events(node: str, logged: Account) -> list[dict[str, Any]]:
    return [dict(event) for event in OriginalReporting(("n1",)).events(node, logged)]


def test_its_part_in_each_term_is_read_from_what_a_member_logs() -> None:
    assert events("n1", account(LOGGED)) == [
        {"time": 1_250_000_000, "event": "candidate", "group": "storm", "term": 1},
        {"time": 1_500_000_000, "event": "leader", "group": "storm", "term": 2},
        {"time": 2_000_000_000, "event": "follower", "group": "storm", "term": 3},
    ]


def test_members_of_ours_report_themselves() -> None:
    assert events("n2", account(LOGGED)) == []


def test_what_a_wrong_clock_dated_is_left_out() -> None:
    assert events("n1", account(LOGGED, wall_at_zero_ns=None)) == []


def test_a_member_whose_heap_was_too_small_casts_doubt_on_its_run() -> None:
    reporting = OriginalReporting(("n1",))
    assert reporting.doubts(account(LOGGED)) == []
    assert len(reporting.doubts(account([*LOGGED, "java.lang.OutOfMemoryError: Java heap space"]))) == 1
