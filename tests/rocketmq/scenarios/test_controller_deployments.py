"""Where controllers may be: in all NameServers, in some, in none; with one port for all that is asked of them."""

from __future__ import annotations

import pytest

from harness.system import NodeSpec
from system_under_test.runtime.settings_file import settings_of
from tests.rocketmq.scenarios.broker_cluster import GROUP, TOPIC
from tests.rocketmq.scenarios.deployed_cluster import Deployed, node, play

PEERS = "n0-n0:9877;n1-n1:9878;n2-n2:9879"
CONTROLLERS = "n0:9877;n1:9878;n2:9879"
EMBEDDED = f"""
enableControllerInNamesrv = true
controllerDLegerGroup = group1
controllerDLegerPeers = {PEERS}
controllerStorePath = /home/admin/DledgerController
enableElectUncleanMaster = false
notifyBrokerRoleChanged = true
"""
ALONE = EMBEDDED.replace("enableControllerInNamesrv = true\n", "")


def broker(name: str, name_servers: str, *, alone: bool) -> NodeSpec:
    config = {
        "enableControllerMode": True,
        "controllerAddr": CONTROLLERS,
        "controllerDeployedStandAlone": alone,
        "brokerName": GROUP,
        "namesrvAddr": name_servers,
        "allAckInSyncStateSet": True,
        "topics": {TOPIC: 1},
        "slaveReadEnable": True,
    }
    return node(name, "broker", config)


def embedded(name: str) -> NodeSpec:
    return node(name, "nameserver", {**settings_of(EMBEDDED), "controllerDLegerSelfId": name})


def alone(name: str) -> NodeSpec:
    return node(name, "controller", {**settings_of(ALONE), "controllerDLegerSelfId": name})


IN_ALL = [
    *(embedded(name) for name in ("n0", "n1", "n2")),
    *(broker(name, "n0:9876;n1:9876;n2:9876", alone=False) for name in ("b1", "b2")),
]
IN_SOME = [
    *(embedded(name) for name in ("n0", "n1", "n2")),
    *(node(name, "nameserver", {}) for name in ("m0", "m1")),
    *(broker(name, "n0:9876;n1:9876;n2:9876;m0:9876;m1:9876", alone=False) for name in ("b1", "b2")),
]
APART = [
    *(alone(name) for name in ("n0", "n1", "n2")),
    *(node(name, "nameserver", {}) for name in ("m0", "m1")),
    *(broker(name, "m0:9876;m1:9876", alone=True) for name in ("b1", "b2")),
]


@pytest.mark.parametrize("nodes", [IN_ALL, IN_SOME, APART], ids=["in all NameServers", "in some", "apart"])
def test_a_killed_master_is_replaced_wherever_the_controllers_are(nodes: list[NodeSpec]) -> None:
    async def story(cluster: Deployed) -> None:
        master = await cluster.publish("a")
        await cluster.sleep(15)
        await cluster.kill(master)
        other = await cluster.publish("b")
        assert {master, other} == {"b1", "b2"}
        assert await cluster.read(other) == ["a", "b"]
        await cluster.boot(master)
        await cluster.until_equal("b1", "b2")

    play(story, *nodes)


@pytest.mark.parametrize("nodes", [IN_SOME, APART], ids=["in some", "apart"])
def test_without_a_majority_of_controllers_routes_and_sends_go_on_and_nobody_is_replaced(
    nodes: list[NodeSpec],
) -> None:
    async def story(cluster: Deployed) -> None:
        master = await cluster.publish("a")
        await cluster.sleep(15)
        await cluster.kill("n0", "n1")
        assert await cluster.publish("b") == master
        await cluster.kill(master)
        assert not await cluster.is_published("c", 40)
        await cluster.boot("n0")
        assert await cluster.publish("d") != master

    play(story, *nodes)


def test_name_servers_start_again_one_after_the_other_and_sends_go_on() -> None:
    async def story(cluster: Deployed) -> None:
        master = await cluster.publish("a")
        await cluster.sleep(15)
        for number, name in enumerate(("m0", "m1")):
            await cluster.stop_cleanly(name)
            assert await cluster.publish(f"while {name} is away") == master
            await cluster.boot(name)
            await cluster.sleep(31)
            assert len(await cluster.read(master)) == 2 + number
        assert await cluster.publish("z") == master

    play(story, *APART)
