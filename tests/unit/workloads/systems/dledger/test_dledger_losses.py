"""What DLedger may lose, case by case: which entries each excuse covers, from when to when, and nothing else.

Each member writes entry i at (i + 1)/10 s. Faults strike at 1.05 s, and who lost something starts again at 2 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness.record.excuse import Excuse
from harness.record.fault_log import FaultWindow
from harness.record.node_events import TableOfReports, node_events_table
from workloads.systems.dledger.legal_loss import (
    FORGOTTEN,
    GONE,
    LAST_NS,
    LATE_NS,
    REPLACED,
    REUSED,
    SKIPPED,
    legal_loss,
)
from workloads.systems.dledger.settings import DledgerSettings, Store

STRIKES_S = 1.05
FILE, DURABLE, MEMORY = DledgerSettings(), DledgerSettings(ack_durable=True), DledgerSettings(store=Store.MEMORY)


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


def struck(kind: str, *nodes: str, at_s: float = STRIKES_S) -> tuple[FaultWindow, ...]:
    return (FaultWindow(kind=kind, nodes=nodes, start_ns=ns(at_s), stop_ns=ns(2)),)


def reports(
    held: Mapping[str, int],
    recovered: Mapping[str, int] | None = None,
    *,
    elected: tuple[tuple[float, str, int, str], ...] = (),
    more: Mapping[str, list[dict[str, Any]]] | None = None,
) -> TableOfReports:
    """`held`: how many entries each had; `recovered`: with how many it started again; `elected`: when who led in which
    term by whose votes."""
    events: dict[str, list[dict[str, Any]]] = {node: [] for node in held}
    for node, count in held.items():
        events[node] += [
            {"time": ns((i + 1) / 10), "event": "written", "start": i, "end": i + 1, "checksum": i, "term": 1}
            for i in range(count)
        ]
        if node in (recovered or {}):
            events[node].append({"time": ns(2), "event": "recovered", "end": (recovered or {})[node]})
        events[node] += (more or {}).get(node, [])
    for at_s, node, term, voters in elected:
        row = {"event": "voted_in", "group": "storm", "term": term, "by": voters.split(), "needed": 2, "last": [1, 9]}
        events[node].append({"time": ns(at_s), **row})
    return TableOfReports(node_events_table(events, {}))


def gone(settings: DledgerSettings, faults: tuple[FaultWindow, ...], reported: TableOfReports) -> list[tuple[int, int]]:
    """The spans of what may be gone."""
    return [(one.from_ns, one.until_ns) for one in excuses(settings, faults, reported) if "lost-write" in one.anomalies]


def excuses(settings: DledgerSettings, faults: tuple[FaultWindow, ...], reported: TableOfReports) -> tuple[Excuse, ...]:
    return legal_loss(settings, faults, reported).excuses


BARE = {"n1": 10, "n2": 10, "n3": 8}
"""Entries 8 and 9 are held by a bare majority."""
ALL = {"n1": 10, "n2": 10, "n3": 10}


def test_what_a_bare_majority_held_is_excused_from_its_first_entry_to_its_last() -> None:
    assert gone(FILE, struck("power", "n1"), reports(BARE, {"n1": 7})) == [(ns(0.9), ns(1.0))]


def test_what_came_of_it_is_excused_once_it_was_lost() -> None:
    found = {one.anomalies: one for one in excuses(FILE, struck("power", "n1"), reports(BARE, {"n1": 7}))}
    assert {anomalies: (one.from_ns, one.until_ns, one.seen_from_ns) for anomalies, one in found.items()} == {
        GONE: (ns(0.9), ns(1.0), 0),
        REUSED: (ns(0.9), ns(STRIKES_S) + LATE_NS, 0),
        SKIPPED: (ns(0.9), LAST_NS, 0),
        REPLACED: (ns(0.9), LAST_NS, ns(STRIKES_S)),
    }
    assert "n1 lost entries (power at 1.1 s), and too few others held entries 8 to 9" in found[GONE].reason


def test_what_takes_its_place_may_be_older_at_a_member_that_lagged() -> None:
    """n3 has had another entry 8 since 0.3 s, and leads with it once n1 has lost that of a newer term."""
    older = {"time": ns(0.3), "event": "written", "start": 8, "end": 9, "checksum": 77, "term": 1}
    reported = reports(BARE, {"n1": 7}, more={"n3": [older]})
    found = {one.anomalies: one.from_ns for one in excuses(FILE, struck("power", "n1"), reported)}
    assert found == {GONE: ns(0.9), REUSED: ns(0.3), SKIPPED: ns(0.9), REPLACED: ns(0.3)}


def test_what_both_others_hold_is_not_excused() -> None:
    assert not excuses(FILE, struck("power", "n1"), reports(ALL, {"n1": 0}))


def test_of_five_a_bare_majority_are_three() -> None:
    five = DledgerSettings(members=5)
    held = {"n1": 10, "n2": 10, "n3": 10, "n4": 0, "n5": 0}
    assert gone(five, struck("power", "n1"), reports(held, {"n1": 9}))
    assert not excuses(five, struck("power", "n1"), reports({**held, "n4": 10}, {"n1": 9}))


def test_two_that_lose_it_at_once_do_not_hold_it_for_each_other() -> None:
    reported = reports(ALL, {"n1": 9, "n2": 9})
    assert gone(FILE, struck("power", "n1", "n2"), reported) == [(ns(1.0), ns(1.0))] * 2


@pytest.mark.parametrize("kind", ["kill", "partition", "pause", "clock"])
def test_faults_that_take_nothing_from_a_disk_excuse_nothing(kind: str) -> None:
    assert not excuses(FILE, struck(kind, "n1"), reports(BARE, {"n1": 7}))
    assert not excuses(DURABLE, struck(kind, "n1"), reports(BARE, {"n1": 7}))


@pytest.mark.parametrize("kind", ["power", "failing-fsync"])
def test_where_acknowledgements_are_durable_what_was_not_synced_never_counted(kind: str) -> None:
    assert gone(FILE, struck(kind, "n1"), reports(BARE, {"n1": 7}))
    assert not excuses(DURABLE, struck(kind, "n1"), reports(BARE, {"n1": 7}))


@pytest.mark.parametrize("kind", ["kill", "power"])
def test_a_log_in_memory_is_gone_with_its_process(kind: str) -> None:
    assert gone(MEMORY, struck(kind, "n1"), reports(BARE, {"n1": 0})) == [(ns(0.9), ns(1.0))]
    assert not excuses(MEMORY, struck(kind, "n1"), reports(ALL, {"n1": 0}))


def test_a_log_in_memory_of_a_process_that_ended_of_itself_is_gone_as_well() -> None:
    (one, *_) = excuses(MEMORY, (), reports(BARE, {"n1": 0}))
    assert "it keeps its log in memory" in one.reason
    assert not excuses(FILE, (), reports(BARE, {"n1": 0}))


@pytest.mark.parametrize("settings", [FILE, DURABLE], ids=["flushed", "durable"])
def test_a_lost_disk_may_forget_votes_and_what_a_bare_majority_held(settings: DledgerSettings) -> None:
    faults = struck("lost-disk", "n1")
    assert gone(settings, faults, reports(BARE, {"n1": 0})) == [(ns(0.9), ns(1.0))]
    assert not gone(settings, faults, reports(ALL, {"n1": 0}))
    (forgotten,) = [one for one in excuses(settings, faults, reports(ALL, {"n1": 0})) if one.anomalies == FORGOTTEN]
    assert (forgotten.from_ns, forgotten.nodes) == (ns(STRIKES_S), ("n1",))


def test_who_forgot_its_terms_may_lead_in_an_old_one_beside_a_member_with_entries_of_later_ones() -> None:
    def of_laggards(kind: str) -> list[tuple[int, tuple[str, ...]]]:
        found = excuses(MEMORY, struck(kind, "n1"), reports(ALL, {"n1": 0}))
        return [(one.seen_from_ns, one.nodes) for one in found if "electable-laggard" in one.anomalies]

    assert of_laggards("old-disk") == [(ns(STRIKES_S), ())]
    assert of_laggards("kill") == of_laggards("power") == []


def test_what_a_member_lost_before_it_was_struck_is_not_excused() -> None:
    assert not excuses(FILE, struck("power", "n1", at_s=3.0), reports(ALL, {"n1": 9}))


def test_who_never_starts_again_may_have_lost_all() -> None:
    (one, *_) = excuses(FILE, struck("power", "n1"), reports(BARE))
    assert "n1 was lost (power at 1.1 s)" in one.reason
    assert gone(FILE, struck("power", "n1"), reports(BARE)) == [(ns(0.9), ns(1.0))]
    assert not excuses(FILE, struck("power", "n1"), reports(ALL))


def test_who_has_cut_an_entry_holds_it_no_longer() -> None:
    cut = {"n3": [{"time": ns(1.02), "event": "truncated", "to": 8}]}
    assert not excuses(FILE, struck("power", "n1"), reports(ALL, {"n1": 7}))
    assert gone(FILE, struck("power", "n1"), reports(ALL, {"n1": 7}, more=cut)) == [(ns(0.9), ns(1.0))]


def test_another_entry_in_its_place_is_not_that_entry() -> None:
    cut: dict[str, list[dict[str, Any]]] = {
        "n3": [
            {"time": ns(1.02), "event": "truncated", "to": 9},
            {"time": ns(1.03), "event": "written", "start": 9, "end": 10, "checksum": 99, "term": 2},
        ]
    }
    assert gone(FILE, struck("power", "n1"), reports(ALL, {"n1": 9}, more=cut)) == [(ns(1.0), ns(1.0))]


SECOND_LEADER = ((1.5, "n2", 3, "n1 n2"), (2.5, "n3", 3, "n1 n3"))


def test_nothing_is_promised_once_a_forgotten_vote_has_made_a_second_leader_of_a_term() -> None:
    legal = legal_loss(FILE, struck("lost-disk", "n1", at_s=2.0), reports(ALL, {"n1": 0}, elected=SECOND_LEADER))
    assert legal.anything_from_ns == ns(2.5)
    assert "by its vote n3 led in term 3 like n2" in legal.anything


@pytest.mark.parametrize(
    ("faults", "elected"),
    [
        (struck("power", "n1"), SECOND_LEADER),
        (struck("lost-disk", "n2", at_s=1.9), SECOND_LEADER),
        (struck("lost-disk", "n1", at_s=2.6), SECOND_LEADER),
        (struck("lost-disk", "n1"), ((1.5, "n2", 3, "n1 n2"), (2.5, "n3", 4, "n1 n3"))),
        (struck("lost-disk", "n1"), ((1.5, "n2", 3, "n1 n2"), (2.5, "n2", 3, "n1 n2"))),
    ],
    ids=["no vote lost", "another one's vote", "lost later", "another term", "the same leader"],
)
def test_otherwise_all_else_stays_promised(
    faults: tuple[FaultWindow, ...], elected: tuple[tuple[float, str, int, str], ...]
) -> None:
    assert not legal_loss(FILE, faults, reports(ALL, {"n1": 0}, elected=elected)).anything
