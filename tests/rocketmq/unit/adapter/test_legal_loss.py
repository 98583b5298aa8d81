"""The table of legal losses, cell by cell, as far as storms can produce them: which messages it excuses, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness.errors import UsageError
from harness.record.fault_log import FaultWindow
from harness.record.node_events import TableOfReports, node_events_table
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.legal_loss import legal_loss
from workloads.systems.rocketmq.loss_tables import ALL, catch_up_ns, noticed_ns
from workloads.systems.rocketmq.settings import RocketmqSettings

Faults = tuple[FaultWindow, ...]
Event = dict[str, Any]
PIECE = 4096
LOST_FROM_S = 0.8
"""All brokers write a piece each tenth of a second until the faults strike; what is lost is lost from here on."""
EARLY_S, TAIL_S, LATE_S = 0.5, 0.9, 40.0


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


def struck(*faults: tuple[str, float, float, tuple[str, ...]]) -> Faults:
    """Of (kind, start and stop in seconds, nodes)."""
    return tuple(
        FaultWindow(kind=kind, nodes=nodes, start_ns=ns(start_s), stop_ns=ns(stop_s))
        for kind, start_s, stop_s, nodes in faults
    )


def reports(
    recovered: Mapping[str, float],
    *,
    members: Sequence[tuple[float, list[int]]] = ((0.0, [1, 2, 3]),),
    elected: Sequence[tuple[float, int]] = (),
    votes: Sequence[tuple[float, str, int]] = (),
    roles: Sequence[tuple[float, str, str]] = (),
) -> TableOfReports:
    """`recovered`: broker -> up to which time what it wrote was there again after its start at 2 s. `elected`: when
    which broker. `votes`: when c3 became leader of the controllers, by whose votes, and with
    which last entry; 7 are decided."""
    events: dict[str, list[Event]] = {}
    for broker_id in (1, 2, 3):
        of = [{"time": 0, "event": "identity", "group": "g", "broker_id": broker_id}]
        of += [
            {"time": ns(n / 10), "event": "written", "start": (n - 1) * PIECE, "end": n * PIECE, "checksum": n}
            for n in range(1, 11)
        ]
        if f"b{broker_id}" in recovered:
            end = round(recovered[f"b{broker_id}"] * 10) * PIECE + 100
            of.append({"time": ns(2), "event": "recovered", "start": 0, "end": end})
        events[f"b{broker_id}"] = of
    events["b1"] += [
        {"time": ns(at_s), "event": "sync_state_set", "members": ids, "epoch": number}
        for number, (at_s, ids) in enumerate(members)
    ]
    for at_s, node, role in roles:
        events[node].append({"time": ns(at_s), "event": "role", "group": "broker-a", "role": role, "master_epoch": 2})
    events["c1"] = [
        {"time": ns(at_s), "event": "elected", "group": "broker-a", "master": number, "master_epoch": 2, "in_sync": [1]}
        for at_s, number in elected
    ]
    events["c3"] = [
        {"time": ns(at_s), "event": "voted_in", "term": 2, "by": by.split(), "needed": 2, "last": [1, last]}
        for at_s, by, last in votes
    ]
    events["c1"].append({"time": ns(0.4), "event": "raft_committed", "term": 1, "index": 7})
    return TableOfReports(node_events_table(events, {}))


ALL_LOST = reports(dict.fromkeys(("b1", "b2", "b3"), LOST_FROM_S))
NONE_LOST = reports(dict.fromkeys(("b1", "b2", "b3"), 1.0))

POWER = ("power", 1.01, 2, ("b1",))
NOTHING = struck()
KILL, PARTITION, CLOCK = (struck((kind, 1.01, 2, ("b1",))) for kind in ("kill", "partition", "clock"))
POWER_ONE = struck(POWER)
POWER_TWO = struck(("power", 1.01, 2, ("b1", "b2")))
POWER_ALL = struck(("power", 1.01, 2, ("b1", "b2", "b3")))
POWER_UNDER_KILLS = struck(POWER, ("kill", 1.5, 2.5, ("b2", "b3")))
POWER_UNDER_ONE_KILL = struck(POWER, ("kill", 1.5, 2.5, ("b2",)))
POWER_UNDER_SLOW_LINKS = struck(POWER, ("slow-links", 0.5, 5, ("b2", "b3")), ("clock", 0.5, 5, ("b2", "b3")))
DISK_LOST = struck(("lost-disk", 1.01, 2, ("b1",)))
DISK_LOST_UNDER_KILLS = struck(("lost-disk", 1.01, 2, ("b1",)), ("kill", 0.5, 2.5, ("b2", "b3")))
DISKS_LOST = struck(("lost-disk", 1.01, 2, ("b1", "b2", "b3")))
OLD_DISKS = struck(("old-disk", 0.5, 1.9, ("b1", "b2", "b3")))
ROT_UNDER_KILLS = struck(("bit-rot", 0.3, 0.3, ("b1",)), ("kill", 1.5, 2.5, ("b2", "b3")))
ROT = struck(("bit-rot", 0.3, 0.3, ("b1",)))
FULL = struck(("full-disk", 1.01, 2, ("b1", "b2", "b3")))

ALL_ACK_2 = RocketmqSettings()
ALL_ACK_2_ASYNC = RocketmqSettings(flush="async")
ALL_ACK_2_DURABLE = RocketmqSettings(ack_durable=True)
ALL_ACK_1 = RocketmqSettings(min_in_sync_replicas=1)
ALL_ACK_1_ASYNC = RocketmqSettings(min_in_sync_replicas=1, flush="async")
SINGLE_SYNC = RocketmqSettings(brokers=1, min_in_sync_replicas=1)
SINGLE_ASYNC = RocketmqSettings(brokers=1, min_in_sync_replicas=1, flush="async")
ONE_ACK = RocketmqSettings(all_ack=False, min_in_sync_replicas=1)
TWO_OF_TWO = RocketmqSettings(all_ack=False, brokers=2, in_sync_replicas=2, min_in_sync_replicas=2)
TWO_OF_TWO_ASYNC = RocketmqSettings(all_ack=False, brokers=2, in_sync_replicas=2, min_in_sync_replicas=2, flush="async")
TWO_OF_THREE = RocketmqSettings(all_ack=False, in_sync_replicas=2)
UNCLEAN = RocketmqSettings(unclean_election=True)


def is_excused(
    settings: RocketmqSettings, faults: Faults, reports: TableOfReports, at_s: float, anomaly: str = "lost-write"
) -> bool:
    return any(
        anomaly in one.anomalies and one.from_ns <= ns(at_s) <= one.until_ns and one.reason
        for one in legal_loss(settings, faults, reports).excuses
    )


@pytest.mark.parametrize(
    ("settings", "faults", "loss_is_legal"),
    [
        (SINGLE_ASYNC, KILL, False),
        (SINGLE_ASYNC, POWER_ONE, True),
        (SINGLE_ASYNC, PARTITION, False),
        (SINGLE_ASYNC, DISK_LOST, True),
        (SINGLE_SYNC, KILL, False),
        (SINGLE_SYNC, POWER_ONE, False),
        (SINGLE_SYNC, POWER_UNDER_KILLS, False),
        (SINGLE_SYNC, DISK_LOST, True),
        (ONE_ACK, KILL, True),
        (ONE_ACK, PARTITION, True),
        (ONE_ACK, POWER_ONE, True),
        (TWO_OF_TWO, KILL, False),
        (TWO_OF_TWO, PARTITION, False),
        (TWO_OF_TWO, POWER_ONE, False),
        (TWO_OF_TWO, POWER_UNDER_ONE_KILL, True),
        (TWO_OF_TWO, POWER_TWO, True),
        (TWO_OF_TWO, DISK_LOST, False),
        (TWO_OF_TWO_ASYNC, POWER_ONE, True),
        (TWO_OF_TWO_ASYNC, KILL, False),
        (TWO_OF_THREE, KILL, True),
        (TWO_OF_THREE, PARTITION, True),
        (ALL_ACK_1, KILL, False),
        (ALL_ACK_1, PARTITION, False),
        (ALL_ACK_1, POWER_ONE, False),
        (ALL_ACK_1, POWER_UNDER_KILLS, True),
        (ALL_ACK_1, DISK_LOST, False),
        (ALL_ACK_1_ASYNC, POWER_ONE, True),
        (ALL_ACK_2, KILL, False),
        (ALL_ACK_2, PARTITION, False),
        (ALL_ACK_2, POWER_ONE, False),
        (ALL_ACK_2, POWER_TWO, False),
        (ALL_ACK_2, POWER_ALL, True),
        (ALL_ACK_2, POWER_UNDER_KILLS, True),
        (ALL_ACK_2, POWER_UNDER_ONE_KILL, False),
        (ALL_ACK_2, POWER_UNDER_SLOW_LINKS, False),
        (ALL_ACK_2, DISK_LOST, False),
        (ALL_ACK_2, DISK_LOST_UNDER_KILLS, False),
        (ALL_ACK_2, DISKS_LOST, True),
        (ALL_ACK_2, OLD_DISKS, True),
        (ALL_ACK_2, ROT, False),
        (ALL_ACK_2, ROT_UNDER_KILLS, True),
        (ALL_ACK_2_ASYNC, POWER_ONE, False),
        (ALL_ACK_2_ASYNC, POWER_ALL, True),
        (ALL_ACK_2_ASYNC, POWER_TWO, True),
        (ALL_ACK_2_ASYNC, POWER_UNDER_ONE_KILL, True),
        (ALL_ACK_2_ASYNC, FULL, False),
        (ALL_ACK_2_DURABLE, POWER_ALL, False),
        (UNCLEAN, KILL, True),
        (UNCLEAN, PARTITION, True),
        *((settings, CLOCK, False) for settings in (SINGLE_ASYNC, ONE_ACK, TWO_OF_THREE, ALL_ACK_2, UNCLEAN)),
        *((settings, NOTHING, False) for settings in (SINGLE_ASYNC, ONE_ACK, TWO_OF_THREE, ALL_ACK_2, UNCLEAN)),
    ],
)
def test_loss_is_legal_exactly_where_the_table_says_and_of_what_was_gone_from_the_disks_alone(
    settings: RocketmqSettings, faults: Faults, loss_is_legal: bool
) -> None:
    members = [(0.0, list(range(1, settings.brokers + 1)))]
    told = reports(dict.fromkeys(("b1", "b2", "b3"), LOST_FROM_S), members=members)
    assert is_excused(settings, faults, told, TAIL_S) is loss_is_legal
    assert is_excused(settings, faults, told, TAIL_S, "lost") is loss_is_legal
    assert not is_excused(settings, faults, told, LATE_S)
    took_all = any("lost-disk" in fault.kinds for fault in faults)
    around = settings.unclean_election or settings in (ONE_ACK, TWO_OF_THREE)
    if not took_all and not around:
        assert not is_excused(settings, faults, told, EARLY_S)


def test_traces_of_a_loss_are_legal_until_its_faults_are_over_and_caught_up_with() -> None:
    after_s = 2.5 + catch_up_ns(ALL_ACK_2) / 1e9
    for anomaly in ("inconsistent-offsets", "nonmonotonic-poll", "confirmed-lost", "delivered-again"):
        assert is_excused(ALL_ACK_2, POWER_UNDER_KILLS, ALL_LOST, after_s - 0.1, anomaly)
        assert not is_excused(ALL_ACK_2, POWER_UNDER_KILLS, ALL_LOST, after_s + 0.1, anomaly)
        assert not is_excused(ALL_ACK_2, POWER_UNDER_KILLS, ALL_LOST, EARLY_S, anomaly)


def test_a_group_may_pass_over_what_gets_offsets_that_it_had_read_until_it_has_learned_of_the_loss() -> None:
    after_s = 2.5 + noticed_ns(ALL_ACK_2) / 1e9
    for anomaly in ("unconsumed", "lost-retry"):
        assert is_excused(ALL_ACK_2, POWER_UNDER_KILLS, ALL_LOST, after_s - 0.1, anomaly)
        assert not is_excused(ALL_ACK_2, POWER_UNDER_KILLS, ALL_LOST, after_s + 0.1, anomaly)
        assert not is_excused(ALL_ACK_2, POWER_UNDER_KILLS, ALL_LOST, EARLY_S, anomaly)
    assert not is_excused(ALL_ACK_2, POWER_UNDER_KILLS, ALL_LOST, after_s - 0.1, "lost")


def test_who_had_read_farther_than_the_log_reaches_goes_on_there_whenever_it_comes_again() -> None:
    for anomaly in ("consumer-offset-skip", "poll-skip"):
        assert is_excused(ALL_ACK_2, POWER_UNDER_KILLS, ALL_LOST, 60, anomaly)
        assert not is_excused(ALL_ACK_2, POWER_UNDER_KILLS, ALL_LOST, EARLY_S, anomaly)
        assert not is_excused(ALL_ACK_2, POWER_ONE, NONE_LOST, 60, anomaly)


def test_a_disk_that_was_the_only_one_to_have_it_excuses_it_under_unclean_elections_as_well() -> None:
    alone = RocketmqSettings(brokers=1, min_in_sync_replicas=1, unclean_election=True)
    wiped = struck(("lost-disk", 30, 31, ("b1",)))
    assert is_excused(alone, wiped, ALL_LOST, EARLY_S)
    assert not is_excused(alone, struck(("kill", 30, 31, ("b1",))), ALL_LOST, EARLY_S)


def test_who_was_not_in_the_set_need_not_have_held_it() -> None:
    shrunk = reports({"b1": LOST_FROM_S}, members=[(0.0, [1, 2, 3]), (0.85, [1, 2])])
    assert is_excused(ALL_ACK_2, POWER_UNDER_ONE_KILL, shrunk, TAIL_S)
    assert not is_excused(ALL_ACK_2, POWER_UNDER_ONE_KILL, shrunk, 0.82)
    without_it = reports({"b1": LOST_FROM_S}, members=[(0.0, [2, 3])])
    assert not is_excused(ALL_ACK_2, POWER_UNDER_KILLS, without_it, TAIL_S)


def test_nothing_but_the_piece_that_was_not_full_is_excused_where_everything_was_there_again() -> None:
    assert not is_excused(ALL_ACK_2, POWER_ALL, NONE_LOST, TAIL_S)
    assert is_excused(ALL_ACK_2, POWER_ALL, NONE_LOST, 1.005)


def test_without_reports_what_was_written_shortly_before_is_excused() -> None:
    margin_s = catch_up_ns(ALL_ACK_2) / 1e9
    faults = struck(("power", 20, 21, ("b1", "b2", "b3")))
    assert is_excused(ALL_ACK_2, faults, TableOfReports(), 20 - margin_s + 0.1)
    assert not is_excused(ALL_ACK_2, faults, TableOfReports(), 20 - margin_s - 0.1)
    assert not is_excused(ALL_ACK_2, faults, TableOfReports(), 20.1)


def test_reads_are_excused_where_disks_lost_what_was_read_and_not_where_acknowledgements_were_few() -> None:
    assert is_excused(ALL_ACK_2, POWER_ALL, ALL_LOST, TAIL_S, "dirty-read")
    assert not is_excused(ONE_ACK, KILL, TableOfReports(), TAIL_S, "dirty-read")
    assert is_excused(ONE_ACK, POWER_ONE, ALL_LOST, TAIL_S, "dirty-read")
    assert is_excused(UNCLEAN, KILL, TableOfReports(), TAIL_S, "fenced-write")


@pytest.mark.parametrize("kind", ["lost-disk", "old-disk", "bit-rot", "short-files"])
def test_a_broker_that_lost_an_epoch_with_its_disk_may_confirm_under_an_older_one(kind: str) -> None:
    faults = struck((kind, 1, 2, ("b1",)))
    assert is_excused(ALL_ACK_2, faults, TableOfReports(), 30, "fenced-write")
    assert not is_excused(ALL_ACK_2, faults, TableOfReports(), 0.5, "fenced-write")
    assert not is_excused(ALL_ACK_2, struck(POWER), ALL_LOST, 30, "fenced-write")


def excused_nodes(faults: Faults, reports: TableOfReports, at_s: float) -> set[tuple[str, ...]]:
    """At which nodes something is legal at a time that only a damaged disk explains; empty: at any."""
    excuses = legal_loss(ALL_ACK_2, faults, reports).excuses
    return {one.nodes for one in excuses if "unheld-ack" in one.anomalies and one.from_ns <= ns(at_s) <= one.until_ns}


def test_a_damaged_disk_explains_what_its_broker_lacks_until_that_is_whole_again_and_what_it_leads() -> None:
    faults = struck(("short-files", 1.01, 2, ("b2",)))
    again = reports({}, members=[(0.0, [1, 2, 3]), (1.1, [1, 3]), (5.0, [1, 2, 3])])
    assert excused_nodes(faults, again, 0.9) == set()
    assert excused_nodes(faults, again, 4.9) == {("b2",)}
    assert excused_nodes(faults, again, 5.1) == set()
    assert excused_nodes(faults, reports({}), 50.0) == {("b2",)}, "nobody says that it ever left the set"
    led = [(3.0, "b2", "master")]
    assert excused_nodes(faults, reports({}, roles=led), 2.9) == {("b2",)}
    assert excused_nodes(faults, reports({}, roles=led), 50.0) == {("b2",), ()}
    rot = struck(("bit-rot", 1.01, 2, ("b2",)))
    before = reports({}, members=[(0.0, [1, 2, 3]), (1.1, [1, 3]), (5.0, [1, 2, 3])], roles=[(0.5, "b2", "master")])
    assert excused_nodes(rot, before, 50.0) == {("b2",), ()}, "it led when the bits rotted, and they stay so"
    assert excused_nodes(faults, reports({}, roles=[(0.5, "b2", "master")]), 1.1) == {("b2",)}, "its process had ended"


def test_a_rotten_entry_of_a_queue_may_lead_to_another_message_than_the_one_written_before() -> None:
    rot = struck(("bit-rot", 1, 2, ("b1",)))
    assert is_excused(ALL_ACK_2, rot, TableOfReports(), 0.5, "internal-skip")
    assert not is_excused(ALL_ACK_2, rot, TableOfReports(), 30, "internal-skip"), "it was written afterwards"
    (misplaced,) = (one for one in legal_loss(ALL_ACK_2, rot, TableOfReports()).excuses if "poll-skip" in one.anomalies)
    assert misplaced.seen_from_ns == ns(1), "nothing shows before it has rotted"
    assert not is_excused(ALL_ACK_2, struck(("bit-rot", 1, 2, ("c1",))), TableOfReports(), 0.5, "internal-skip")
    assert not is_excused(ALL_ACK_2, POWER_ALL, ALL_LOST, 30, "internal-skip")


def test_what_an_older_master_had_confirmed_may_be_told_late_where_it_may_be_lost() -> None:
    assert is_excused(ALL_ACK_2_ASYNC, POWER_ALL, ALL_LOST, TAIL_S, "fenced-write")
    assert not is_excused(RocketmqSettings(ack_durable=True), POWER_ALL, ALL_LOST, TAIL_S, "fenced-write")


def test_who_joined_the_set_later_has_what_was_written_before_and_may_lose_it() -> None:
    joined = reports({"b2": 0.1}, members=[(0.0, [1, 3]), (0.9, [1, 2, 3])])
    never = reports({"b2": 0.1}, members=[(0.0, [1, 3])])
    faults = struck(("bit-rot", 0.3, 0.3, ("b2",)), ("kill", 1.5, 2.5, ("b1", "b3")))
    assert is_excused(ALL_ACK_2, faults, joined, EARLY_S)
    assert not is_excused(ALL_ACK_2, faults, never, EARLY_S)
    assert not is_excused(ALL_ACK_2, faults[:1], joined, EARLY_S)


def test_who_was_elected_while_its_disk_was_damaged_is_the_only_one_that_may_lead() -> None:
    cut = struck(("short-files", 1.1, 2.0, ("b2",)))
    for elected, excused in (((1.2, 2), True), ((1.2, 1), False), ((1.0, 2), False), ((2.5, 2), False)):
        told = reports({"b2": LOST_FROM_S}, elected=[elected])
        assert is_excused(ALL_ACK_2, cut, told, TAIL_S) is excused
        assert not is_excused(ALL_ACK_2, cut, told, EARLY_S)
    told = reports({"b2": LOST_FROM_S}, elected=[(1.2, 2)])
    assert not is_excused(RocketmqSettings(ack_durable=True), struck(("power", 1.1, 2.0, ("b2",))), told, TAIL_S)


def test_a_replica_may_be_put_out_of_the_set_while_what_it_says_comes_late() -> None:
    lasts_s = 15 * ALL_ACK_2.time_scale
    for kind in ("partition", "slow-nodes"):
        late = struck((kind, 1, 2, ("b1", "b2")))
        assert is_excused(ALL_ACK_2, late, TableOfReports(), 2 + lasts_s - 0.1, "needless-shrink")
        assert not is_excused(ALL_ACK_2, late, TableOfReports(), 2 + lasts_s + 0.1, "needless-shrink")
    assert not is_excused(ALL_ACK_2, struck(("clock", 1, 2, ("b1",))), TableOfReports(), 1.5, "needless-shrink")
    assert not is_excused(ALL_ACK_2, struck(("pause", 1, 2, ("c1",))), TableOfReports(), 1.5, "needless-shrink")


def test_a_fault_on_controllers_takes_no_broker_away() -> None:
    controllers = ("kill", 0.5, 3, ("c1", "c2", "c3"))
    assert not is_excused(ALL_ACK_2, struck(POWER, controllers), ALL_LOST, TAIL_S)
    assert not is_excused(ONE_ACK, struck(controllers), TableOfReports(), TAIL_S)


@pytest.mark.parametrize("kind", ["lost-disk", "old-disk", "bit-rot", "short-files"])
def test_a_controller_that_lost_what_it_had_synced_voids_every_promise(kind: str) -> None:
    faults = struck(("partition", 0.5, 1.5, ("c2",)), (kind, 1.01, 2, ("b2", "c2")))
    assert legal_loss(ALL_ACK_2, faults, NONE_LOST).anything == (
        f"c2 lost votes and decisions that it had synced ({kind} at 1.0 s)"
    )


@pytest.mark.parametrize(
    ("votes", "from_s"),
    [
        ([], 1.01),
        ([(0.5, "c2 c3", 6)], None),
        ([(1.5, "c1 c3", 6)], None),
        ([(1.5, "c1 c2 c3", 6)], None),
        ([(1.5, "c2 c3", 7)], None),
        ([(0.5, "c2 c3", 6), (1.5, "c1 c3", 6), (3, "c2 c3", 7), (4, "c2 c3", 6), (5, "c2 c3", 6)], 4),
    ],
)
def test_a_controller_that_lost_what_it_had_synced_voids_nothing_until_somebody_needs_its_vote(
    votes: list[tuple[float, str, int]], from_s: float | None
) -> None:
    legal = legal_loss(ALL_ACK_2, struck(("bit-rot", 1.01, 2, ("c2",))), reports({}, votes=votes))
    assert (legal.anything_from_ns if legal.anything else None) == (None if from_s is None else ns(from_s))


def test_a_controller_that_lost_what_it_had_synced_may_begin_again_in_an_older_term_and_no_other_may() -> None:
    (excuse,) = legal_loss(ALL_ACK_2, struck(("bit-rot", 1.01, 2, ("c2",))), reports({}, votes=[])).excuses
    assert (excuse.anomalies, excuse.nodes, excuse.from_ns) == (("epoch-back",), ("c2",), ns(1.01))
    assert "epoch-back" not in {
        name
        for one in legal_loss(ALL_ACK_2, struck(("power", 1.01, 2, ("c2",))), NONE_LOST).excuses
        for name in one.anomalies
    }


@pytest.mark.parametrize("kind", ["power", "failing-fsync", "full-disk", "kill"])
def test_a_controller_that_kept_what_it_had_synced_voids_nothing(kind: str) -> None:
    assert legal_loss(ALL_ACK_2, struck((kind, 1.01, 2, ("c2",))), NONE_LOST).anything == ""
    assert legal_loss(ALL_ACK_2, DISKS_LOST, NONE_LOST).anything == ""


def test_the_reason_names_who_lost_it_and_what_kept_the_others_from_saving_it() -> None:
    reasons = {one.reason for one in legal_loss(ALL_ACK_2, POWER_UNDER_KILLS, ALL_LOST).excuses}
    assert reasons == {"b1 lost power at 1.0 s while b2 was killed at 1.5 s and b3 was killed at 1.5 s"}


def deleted(*events: tuple[str, float, bool]) -> TableOfReports:
    """Of (broker, when it deleted files, for want of room)."""
    told: dict[str, list[Event]] = {}
    for node, at_s, forced in events:
        told.setdefault(node, []).append({"time": ns(at_s), "event": "deleted", "to": PIECE, "forced": forced})
    return TableOfReports(node_events_table(told, {}))


def test_what_was_kept_for_as_long_as_is_promised_may_be_gone_where_files_were_deleted_and_nothing_younger() -> None:
    expiring = RocketmqSettings(retention_s=10.0, time_scale=1.0)
    reported = deleted(("b2", 12.0, False), ("b1", 30.0, False))
    for anomaly in ("lost-write", "unseen", "dirty-read", "lost"):
        assert is_excused(expiring, NOTHING, reported, 19.9, anomaly)
        assert not is_excused(expiring, NOTHING, reported, 20.2, anomaly)
        assert not is_excused(expiring, NOTHING, TableOfReports(), 5.0, anomaly)
    configured = RocketmqSettings(deployment="dual-write", retention_s=10.0, time_scale=1.0)
    assert is_excused(configured, NOTHING, reported, 19.9, "lost-write")
    assert not is_excused(configured, NOTHING, reported, 20.2, "lost-write")
    assert is_excused(expiring, NOTHING, reported, 44.0, "poll-skip")
    assert not is_excused(expiring, NOTHING, reported, 60.0, "poll-skip"), "everywhere the files were deleted long ago"
    assert not is_excused(expiring, NOTHING, TableOfReports(), 5.0, "poll-skip")
    for anomaly in ("duplicate", "inconsistent-offsets", "internal-skip", "nonmonotonic-poll", "diverging-replicas"):
        assert not is_excused(expiring, NOTHING, reported, 5.0, anomaly)


def test_what_stood_in_no_file_that_was_deleted_may_not_be_gone_however_old_it_is() -> None:
    expiring = RocketmqSettings(retention_s=10.0, time_scale=1.0)
    written = [
        {"time": ns(n), "event": "written", "start": (n - 1) * PIECE, "end": n * PIECE, "checksum": n}
        for n in (1, 2, 3)
    ]
    deletion = {"time": ns(30.0), "event": "deleted", "to": 2 * PIECE, "forced": False}
    reported = TableOfReports(node_events_table({"b1": [*written, deletion]}, {}))
    assert is_excused(expiring, NOTHING, reported, 1.9)
    assert not is_excused(expiring, NOTHING, reported, 2.1)


def test_a_queue_goes_on_in_order_without_what_expired_after_it_had_been_given_out() -> None:
    expiring = RocketmqSettings(retention_s=10.0, time_scale=1.0)
    reported = deleted(("b1", 12.0, False), ("b1", 30.0, False))
    assert is_excused(expiring, NOTHING, reported, 25.0, "overtaken"), "given long after it was written"
    assert not is_excused(expiring, NOTHING, reported, 30.2, "overtaken")
    assert not is_excused(expiring, NOTHING, TableOfReports(), 5.0, "overtaken")


def test_younger_messages_may_go_only_where_a_disk_was_full() -> None:
    settings = RocketmqSettings(retention_s=10.0, time_scale=1.0, clean_when_full=True)
    reported = deleted(("b1", 12.0, True))
    full = struck(("full-disk", 11.0, 13.0, ("b1",)))
    assert is_excused(settings, full, reported, 11.9)
    assert not is_excused(settings, full, reported, 12.1)
    assert not is_excused(settings, struck(("full-disk", 11.0, 13.0, ("b2",))), reported, 11.9)
    assert not is_excused(settings, NOTHING, reported, 11.9)


def test_consumers_may_read_what_is_lost_under_a_kill_only_where_they_read_uncommitted_messages() -> None:
    for in_sync_replicas in (1, 3):
        shows = RocketmqSettings(
            all_ack=False, in_sync_replicas=in_sync_replicas, min_in_sync_replicas=1, read_uncommitted=True
        )
        assert is_excused(shows, KILL, TableOfReports(), TAIL_S, "dirty-read")
        assert is_excused(shows, PARTITION, TableOfReports(), TAIL_S, "dirty-read")
        assert not is_excused(shows, CLOCK, TableOfReports(), TAIL_S, "dirty-read")
        assert not is_excused(shows, KILL, TableOfReports(), LATE_S, "dirty-read")
    assert not is_excused(shows, KILL, TableOfReports(), TAIL_S, "unseen"), "all three had acknowledged it"
    with pytest.raises(UsageError, match="read_uncommitted needs all_ack=false"):
        RocketmqSettings(read_uncommitted=True)


def test_diverging_replicas_and_reads_of_what_was_never_sent_are_legal_nowhere() -> None:
    of_messages = {"diverging-replicas", "aborted-read", "duplicate", "unexpected-read"}
    of_nodes = {"diverging-logs", "two-masters", "two-leaders", "epoch-back", "unclean-election", "fenced-write"}
    assert not (of_messages | of_nodes) & set(ALL)


@pytest.mark.parametrize(
    "wrong",
    [{"brokers": 0}, {"brokers": 1}, {"learners": 3}, {"brokers": 3, "learners": 2}],
    ids=str,
)
def test_settings_under_which_nothing_could_be_sent_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        RocketmqSettings(**wrong)


def test_nodes_are_described_for_every_world() -> None:
    nodes = SYSTEM.nodes(RocketmqSettings(controllers=3, brokers=2), "local-read")
    assert [node.name for node in nodes] == ["c1", "c2", "c3", "b1", "b2"]
    assert [node.name for node in nodes if node.replica] == ["b1", "b2"]
    assert all(node.program.config["mutant"] == "local-read" for node in nodes)
