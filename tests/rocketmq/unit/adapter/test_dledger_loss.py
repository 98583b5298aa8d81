"""What brokers above a group of DLedger may lose, and the roles and promises that they are held to."""

from __future__ import annotations

from typing import Any

import pytest

from harness.invariants import Breaches
from harness.record.node_events import TableOfReports, node_events_table
from harness.watch import BOOTED
from tests.rocketmq.unit.adapter.test_legal_loss import Faults, is_excused, ns, struck
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.dledger_watch import BrokersInvariants, BrokersWatch
from workloads.systems.rocketmq.legal_loss import legal_loss
from workloads.systems.rocketmq.settings import RocketmqSettings

USUAL = RocketmqSettings(deployment="dledger")
DURABLE = RocketmqSettings(deployment="dledger", ack_durable=True)
PUBLIC = RocketmqSettings(deployment="dledger", groups=2, release="5.4.0")
TWO_GROUPS = RocketmqSettings(deployment="dledger", groups=2)
KILL, PARTITION = struck(("kill", 1.01, 2, ("b1",))), struck(("partition", 1.01, 2, ("b1",)))
POWER = struck(("power", 1.01, 2, ("b1",)))
DISK = struck(("lost-disk", 1.01, 2, ("b1",)))
POWER_ALL = struck(("power", 1.01, 2, ("b1", "b2", "b3")))


def reports(*, third_has: int, left: dict[str, int]) -> TableOfReports:
    """b1 and b2 write ten entries, a tenth of a second each, b3 some; after the fault each has so many left."""
    events: dict[str, list[dict[str, Any]]] = {}
    for node in ("b1", "b2", "b3"):
        count = third_has if node == "b3" else 10
        events[node] = [
            {"time": ns(n / 10), "event": "written", "log": "broker-a", "start": n - 1, "end": n, "checksum": n}
            for n in range(1, count + 1)
        ]
        if node in left:
            events[node].append({"time": ns(2), "event": "recovered", "log": "broker-a", "end": left[node]})
    return TableOfReports(node_events_table(events, {}))


@pytest.mark.parametrize(
    ("settings", "faults", "third_has", "left", "excused"),
    [
        (USUAL, POWER, 5, {"b1": 8}, True),
        (USUAL, POWER, 10, {"b1": 8}, False),
        (DURABLE, POWER, 5, {"b1": 8}, False),
        (USUAL, KILL, 5, {"b1": 10}, False),
        (USUAL, PARTITION, 5, {}, False),
        (USUAL, POWER_ALL, 10, {"b1": 8, "b2": 8, "b3": 8}, True),
        (DURABLE, DISK, 5, {"b1": 0}, True),
        (DURABLE, DISK, 10, {"b1": 0}, False),
    ],
)
def test_lost_is_what_a_member_lost_and_too_few_others_had(
    settings: RocketmqSettings, faults: Faults, third_has: int, left: dict[str, int], excused: bool
) -> None:
    said = reports(third_has=third_has, left=left)
    for anomaly in ("lost-write", "lost", "unconsumed", "dirty-read", "rewritten-log"):
        assert is_excused(settings, faults, said, 0.95, anomaly) == excused, anomaly
    assert not is_excused(settings, faults, said, 0.2 if left.get("b1") else 3.0)


def test_of_rocketmqs_own_brokers_it_is_what_they_wrote_just_before_a_loss_of_power() -> None:
    faults = struck(("power", 5.0, 6, ("b2", "n1")))
    for anomaly in ("lost-write", "lost", "unconsumed", "dirty-read", "rewritten-log"):
        assert is_excused(PUBLIC, faults, TableOfReports(), 4.5, anomaly), anomaly
        assert not is_excused(PUBLIC, faults, TableOfReports(), 3.0, anomaly), anomaly
    for harmless in (struck(("kill", 5.0, 6, ("b2",))), struck(("power", 5.0, 6, ("n1",)))):
        assert not is_excused(PUBLIC, harmless, TableOfReports(), 4.5)
    assert legal_loss(PUBLIC, faults, TableOfReports()).anything == ""


def test_rocketmqs_own_brokers_promise_nothing_once_a_disk_lost_what_was_synced() -> None:
    faults = struck(("lost-disk", 5.0, 6, ("b4",)), ("bit-rot", 3.0, 6, ("b1",)))
    found = legal_loss(PUBLIC, faults, TableOfReports())
    assert "bit-rot at 3.0 s" in found.anything and found.anything_from_ns == ns(3)


def test_a_group_is_not_excused_by_what_another_one_lost() -> None:
    said = reports(third_has=5, left={"b1": 8})
    assert is_excused(TWO_GROUPS, POWER, said, 0.95)
    of_other = struck(("power", 1.01, 2, ("b4",)))
    assert not is_excused(TWO_GROUPS, of_other, said, 0.95)


def test_early_deliveries_are_excused_by_wrong_clocks_alone() -> None:
    said = reports(third_has=10, left={})
    assert is_excused(USUAL, struck(("clock", 1, 2, ("b1",))), said, 1.5, "delivered-early")
    assert not is_excused(USUAL, KILL, said, 1.5, "delivered-early")


def test_nothing_is_promised_once_a_term_has_two_leaders_by_a_forgotten_vote() -> None:
    voted = {"event": "voted_in", "group": "broker-a", "term": 4, "needed": 2, "last": [4, 9]}
    events = {
        "b2": [{"time": ns(1), **voted, "by": ["b1", "b2"]}],
        "b3": [{"time": ns(3), **voted, "by": ["b1", "b3"]}],
    }
    said = TableOfReports(node_events_table(events, {}))
    loss = legal_loss(USUAL, DISK, said)
    assert loss.anything and loss.anything_from_ns == ns(3)
    assert not legal_loss(USUAL, KILL, said).anything


def test_what_faults_can_be_aimed_at() -> None:
    declared = SYSTEM.cluster(RocketmqSettings(deployment="dledger", preferred=2))
    assert declared.groups == ("brokers", "name-servers")
    assert declared.voters == declared.data == ("brokers",)
    assert dict(declared.roles) == {"primary": "brokers", "preferred": "brokers"}
    assert {"became-leader", "leader-serves", "about-to-give-out"} <= set(declared.points)
    assert not {"alter-proposed", "handshake-sent", "about-to-delete-files"} & set(declared.points)
    assert "electable-laggard" in declared.invariants
    assert "register" in declared.unserved and "pop" not in declared.unserved


def leading(settings: RocketmqSettings, leader: str, term: int = 1) -> BrokersWatch:
    watch = BrokersWatch(settings)
    for node in ("b1", "b2", "b3", "b4", "b5", "b6"):
        watch.saw(node, BOOTED, {})
    watch.saw(leader, "leader", {"term": term})
    return watch


def test_the_newest_leader_of_each_group_is_primary_and_can_be_done_without() -> None:
    watch = leading(RocketmqSettings(deployment="dledger", groups=2, preferred=3), "b1")
    assert dict(watch.roles()) == {"primary": ("b1",), "dispensable": ("b1",), "preferred": ("b3", "b6")}
    watch.saw("b2", "leader", {"term": 2})
    watch.saw("b5", "leader", {"term": 1})
    assert watch.roles()["primary"] == ("b2", "b5")


def test_invariants_of_each_group_are_held_by_its_members_alone() -> None:
    breaches = Breaches(lambda: 0, SYSTEM.cluster(TWO_GROUPS).invariants)
    invariants = BrokersInvariants(TWO_GROUPS, breaches)
    invariants.saw("n1", BOOTED, {})
    for node, checksum in (("b1", 1), ("b4", 2)):
        invariants.saw(node, "written", {"start": 0, "end": 1, "term": 1, "checksum": checksum})
        invariants.observe(node, "committed", {"index": 0, "leads": 0})
    assert not breaches.kept()
    invariants.saw("b2", "written", {"start": 0, "end": 1, "term": 2, "checksum": 3})
    invariants.observe("b2", "committed", {"index": 0, "leads": 0})
    assert [breach.name for breach in breaches.kept()] == ["diverging-commits"]
