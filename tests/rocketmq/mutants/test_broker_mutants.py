"""Planted bugs of the broker, each under the shortest story that shows it; the healthy broker lives through the same.

These stories prove that a bug does what it says. Whether the checkers catch it in a storm is shown elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from system_under_test.rocketmq.broker.ha import wire
from system_under_test.rocketmq.broker.parts import BrokerParts
from system_under_test.rocketmq.mutants.truncate_by_epoch_only import point_by_epoch_only
from system_under_test.storage.epoch_file import EpochMap, truncation_point
from tests.rocketmq.mutants.planted_parts import parts_of, planted_in
from tests.rocketmq.scenarios.broker_cluster import CONTROLLERS, Cluster, play
from tests.rocketmq.scenarios.test_controller_mode import a_newcomer_that_is_not_heard_keeps_nobody_in_the_set
from tests.rocketmq.scenarios.test_expired_files import EXPIRING, away_until_its_place_has_expired

OK = "SUCCESS"
Story = Callable[[Cluster], Coroutine[Any, Any, None]]


async def acked_letters_survive_a_loss_of_power(cluster: Cluster) -> None:
    letters = [f"letter {number}" for number in range(40)]
    assert await cluster.send("b1", *letters) == [OK] * len(letters)
    await cluster.power_off("b1")
    await cluster.boot("b1")
    await cluster.until_master("b1")
    assert await cluster.read("b1") == letters


async def a_slave_holds_what_it_acked_when_master_and_slave_are_killed(cluster: Cluster) -> None:
    assert await cluster.send("b1", "a") == [OK]
    await cluster.kill("b2", "b1")
    await cluster.boot("b2")
    await cluster.until_master("b2")
    assert await cluster.read("b2") == ["a"]


async def a_tail_that_nobody_acked_is_not_read(cluster: Cluster) -> None:
    assert await cluster.send("b1", "a") == [OK]
    await cluster.cut(("b1", "b2"))
    await cluster.send("b1", "x")
    assert await cluster.read("b1") == ["a"]


async def an_isolated_master_acks_nothing(cluster: Cluster) -> None:
    assert await cluster.send("b1", "a") == [OK]
    await cluster.isolate("b1")
    await cluster.until_master("b2")
    assert await cluster.send("b1", "x") != [OK]
    await cluster.heal()
    await cluster.until_members(1, 2, 3)
    await cluster.until_equal("b1", "b2", "b3")


async def a_master_without_controllers_and_slave_acks_nothing(cluster: Cluster) -> None:
    await cluster.cut(*(("b1", controller) for controller in ("c1", "c2", "c3")))
    await cluster.kill("b2")
    assert OK not in await cluster.send("b1", "x", "y")


async def a_dirty_tail_is_cut_although_the_new_masters_log_is_longer(cluster: Cluster) -> None:
    assert await cluster.send("b1", "a") == [OK]
    await cluster.cut(("b1", "b2"))
    await cluster.send("b1", "x")
    await cluster.kill("b1")
    await cluster.until_master("b2")
    assert await cluster.send("b2", "b", "c") == [OK, OK]
    await cluster.heal()
    await cluster.boot("b1")
    await cluster.until_members(1, 2)
    await cluster.until_equal("b1", "b2")
    assert await cluster.read("b1") == ["a", "b", "c"]


async def a_slave_that_began_at_the_last_file_is_not_elected(cluster: Cluster) -> None:
    letters = [f"{number:04d}" * 1000 for number in range(40)]
    assert await cluster.send("b1", *letters) == [OK] * len(letters)
    await cluster.add("b2")
    await cluster.sleep(20)
    await cluster.kill("b1")
    await cluster.sleep(20)
    await cluster.boot("b1")
    await cluster.until_master("b1")
    assert await cluster.read("b1") == letters


async def garbage_on_the_port_for_slaves_acknowledges_nothing(cluster: Cluster) -> None:
    impostor = wire.encode_slave_handshake(wire.SlaveHandshake(False, False, 2))
    await cluster.cut(("b1", "b2"))

    async def send() -> str:
        await cluster.sleep(1)
        return (await cluster.send("b1", "x"))[0]

    sending = cluster.begin(send())
    await cluster.knock("b1", impostor, wire.encode_ack(0), wire.encode_ack(10**12))
    assert await sending != OK


async def a_slave_whose_place_has_expired_comes_back(cluster: Cluster) -> None:
    await away_until_its_place_has_expired(cluster)
    await cluster.until_members(1, 2)


async def slaves_follow_a_new_master_although_they_hear_the_former_one(cluster: Cluster) -> None:
    await cluster.cut(*(("b1", controller) for controller in CONTROLLERS))
    await cluster.sleep(20)
    await cluster.heal()
    assert await cluster.master() != "b1"
    await cluster.until_members(1, 2, 3)


STORIES: dict[str, tuple[Story, dict[str, Any]]] = {
    "flush-lie": (acked_letters_survive_a_loss_of_power, {"brokers": 1, "flushDiskType": "SYNC_FLUSH", "seed": 2}),
    "ack-before-append": (a_slave_holds_what_it_acked_when_master_and_slave_are_killed, {}),
    "dispatch-to-max": (a_tail_that_nobody_acked_is_not_read, {}),
    "ignore-demotion": (an_isolated_master_acks_nothing, {"brokers": 3, "minInSyncReplicas": 2}),
    "shrink-first": (a_master_without_controllers_and_slave_acks_nothing, {}),
    "last-file-member": (
        a_slave_that_began_at_the_last_file_is_not_elected,
        {"brokers": 1, "syncFromLastFile": True},
    ),
    "bogus-ack": (garbage_on_the_port_for_slaves_acknowledges_nothing, {"minInSyncReplicas": 2}),
    "stale-epochs-kept": (a_slave_whose_place_has_expired_comes_back, {"copyAnewWhenExpired": True, **EXPIRING}),
    "former-master-followed": (slaves_follow_a_new_master_although_they_hear_the_former_one, {"brokers": 3}),
    "newcomer-blocks-shrink": (a_newcomer_that_is_not_heard_keeps_nobody_in_the_set, {"brokers": 4}),
    "truncate-by-epoch-only": (a_dirty_tail_is_cut_although_the_new_masters_log_is_longer, {}),
}


@pytest.mark.parametrize("name", STORIES)
def test_the_healthy_broker_lives_through_the_story(name):
    story, settings = STORIES[name]
    play(story, **settings)


@pytest.mark.parametrize("name", STORIES)
def test_the_planted_bug_shows(name):
    story, settings = STORIES[name]
    with pytest.raises(AssertionError):
        play(story, mutant=name, **settings)


@pytest.mark.parametrize("name", planted_in(BrokerParts))
def test_a_planted_bug_changes_parts_and_nothing_else(name):
    assert parts_of(name) != BrokerParts()
    assert BrokerParts() == BrokerParts(), "the healthy parts are a value"


def test_matching_epochs_by_number_alone_keeps_the_dirty_tail():
    returning, master = EpochMap([(1, 0)]), EpochMap([(1, 0), (2, 900)])
    assert truncation_point(returning, 1000, master, 1300) == 900
    assert point_by_epoch_only(returning, 1000, master, 1300) == 1000
