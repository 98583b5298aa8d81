"""How the adapter puts each deployment together: nodes, settings, groups, and who is known to be what."""

from __future__ import annotations

from typing import Any

import pytest

from harness.generator import invoke
from harness.invariants import Breaches
from harness.program import PythonProgram
from harness.watch import BOOTED, ENDED
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.clients.queues import Queues
from workloads.systems.rocketmq.invariants import RocketmqInvariants
from workloads.systems.rocketmq.meanings import MEANINGS
from workloads.systems.rocketmq.narrator import RocketmqNarrator
from workloads.systems.rocketmq.settings import RocketmqSettings, broker_groups
from workloads.systems.rocketmq.watch import RocketmqWatch


def configs(settings: RocketmqSettings) -> dict[str, tuple[str, Any]]:
    """Node -> its program, its settings."""
    found = {}
    for node in SYSTEM.nodes(settings, None):
        assert isinstance(node.program, PythonProgram)
        found[node.name] = node.program.main.rpartition(":")[2], node.program.config
    return found


def test_masters_are_groups_of_one() -> None:
    nodes = configs(RocketmqSettings(deployment="masters", groups=3))
    assert list(nodes) == ["n1", "n2", "n3", "b1", "b2", "b3"]
    assert [nodes[name][1]["brokerName"] for name in ("b1", "b2", "b3")] == ["broker-a", "broker-b", "broker-c"]
    assert all(nodes[name][1]["brokerRole"] == "ASYNC_MASTER" for name in ("b1", "b2", "b3"))


def test_slaves_have_their_masters_name_and_ids_from_1() -> None:
    nodes = configs(RocketmqSettings(deployment="dual-write", groups=2, brokers=3))
    roles = [(c["brokerName"], c["brokerRole"], c["brokerId"]) for kind, c in nodes.values() if kind == "broker"]
    of_a = [("broker-a", "SYNC_MASTER", 0), ("broker-a", "SLAVE", 1), ("broker-a", "SLAVE", 2)]
    assert roles == [*of_a, *(("broker-b", role, number) for _, role, number in of_a)]
    assert not any(config.get("enableControllerMode") for _, config in nodes.values())


def test_controllers_are_in_all_name_servers_in_some_or_apart() -> None:
    embedded, some, apart = (
        configs(RocketmqSettings(**given))  # type: ignore[arg-type]
        for given in ({}, {"name_servers": 2}, {"controllers_alone": True})
    )
    assert [kind for kind, _ in embedded.values()] == ["nameserver"] * 3 + ["broker"] * 3
    assert list(some)[:5] == ["c1", "c2", "c3", "n1", "n2"]
    assert some["b1"][1]["namesrvAddr"] == "c1:9876;c2:9876;c3:9876;n1:9876;n2:9876"
    assert [kind for kind, _ in apart.values()] == ["controller"] * 3 + ["nameserver"] * 3 + ["broker"] * 3
    assert apart["b1"][1]["namesrvAddr"] == "n1:9876;n2:9876;n3:9876"
    assert apart["b1"][1]["controllerDeployedStandAlone"]


def test_queues_are_dealt_out_to_groups() -> None:
    queues = Queues(RocketmqSettings(deployment="masters", groups=2))
    places = [queues.of(invoke("send", None, key=f"storm/{number}")) for number in range(4)]
    assert [(place.group.name, place.queue_id) for place in places] == [
        ("broker-a", 0),
        ("broker-b", 0),
        ("broker-a", 1),
        ("broker-b", 1),
    ]


@pytest.mark.parametrize("deployment", ["single", "masters", "async-slaves", "dual-write"])
def test_what_faults_can_be_aimed_at_has_no_controllers(deployment: Any) -> None:
    declared = SYSTEM.cluster(RocketmqSettings(deployment=deployment))
    assert declared.groups == ("brokers", "name-servers")
    assert dict(declared.roles) == {"primary": "brokers"}
    assert not declared.voters
    assert {"register", "bank"} <= set(declared.unserved)
    assert not {"log", "queue"} & set(declared.unserved)


def serving(settings: RocketmqSettings) -> RocketmqWatch:
    watch = RocketmqWatch(settings)
    for group in broker_groups(settings):
        for number, broker in enumerate(group.brokers):
            watch.saw(broker, BOOTED, {})
            watch.saw(broker, "identity", {"group": group.name, "broker_id": number})
            watch.saw(broker, "role", {"role": "slave" if number else "master", "master_epoch": 0})
    return watch


def test_masters_of_all_groups_are_primary_as_long_as_they_live_and_only_slaves_are_dispensable() -> None:
    watch = serving(RocketmqSettings(deployment="async-slaves", groups=2, brokers=2))
    assert dict(watch.roles()) == {"primary": ("b1", "b3"), "dispensable": ("b2", "b4")}
    watch.saw("b3", ENDED, {"how": "killed"})
    assert watch.roles()["primary"] == ("b1",)
    assert "dispensable" not in serving(RocketmqSettings(deployment="dual-write", brokers=2)).roles()
    assert serving(RocketmqSettings(deployment="dual-write", brokers=3)).roles()["dispensable"] == ("b3",)


def test_a_state_tells_groups_apart_by_nothing_but_what_they_are() -> None:
    settings = RocketmqSettings(deployment="masters", groups=2)
    watch = serving(settings)
    before = watch.state()
    watch.saw("b2", ENDED, {"how": "killed"})
    assert watch.state() != before


def test_ids_of_different_groups_may_be_equal_and_those_of_one_may_not() -> None:
    breaches = Breaches(lambda: 0, MEANINGS)
    invariants = RocketmqInvariants(RocketmqSettings(groups=2, brokers=2), breaches)
    for node, group in (("b1", "broker-a"), ("b3", "broker-b")):
        invariants.saw(node, BOOTED, {})
        invariants.saw(node, "identity", {"group": group, "broker_id": 1})
    assert not breaches.kept()
    invariants.saw("b4", BOOTED, {})
    invariants.saw("b4", "identity", {"group": "broker-b", "broker_id": 1})
    assert [breach.name for breach in breaches.kept()] == ["shared-identity"]


def test_what_a_dual_write_master_acknowledges_a_slave_of_its_group_must_hold() -> None:
    breaches = Breaches(lambda: 0, MEANINGS)
    invariants = RocketmqInvariants(RocketmqSettings(deployment="dual-write", groups=2, brokers=2), breaches)
    invariants.observe("b1", "put-appended", {"end": 100, "in_sync": 2})
    invariants.observe("b2", "batch-appended", {"end": 100})
    invariants.observe("b1", "put-confirmed", {"end": 100, "in_sync": 2})
    assert not breaches.kept()
    invariants.observe("b4", "batch-appended", {"end": 500})
    invariants.observe("b1", "put-appended", {"end": 200, "in_sync": 1})
    invariants.observe("b1", "put-confirmed", {"end": 200, "in_sync": 1})
    assert [(breach.name, breach.nodes) for breach in breaches.kept()] == [("unheld-ack", ("b1", "b2"))]


def test_brokers_are_told_of_by_their_names_within_their_group() -> None:
    narrator = RocketmqNarrator()
    for node, group in (("b1", "broker-a"), ("b2", "broker-b")):
        narrator.narrate(node, "identity", {"group": group, "broker_id": 1})
    elected = narrator.narrate("c1", "elected", {"group": "broker-b", "master": 1, "master_epoch": 2, "in_sync": [1]})
    assert elected is not None
    assert "b2" in elected.sentence
    aside = narrator.narrate("b2", "set_aside", {"start": 900, "end": 1000})
    assert aside is not None
    assert "900 to 1000" in aside.sentence
