"""When two members may have one queue's lock: while masters change, and no longer."""

from __future__ import annotations

from typing import Any

from harness.record.node_events import TableOfReports, node_events_table
from workloads.systems.rocketmq.lock_changes import overlaps
from workloads.systems.rocketmq.loss_tables import LAST_NS
from workloads.systems.rocketmq.settings import RocketmqSettings

SECOND = 10**9
LIVES_S = 31.0
"""A lock's thirty seconds, and the margin."""
GROUP = ("b1", "b2")
SETTINGS = RocketmqSettings(time_scale=1.0)


def spans(**roles: list[tuple[float, str]]) -> list[tuple[float, float]]:
    """Of the excuses, in seconds; `roles`: broker -> when it took which role, or `recovered` as it started."""
    events: dict[str, list[dict[str, Any]]] = {
        node: [
            {"time": round(at_s * SECOND), "event": "recovered", "start": 0, "end": 0}
            if role == "recovered"
            else {"time": round(at_s * SECOND), "event": "role", "group": "g", "role": role, "master_epoch": number}
            for number, (at_s, role) in enumerate(of)
        ]
        for node, of in roles.items()
    }
    excuses = overlaps(SETTINGS, GROUP, TableOfReports(node_events_table(events, {})))
    return [(one.from_ns / SECOND, one.until_ns / SECOND) for one in excuses]


def test_under_one_master_no_lock_is_two_members() -> None:
    assert spans(b1=[(1, "master")], b2=[(1, "slave")]) == []


def test_a_lock_of_a_master_that_ended_before_lives_on_for_its_time() -> None:
    found = spans(b1=[(1, "master"), (8, "recovered"), (9, "slave")], b2=[(1, "slave"), (10, "master")])
    assert found == [(9.0, 10 + LIVES_S)]


def test_a_master_that_learns_late_that_it_is_none_gives_locks_until_then() -> None:
    found = spans(b1=[(1, "master"), (25, "slave")], b2=[(1, "slave"), (10, "master")])
    assert found == [(9.0, 25 + LIVES_S)]


def test_a_master_that_never_learned_it_may_give_locks_for_ever() -> None:
    assert spans(b1=[(1, "master")], b2=[(1, "slave"), (10, "master")]) == [(9.0, LAST_NS / SECOND)]


def test_a_master_that_starts_again_as_one_has_forgotten_its_locks() -> None:
    assert spans(b1=[(1, "master"), (19, "recovered"), (20, "master")]) == [(19.0, 20 + LIVES_S)]


def test_masters_of_other_groups_have_locks_of_their_own() -> None:
    assert spans(b1=[(1, "master")], b3=[(2, "master"), (10, "recovered"), (11, "master")]) == []


def test_every_change_is_one_of_its_own() -> None:
    found = spans(
        b1=[(1, "master"), (12, "slave"), (100, "master")],
        b2=[(1, "slave"), (10, "master"), (101, "slave")],
    )
    assert found == [(9.0, 12 + LIVES_S), (99.0, 101 + LIVES_S)]
