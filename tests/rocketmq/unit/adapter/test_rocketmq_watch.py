"""What is seen of a RocketMQ cluster as it happens: who plays which role, and a state that knows no names."""

from __future__ import annotations

from pathlib import Path

from harness.abilities import watch_of
from harness.environments.environment import Link
from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.seed import Seed
from harness.trace import Trace
from harness.watch import BOOTED, CUT, ENDED, HEALED, PAUSED, LastEvents
from workloads.systems.rocketmq.adapter import SYSTEM
from workloads.systems.rocketmq.settings import RocketmqSettings
from workloads.systems.rocketmq.watch import RocketmqWatch


def whole(names: dict[str, str]) -> RocketmqWatch:
    """Three brokers and three controllers, all well; `names` says which broker plays which part."""
    watch = RocketmqWatch(RocketmqSettings())
    for node in ("c1", "c2", "c3", "b1", "b2", "b3"):
        watch.saw(node, BOOTED, {})
    for node in ("c1", "c2", "c3"):
        watch.saw(node, "term", {"term": 4, "vote": "c2"})
    watch.saw("c2", "leader", {"term": 4})
    for number, name in enumerate(("master", "near", "level"), 1):
        watch.saw(names[name], "identity", {"group": "broker-a", "broker_id": number})
        watch.saw(names[name], "role", {"role": "master" if name == "master" else "slave", "master_epoch": 7})
    watch.saw(names["master"], "sync_state_set", {"members": [1, 2, 3], "epoch": 5})
    watch.saw(names["master"], "slave_lag", {"broker_id": 2, "lag": 1})
    watch.saw(names["master"], "slave_lag", {"broker_id": 3, "lag": 0})
    return watch


def test_the_state_is_the_same_whichever_broker_plays_which_part() -> None:
    states = {
        whole({"master": master, "near": near, "level": level}).state()
        for master, near, level in (("b1", "b2", "b3"), ("b3", "b1", "b2"), ("b2", "b3", "b1"))
    }
    assert states == {
        (
            "master-0",
            "slave-0 member level",
            "slave-0 member near",
            "follower-0",
            "follower-0",
            "leader-0",
            "set 3",
        )
    }


def test_whatever_changes_in_the_cluster_changes_the_state() -> None:
    changes = [
        ("b1", ENDED, {"how": "killed"}),
        ("b1", PAUSED, {}),
        ("b2", ENDED, {"how": "killed"}),
        ("b2", ENDED, {"how": "panicked"}),
        ("c2", ENDED, {"how": "killed"}),
        ("b1", "slave_lag", {"broker_id": 2, "lag": 2}),
        ("b1", "slave_gone", {"broker_id": 2}),
        ("b1", "alter", {"proposed": [1, 2]}),
        ("b1", "sync_state_set", {"members": [1, 3], "epoch": 6}),
        ("b1", "deposed", {"master_epoch": 7}),
        ("b2", "role", {"role": "master", "master_epoch": 8}),
        ("c1", "term", {"term": 5, "vote": None}),
        ("b1", CUT, {"to": "b2"}),
        ("b2", CUT, {"to": "b1"}),
        ("c2", CUT, {"to": "b1"}),
    ]
    parts = {"master": "b1", "near": "b2", "level": "b3"}
    states = [whole(parts).state()]
    for change in changes:
        watch = whole(parts)
        watch.saw(*change)
        states.append(watch.state())
    assert len(set(states)) == len(changes) + 1
    healed = whole(parts)
    healed.saw("b1", CUT, {"to": "b2"})
    healed.saw("b1", HEALED, {"to": "b2"})
    assert healed.state() == states[0]


def test_epochs_count_by_their_distance_from_the_newest() -> None:
    parts = {"master": "b1", "near": "b2", "level": "b3"}
    older, newer = whole(parts), whole(parts)
    for node, by in (("b1", 3), ("b2", 3), ("b3", 3)):
        newer.saw(node, "role", {"role": "master" if node == "b1" else "slave", "master_epoch": 7 + by})
    assert older.state() == newer.state()
    newer.saw("b1", "role", {"role": "master", "master_epoch": 99})
    assert "slave-2 member level" in newer.state()


def test_of_two_masters_the_one_of_the_newer_epoch_is_the_primary_as_long_as_it_lives() -> None:
    watch = whole({"master": "b1", "near": "b2", "level": "b3"})
    assert watch.roles() == {"active-controller": ("c2",), "primary": ("b1",), "dispensable": ("c2", "b1")}
    watch.saw("b2", "role", {"role": "master", "master_epoch": 8})
    assert watch.roles()["primary"] == ("b2",)
    watch.saw("b2", ENDED, {"how": "killed"})
    assert watch.roles()["primary"] == ("b1",)
    watch.saw("b2", BOOTED, {})
    assert watch.roles()["primary"] == ("b1",)
    watch.saw("b1", "deposed", {"master_epoch": 7})
    watch.saw("c2", "follower", {"term": 5})
    assert watch.roles() == {}


def test_while_an_election_is_on_its_way_nobody_is_spared_whom_the_controllers_count_as_in_sync() -> None:
    watch = whole({"master": "b1", "near": "b2", "level": "b3"})
    elected = {"group": "broker-a", "index": 9, "master": 1, "master_epoch": 8, "members": [1], "epoch": 7}
    watch.saw("c2", "set_agreed", elected)
    assert watch.roles()["dispensable"] == ("c2", "b2"), "b1 alone may lead, and does not know it yet"
    watch.saw("b1", "role", {"role": "master", "master_epoch": 8})
    watch.saw("c1", "set_agreed", {**elected, "index": 8, "members": [1, 2, 3]})
    assert watch.roles()["dispensable"] == ("c2", "b2"), "an older one that comes later says nothing"
    watch.saw("c1", "set_agreed", {**elected, "index": 10, "members": [1, 3]})
    assert watch.roles()["dispensable"] == ("c2", "b1")


def test_in_the_simulator_it_agrees_with_what_controllers_and_brokers_answer(tmp_path: Path) -> None:
    settings = RocketmqSettings()
    watch = watch_of(SYSTEM, settings)
    seen: list[tuple[str, ...]] = []

    async def story(environment: SimulatedEnvironment) -> None:
        environment.moments.watch = watch.saw
        await environment.start(SYSTEM.nodes(settings, None), tmp_path)
        observer = environment.client_host("observer")
        await SYSTEM.ready(settings, observer, "log")
        for fault in (environment.kill, environment.boot):
            for _ in range(2):
                answered = await SYSTEM.roles(settings, observer)
                assert watch.roles() == answered
                await fault(answered["primary"] if fault == environment.kill else ("b1", "b2", "b3"))
                await environment.timeline.sleep(15)
                seen.append(watch.state())
        await environment.cut([Link("b1", "b2"), Link("b2", "b1")])
        assert any(word.startswith("cut ") for word in watch.state())
        await environment.heal()
        await environment.stop()

    run_simulation(story, Seed(3), Trace(), regime=Regime.calm())
    assert "slave-0 member level" in seen[-1]
    assert "set 3" in seen[-1]
    assert any("none(down)-1 outside apart" in state for state in seen)


def test_of_a_system_without_a_watch_the_last_event_of_each_node_is_known() -> None:
    watch = watch_of(object(), None)
    assert isinstance(watch, LastEvents)
    for node, event in (("b", "started"), ("a", "started"), ("b", "ready")):
        watch.saw(node, event, {})
    assert (watch.state(), watch.roles()) == (("a started", "b ready"), {})
