"""The table of legal losses without controllers, cell by cell: b1 is the master, b2 and b3 its slaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.record.node_events import TableOfReports, node_events_table
from tests.rocketmq.unit.adapter.test_legal_loss import (
    EARLY_S,
    LATE_S,
    PIECE,
    TAIL_S,
    Faults,
    is_excused,
    ns,
    struck,
)
from workloads.systems.rocketmq.legal_loss import legal_loss
from workloads.systems.rocketmq.loss_tables import noticed_ns
from workloads.systems.rocketmq.settings import RocketmqSettings

LOST_FROM_S, SLAVES_HELD_UNTIL_S = 0.8, 0.7

KILL, PARTITION, CLOCK, SLOW = (
    struck((kind, 1.01, 2, ("b1",))) for kind in ("kill", "partition", "clock", "slow-disk")
)
POWER = struck(("power", 1.01, 2, ("b1",)))
POWER_ALL = struck(("power", 1.01, 2, ("b1", "b2", "b3")))
POWER_OF_A_SLAVE = struck(("power", 1.01, 2, ("b2",)))
DISK = struck(("lost-disk", 1.01, 2, ("b1",)))
DISK_OF_A_SLAVE = struck(("lost-disk", 1.01, 2, ("b2",)))
DISKS = struck(("lost-disk", 1.01, 2, ("b1", "b2", "b3")))


def settings(deployment: str, flush: str) -> RocketmqSettings:
    return RocketmqSettings(deployment=deployment, flush=flush)  # type: ignore[arg-type]


def reports(
    *, set_aside_to_s: float | None = None, parted_to_s: float | None = None, mapped_s: float | None = None
) -> TableOfReports:
    """All write a piece each tenth of a second, slaves until a while before the fault; who starts again at 2 s has what
    was written until `LOST_FROM_S`. A slave keeps beside its log what it had up to some time."""
    events: dict[str, list[dict[str, Any]]] = {}
    for node in ("b1", "b2", "b3"):
        until = 10 if node == "b1" else round(SLAVES_HELD_UNTIL_S * 10)
        events[node] = [{"time": 0, "event": "identity", "group": "g", "broker_id": int(node[1]) - 1}]
        events[node] += [
            {"time": ns(n / 10), "event": "written", "start": (n - 1) * PIECE, "end": n * PIECE, "checksum": n}
            for n in range(1, until + 1)
        ]
        end = round(LOST_FROM_S * 10) * PIECE + 100
        events[node].append({"time": ns(2), "event": "recovered", "start": 0, "end": end})
    if set_aside_to_s is not None:
        kept = {"start": PIECE, "end": round(set_aside_to_s * 10) * PIECE}
        events["b2"].append({"time": ns(2.5), "event": "set_aside", **kept})
    if mapped_s is not None:
        events["b1"].append({"time": ns(mapped_s), "event": "mapped", "start": 0, "end": 1})
    if parted_to_s is not None:
        parted = {"start": 0, "end": round(parted_to_s * 10) * PIECE}
        events["b2"].append({"time": ns(2.5), "event": "parted", **parted})
    return TableOfReports(node_events_table(events, {}))


TOLD = reports()
V, L = False, True
CELLS: Mapping[tuple[str, str], tuple[tuple[Faults, bool], ...]] = {
    ("single", "async"): ((KILL, V), (POWER, L), (PARTITION, V), (DISK, L)),
    ("single", "sync"): ((KILL, V), (POWER, V), (PARTITION, V), (DISK, L)),
    ("masters", "async"): ((KILL, V), (POWER, L), (PARTITION, V), (DISK, L)),
    ("masters", "sync"): ((KILL, V), (POWER, V), (PARTITION, V), (DISK, L)),
    ("async-slaves", "async"): ((KILL, V), (POWER, L), (POWER_ALL, L), (PARTITION, V), (DISK, L)),
    ("async-slaves", "sync"): ((KILL, V), (POWER, V), (POWER_ALL, V), (PARTITION, V), (DISK, L)),
    ("dual-write", "async"): ((KILL, V), (POWER, V), (POWER_ALL, L), (PARTITION, V), (DISK, V), (DISKS, L)),
    ("dual-write", "sync"): ((KILL, V), (POWER, V), (POWER_ALL, V), (PARTITION, V), (DISK, V), (DISKS, L)),
}
NEVER = (CLOCK, SLOW, struck())
OF_SLAVES = (POWER_OF_A_SLAVE, DISK_OF_A_SLAVE)


@pytest.mark.parametrize(
    ("deployment", "flush", "faults", "loss_is_legal"),
    [
        (deployment, flush, faults, legal)
        for (deployment, flush), cells in CELLS.items()
        for faults, legal in (
            *cells,
            *((faults, V) for faults in (*NEVER, *(OF_SLAVES if deployment != "masters" else ()))),
        )
    ],
)
def test_loss_is_legal_exactly_where_the_table_says(
    deployment: str, flush: str, faults: Faults, loss_is_legal: bool
) -> None:
    given = settings(deployment, flush)
    assert is_excused(given, faults, TOLD, TAIL_S) is loss_is_legal
    assert is_excused(given, faults, TOLD, TAIL_S, "lost") is loss_is_legal
    assert not is_excused(given, faults, TOLD, LATE_S)
    assert legal_loss(given, faults, TOLD).anything == ""


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_of_a_masters_disk_that_is_lost_only_what_no_slave_had_yet_may_be_missing(flush: str) -> None:
    given = settings("async-slaves", flush)
    assert is_excused(given, DISK, TOLD, SLAVES_HELD_UNTIL_S + 0.05)
    assert not is_excused(given, DISK, TOLD, EARLY_S)
    assert is_excused(settings("single", flush), DISK, TOLD, EARLY_S)


def test_what_a_dual_write_master_lost_with_its_power_must_be_on_its_slave() -> None:
    given = settings("dual-write", "async")
    assert is_excused(given, POWER, reports(set_aside_to_s=0.9), TAIL_S)
    assert not is_excused(given, POWER, reports(set_aside_to_s=0.9), 0.95)
    assert not is_excused(given, POWER, reports(), TAIL_S)


@pytest.mark.parametrize("faults", [POWER, DISK], ids=["power", "disk"])
def test_what_only_a_parted_slave_has_is_not_lost_and_consumers_need_not_get_it(faults: Faults) -> None:
    given, told = settings("dual-write", "async"), reports(parted_to_s=0.9)
    for anomaly in ("lost", "unconsumed", "delivered-late"):
        assert is_excused(given, faults, told, TAIL_S, anomaly)
        assert not is_excused(given, faults, told, 0.95, anomaly)
        assert not is_excused(given, KILL, told, TAIL_S, anomaly)
    assert not is_excused(given, faults, told, TAIL_S)


@pytest.mark.parametrize("deployment", ["async-slaves", "dual-write"])
def test_without_its_slave_a_master_of_dual_write_may_acknowledge_nothing(deployment: str) -> None:
    given, is_dual = settings(deployment, "async"), deployment == "dual-write"
    for anomaly in ("no-progress", "delivered-late", "stuck-consumer"):
        assert is_excused(given, POWER, reports(parted_to_s=0.9), 60, anomaly) == is_dual
        assert not is_excused(given, POWER, reports(set_aside_to_s=0.9), 60, anomaly)
        assert not is_excused(given, KILL, reports(parted_to_s=0.9), 60, anomaly)


@pytest.mark.parametrize("anomaly", ["no-progress", "segment-overlap", "lost-write", "diverging-replicas"])
def test_with_messages_the_mapping_of_a_static_topic_may_be_lost(anomaly: str) -> None:
    given = settings("async-slaves", "async")
    static = replace(given, static_queues=4)
    assert is_excused(static, POWER, reports(mapped_s=TAIL_S), 0.1, anomaly)
    assert not is_excused(given, POWER, reports(mapped_s=TAIL_S), 0.1, anomaly)
    assert not is_excused(static, POWER, reports(mapped_s=EARLY_S), EARLY_S, anomaly)
    assert not is_excused(static, KILL, reports(mapped_s=TAIL_S), EARLY_S, anomaly)
    assert not is_excused(replace(static, flush="sync"), POWER, reports(mapped_s=TAIL_S), EARLY_S, anomaly)


def test_what_was_shown_while_no_slave_was_there_may_be_lost_with_the_masters_disk() -> None:
    given = settings("dual-write", "sync")
    cut_off = struck(("lost-disk", 1.01, 2, ("b1",)), ("partition", TAIL_S - 0.02, 2, ("b1", "b2", "b3")))
    assert is_excused(given, cut_off, TOLD, TAIL_S)
    assert not is_excused(given, cut_off, TOLD, EARLY_S)
    one_cut_off = struck(("lost-disk", 1.01, 2, ("b1",)), ("kill", TAIL_S - 0.02, 2, ("b2",)))
    assert not is_excused(given, one_cut_off, TOLD, TAIL_S)


def test_filters_and_keys_may_not_fit_the_log_of_a_slave_that_is_parted() -> None:
    given = settings("async-slaves", "async")
    for anomaly in ("filtered-skip", "key-not-found", "key-misleads", "torn-batch"):
        assert is_excused(given, POWER, reports(parted_to_s=0.9), 60, anomaly)
        assert not is_excused(given, POWER, TOLD, 60, anomaly)


def test_a_rotten_entry_of_a_consume_queue_hides_an_earlier_message_where_there_is_no_other_replica() -> None:
    rot = struck(("bit-rot", 1.01, 1.02, ("b1",)))
    for anomaly in ("lost-write", "dirty-read", "torn-batch"):
        assert is_excused(settings("masters", "sync"), rot, TOLD, EARLY_S, anomaly)
        assert not is_excused(settings("masters", "sync"), rot, TOLD, 60, anomaly)
    assert not is_excused(settings("dual-write", "sync"), rot, TOLD, EARLY_S)


def test_rotten_bytes_of_a_log_are_copied_in_the_place_of_those_that_were_confirmed() -> None:
    rot = struck(("bit-rot", 1.01, 1.02, ("b1",)))
    assert is_excused(settings("dual-write", "sync"), rot, TOLD, EARLY_S, "rewritten-log")
    assert not is_excused(settings("dual-write", "sync"), KILL, TOLD, EARLY_S, "rewritten-log")


def test_a_group_may_pass_over_what_gets_offsets_that_it_had_read_until_it_has_learned_of_the_loss() -> None:
    given = settings("single", "async")
    after_s = 2 + noticed_ns(given) / 1e9
    for anomaly in ("unconsumed", "lost-retry"):
        assert is_excused(given, POWER, TOLD, 2.5, anomaly)
        assert not is_excused(given, POWER, TOLD, after_s + 0.1, anomaly)
        assert not is_excused(given, POWER, TOLD, EARLY_S, anomaly)
        assert not is_excused(settings("single", "sync"), POWER, TOLD, 2.5, anomaly)
        assert not is_excused(given, KILL, TOLD, 2.5, anomaly)
    assert not is_excused(given, POWER, TOLD, 2.5, "lost")


@pytest.mark.parametrize("kind", ["clock", "strobe", "slow-nodes"])
@pytest.mark.parametrize("deployment", ["single", "async-slaves", "dual-write", "controller"])
def test_a_message_may_come_early_while_the_clock_of_a_broker_is_wrong(deployment: str, kind: str) -> None:
    given = settings(deployment, "sync")
    assert is_excused(given, struck((kind, 1.01, 2, ("b1",))), TOLD, 1.5, "delivered-early")
    assert not is_excused(given, struck((kind, 1.01, 2, ("b1",))), TOLD, LATE_S, "delivered-early")
    assert not is_excused(given, struck((kind, 1.01, 2, ("n1",))), TOLD, 1.5, "delivered-early")
    assert not is_excused(given, KILL, TOLD, 1.5, "delivered-early")


def test_what_was_not_synced_is_excused_from_where_the_log_ended_afterwards() -> None:
    for deployment in ("single", "async-slaves"):
        assert not is_excused(settings(deployment, "async"), POWER, TOLD, EARLY_S)
        assert is_excused(settings(deployment, "async"), POWER, TOLD, TAIL_S, "dirty-read")
        assert not is_excused(settings(deployment, "sync"), POWER, TOLD, TAIL_S, "dirty-read")


@pytest.mark.parametrize("deployment", ["async-slaves", "dual-write"])
def test_a_slave_may_differ_for_good_from_a_master_that_lost_its_disk_and_from_no_other(deployment: str) -> None:
    for flush in ("sync", "async"):
        given = settings(deployment, flush)
        for anomaly in ("diverging-replicas", "inconsistent-offsets", "rewritten-log"):
            assert is_excused(given, DISK, TOLD, LATE_S, anomaly)
            assert not is_excused(given, DISK_OF_A_SLAVE, TOLD, LATE_S, anomaly)
            assert not is_excused(given, KILL, TOLD, TAIL_S, anomaly)
            assert not is_excused(given, POWER, TOLD, LATE_S, anomaly)


def test_a_group_is_not_excused_by_what_struck_another() -> None:
    given = RocketmqSettings(deployment="async-slaves", groups=2, brokers=2, flush="async")
    assert is_excused(given, struck(("power", 1.01, 2, ("b3",))), TOLD, TAIL_S)
    assert not is_excused(given, struck(("power", 1.01, 2, ("b4",))), TOLD, TAIL_S)


@pytest.mark.parametrize("deployment", ["async-slaves", "dual-write"])
def test_of_a_disk_that_is_lost_twice_all_that_was_written_in_between_may_be_missing(deployment: str) -> None:
    twice = struck(("lost-disk", 1.01, 2, ("b1",)), ("lost-disk", 5, 6, ("b1",)))
    given = settings(deployment, "sync")
    assert is_excused(given, twice, TOLD, 4)
    assert not is_excused(given, twice, TOLD, EARLY_S), "the slaves have that, and are read as before"
    assert not is_excused(given, twice, TOLD, 7)


def test_the_reason_says_who_lost_what() -> None:
    reasons = {one.reason for one in legal_loss(settings("async-slaves", "sync"), DISK, TOLD).excuses}
    assert "b1 lost everything at 1.0 s (lost-disk b1), and no slave had it yet" in reasons


@pytest.mark.parametrize("deployment", ["single", "masters", "async-slaves", "dual-write"])
def test_a_configured_master_forgets_locks_when_it_starts_again(deployment: str) -> None:
    lives = [{"time": ns(at_s), "event": "role", "group": "g", "role": "master"} for at_s in (0, 2)]
    again = TableOfReports(node_events_table({"b1": lives}, {}))
    once = TableOfReports(node_events_table({"b1": lives[:1]}, {}))
    assert is_excused(settings(deployment, "sync"), KILL, again, 2.5, "overlap")
    assert not is_excused(settings(deployment, "sync"), KILL, once, 2.5, "overlap")
