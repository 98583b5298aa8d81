"""In place, with its data, from masters and slaves to controller mode, and NameServers one after the other."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from harness.system import NodeSpec
from tests.rocketmq.scenarios.broker_cluster import GROUP, TOPIC
from tests.rocketmq.scenarios.deployed_cluster import Deployed, node, play

NAMES = ("m0", "m1", "m2")
OLD = {"behavesAsVersion": 4}
PEERS = ";".join(f"{name}-{name}:9878" for name in NAMES)
CONTROLLERS = ";".join(f"{name}:9878" for name in NAMES)
BROKER = {
    "brokerName": GROUP,
    "namesrvAddr": ";".join(f"{name}:9876" for name in NAMES),
    "topics": {TOPIC: 1},
    "slaveReadEnable": True,
}
SLAVE = {**BROKER, "brokerRole": "SLAVE", "brokerId": 1}
UPGRADED = {**BROKER, "enableControllerMode": True, "controllerAddr": CONTROLLERS, "allAckInSyncStateSet": True}
OK = "SUCCESS"


def with_controller(name: str) -> Mapping[str, object]:
    return {"enableControllerInNamesrv": True, "controllerDLegerPeers": PEERS, "controllerDLegerSelfId": name}


def pair(**settings: object) -> list[NodeSpec]:
    return [node("b1", "broker", {**BROKER, **settings}), node("b2", "broker", {**SLAVE, **settings})]


NEW_NAME_SERVERS = [node(name, "nameserver", with_controller(name)) for name in NAMES]


async def unaligned(cluster: Deployed) -> None:
    """The master has `a b c`, its slave `a b`; both are stopped."""
    await cluster.publish("a")
    await cluster.publish("b")
    await cluster.until_letters("b2", "a", "b")
    await cluster.cut(("b1", "b2"))
    assert await cluster.send("b1", "c") == [OK]
    await cluster.stop_cleanly("b1")
    await cluster.stop_cleanly("b2")
    await cluster.heal()


async def upgrade(cluster: Deployed, first: str, second: str) -> None:
    await cluster.reconfigure(first, UPGRADED)
    await cluster.until_master(first)
    await cluster.reconfigure(second, UPGRADED)
    await cluster.until_equal(first, second)


def test_where_the_logs_are_not_aligned_and_the_former_master_comes_first_nothing_is_lost() -> None:
    async def story(cluster: Deployed) -> None:
        await unaligned(cluster)
        end = max(event["end"] for event in cluster.reported("b1", "recovered")) or 0
        await upgrade(cluster, "b1", "b2")
        assert await cluster.read("b2") == ["a", "b", "c"]
        log = await cluster.log("b1")
        assert log.epochs[0] == 0, "what was written before there were epochs"
        assert log.epochs[1] == log.max_offset >= end
        await cluster.kill("b1")
        assert await cluster.publish("d") == "b2"

    play(story, *NEW_NAME_SERVERS, *pair())


def test_where_the_former_slave_comes_first_what_only_the_master_had_is_cut_and_told() -> None:
    async def story(cluster: Deployed) -> None:
        await unaligned(cluster)
        await upgrade(cluster, "b2", "b1")
        assert await cluster.read("b1") == ["a", "b"]
        (cut,) = cluster.reported("b1", "truncated")
        assert cut["to"] == (await cluster.log("b2")).epochs[1] < cut["from_"]

    play(story, *NEW_NAME_SERVERS, *pair())


@pytest.mark.parametrize("order", [("b1", "b2"), ("b2", "b1")], ids=" first, then ".join)
def test_where_the_logs_are_aligned_nothing_is_lost_either_way(order: tuple[str, str]) -> None:
    async def story(cluster: Deployed) -> None:
        await cluster.publish("a")
        await cluster.until_letters("b2", "a")
        await cluster.stop_cleanly("b1")
        await cluster.stop_cleanly("b2")
        await upgrade(cluster, *order)
        assert await cluster.read("b1") == await cluster.read("b2") == ["a"]
        assert not cluster.reported("b1", "truncated")
        assert not cluster.reported("b2", "truncated")

    play(story, *NEW_NAME_SERVERS, *pair())


def test_a_slave_that_compares_no_logs_is_heard_while_there_is_nothing_to_send() -> None:
    async def story(cluster: Deployed) -> None:
        await cluster.sleep(60)
        assert not cluster.reported("b1", "slave_turned_away")
        await cluster.publish("a")
        await cluster.until_letters("b2", "a")

    play(story, *(node(name, "nameserver", OLD) for name in NAMES), *pair(behavesAsVersion=4))


def test_a_slave_that_compares_no_logs_waits_for_a_human_where_its_masters_goes_on_in_the_midst_of_a_message() -> None:
    async def story(cluster: Deployed) -> None:
        await cluster.publish("a")
        await cluster.until_letters("b2", "a")
        await cluster.sleep(12)
        for letter in ("unsynced", "as well"):
            assert await cluster.send("b1", letter) == [OK]
        await cluster.until_letters("b2", "a", "unsynced", "as well")
        await cluster.power_off("b1")
        await cluster.boot("b1")
        await cluster.sleep(3)
        assert await cluster.read("b1") == ["a"], "the disk has lost what was not synced"
        for letter in ("longer than what was lost" * 20, "b"):
            await cluster.publish(letter)
        await cluster.until_said("b2", "manual_repair_needed")
        assert "no message starts at" in str(cluster.reported("b2", "manual_repair_needed"))
        assert await cluster.read("b2") == ["a", "unsynced", "as well"]
        await cluster.sleep(120)
        await cluster.kill("b2")
        await cluster.boot("b2")
        await cluster.until_letters("b2", "a", "unsynced", "as well")

    play(story, *(node(name, "nameserver", OLD) for name in NAMES), *pair(behavesAsVersion=4), seed=2)


@pytest.mark.parametrize("seed", [1, 2])
def test_an_upgrade_of_all_nodes_one_after_the_other_loses_nothing_that_was_acknowledged(seed: int) -> None:
    """From version 4 throughout: NameServers roll, then the brokers, while a producer sends and kills strike."""
    sent: list[str] = []

    async def produce(cluster: Deployed, count: int) -> None:
        for _ in range(count):
            letter = f"letter {len(sent)}"
            if await cluster.is_published(letter, 20):
                sent.append(letter)

    async def story(cluster: Deployed) -> None:
        await produce(cluster, 3)
        for name in NAMES:
            await cluster.stop_cleanly(name)
            await produce(cluster, 2)
            await cluster.reconfigure(name, with_controller(name))
            await cluster.sleep(31)
        await cluster.kill("b1")
        await cluster.boot("b1")
        await produce(cluster, 3)
        await cluster.until_letters("b2", *sent)
        await cluster.stop_cleanly("b2")
        await cluster.stop_cleanly("b1")
        await upgrade(cluster, "b1", "b2")
        await produce(cluster, 3)
        await cluster.sleep(15)
        await cluster.kill(await cluster.publish("the last of the first master"))
        await produce(cluster, 3)
        letters = await cluster.read("b2")
        assert [letter for letter in letters if letter in sent] == sent
        assert len(sent) == 18

    old = [node(name, "nameserver", OLD) for name in NAMES]
    play(story, *old, *pair(behavesAsVersion=4), seed=seed)


def test_several_masters_without_slaves_stand_in_for_each_other_and_their_backlog_comes_back() -> None:
    async def story(cluster: Deployed) -> None:
        await cluster.sleep(2)
        assert await cluster.send("b1", "of b1") == [OK]
        assert await cluster.send("b2", "of b2") == [OK]
        await cluster.kill("b1")
        await cluster.sleep(1)
        assert await cluster.send("b2", "meanwhile") == [OK]
        assert await cluster.send("b1", "x") == ["lost"]
        await cluster.boot("b1")
        await cluster.sleep(2)
        assert await cluster.read("b1") == ["of b1"]
        assert await cluster.read("b2") == ["of b2", "meanwhile"]

    masters = [node(f"b{n}", "broker", {**BROKER, "brokerName": f"broker-{n}"}) for n in (1, 2)]
    play(story, *NEW_NAME_SERVERS, *masters)


@pytest.mark.parametrize("role", ["ASYNC_MASTER", "SYNC_MASTER"])
def test_of_a_master_whose_disk_is_lost_its_slave_has_all_that_it_was_sent(role: str) -> None:
    async def story(cluster: Deployed) -> None:
        await cluster.sleep(5)
        await cluster.publish("a")
        await cluster.until_letters("b2", "a")
        await cluster.cut(("b1", "b2"))
        acknowledged = await cluster.send("b1", "b") == [OK]
        assert acknowledged is (role == "ASYNC_MASTER")
        await cluster.kill("b1")
        await cluster.wipe("b1")
        # Until the slave has given up the connection: what is under way on it would come.
        await cluster.sleep(25)
        await cluster.heal()
        await cluster.boot("b1")
        await cluster.sleep(30)
        assert await cluster.read("b2") == ["a"]

    b1, b2 = pair()
    play(story, *NEW_NAME_SERVERS, node("b1", "broker", {**b1.program.config, "brokerRole": role}), b2)
