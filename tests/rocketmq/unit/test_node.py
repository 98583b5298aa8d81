"""The node programs, composed into clusters in the simulator: they boot, serve, fail over, stop, refuse bad configs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq import node
from system_under_test.rocketmq.client.message_client import MessageClient, SendResult
from system_under_test.runtime.real import RealHost

CONTROLLERS = ("c1", "c2", "c3")
BROKERS = ("b1", "b2", "b3")
NAMESERVER: Mapping[str, Any] = {
    "enableControllerInNamesrv": True,
    "controllerPort": 9878,
    "controllerDLegerPeers": ";".join(f"{name}-{name}:9879" for name in CONTROLLERS),
}
BROKER: Mapping[str, Any] = {
    "enableControllerMode": True,
    "namesrvAddr": ";".join(f"{name}:9876" for name in CONTROLLERS),
    "controllerAddr": ";".join(f"{name}:9878" for name in CONTROLLERS),
    "allAckInSyncStateSet": True,
    "minInSyncReplicas": 2,
    "flushDiskType": "SYNC_FLUSH",
    "topics": {"T": 4},
    "mappedFileSizeCommitLog": 1 << 20,
}


def program(name: str, kind: str, config: Mapping[str, Any]) -> NodeSpec:
    return NodeSpec(
        name=name, groups=(), program=PythonProgram(main=f"system_under_test.rocketmq.node:{kind}", config=config)
    )


def cluster() -> list[NodeSpec]:
    nodes = [program(name, "nameserver", {**NAMESERVER, "controllerDLegerSelfId": name}) for name in CONTROLLERS]
    return nodes + [program(name, "broker", BROKER) for name in BROKERS]


async def send_until_taken(environment: SimulatedEnvironment, client: MessageClient, body: bytes) -> SendResult:
    """At most a minute of simulated time."""
    for _ in range(300):
        try:
            return await client.send("T", 0, body)
        except ClientError:
            await environment.timeline.sleep(0.2)
    raise AssertionError("no broker takes messages")


def test_a_cluster_takes_messages_and_keeps_them_when_its_master_is_killed(tmp_path: Path) -> None:
    async def main(environment: SimulatedEnvironment) -> None:
        await environment.start(cluster(), tmp_path)
        client = MessageClient(environment.client_host("client"), [f"{name}:9876" for name in CONTROLLERS])
        first = await send_until_taken(environment, client, b"first")
        await environment.timeline.sleep(20)
        await client.send("T", 0, b"second")
        master = first.broker.partition(":")[0]
        assert (await environment.kill([master])).happened
        third = await send_until_taken(environment, client, b"third")
        assert third.broker != first.broker
        pulled = await client.pull("T", 0, 0, 10, "G")
        assert [body for _, body in pulled.messages][:2] == [b"first", b"second"]
        assert [body for _, body in pulled.messages][-1] == b"third"
        await environment.boot([master])
        await environment.timeline.sleep(30)
        route = (await client.route("T")).groups[0].brokers
        assert route[0] == third.broker
        assert sorted(address.partition(":")[0] for address in route.values()) == sorted(BROKERS)
        await environment.stop()
        assert not environment.panics()

    run_simulation(main, Seed(1729), Trace(), regime=Regime.calm())


def test_controllers_may_run_apart_from_the_nameserver(tmp_path: Path) -> None:
    peers = {"controllerPort": 9878, "controllerDLegerPeers": "c1-c1:9879", "controllerDLegerSelfId": "c1"}
    nodes = [
        program("n1", "nameserver", {}),
        program("c1", "controller", peers),
        program(
            "b1",
            "broker",
            {
                "enableControllerMode": True,
                "namesrvAddr": "n1:9876",
                "controllerAddr": "c1:9878",
                "topics": {"T": 1},
            },
        ),
    ]

    async def main(environment: SimulatedEnvironment) -> None:
        await environment.start(nodes, tmp_path)
        client = MessageClient(environment.client_host("client"), ["n1:9876"])
        assert (await send_until_taken(environment, client, b"m")).broker == "b1:10911"
        await environment.stop()
        assert not environment.panics()

    run_simulation(main, Seed(1729), Trace(), regime=Regime.calm())


@pytest.mark.parametrize(
    ("main", "config", "words"),
    [
        (node.nameserver, {"listenPort": "9876"}, "listenPort: expected"),
        (node.nameserver, {"lisenPort": 9876}, "lisenPort: there is no such setting; did you mean listenPort?"),
        (node.nameserver, {"enableControllerInNamesrv": 1}, "enableControllerInNamesrv: expected true or false"),
        (node.nameserver, {"enableControllerInNamesrv": True}, "controllerDLegerSelfId: expected text"),
        (node.controller, {**NAMESERVER, "controllerDLegerSelfId": "c9"}, "controllerDLegerSelfId: expected one of"),
        (node.broker, {"enableControllerMode": True}, "controllerAddr: "),
        (node.broker, {"brokerRole": "MASTER"}, "brokerRole: expected ASYNC_MASTER, SYNC_MASTER, SLAVE, got 'MASTER'"),
        (node.broker, {"brokerRole": "SLAVE"}, "brokerId: a slave's is greater than 0, got 0"),
        (node.broker, {"brokerId": 2}, "brokerId: a master's is 0, got 2 with brokerRole ASYNC_MASTER"),
        (node.broker, {**BROKER, "minInSyncReplicas": 0}, "minInSyncReplicas: expected"),
        (node.broker, {**BROKER, "deleteWhen": "04;24"}, "deleteWhen: expected hours of the day, 00 to 23"),
        (node.broker, {**BROKER, "fileReservedTime": -1}, "fileReservedTime: expected a whole number from 0 on"),
        (node.broker, {**BROKER, "diskMaxUsedSpaceRatio": 9}, "diskMaxUsedSpaceRatio: expected a whole number from 10"),
        (
            node.broker,
            {**BROKER, "readUnCommitted": True, "allAckInSyncStateSet": True},
            "readUnCommitted: expected false where allAckInSyncStateSet is true",
        ),
        (node.broker, {**BROKER, "mutant": "no-such-bug"}, "mutant: no mutant 'no-such-bug'; known are"),
        (node.broker, {**BROKER, "mutant": 7}, "mutant: expected a name, got 7"),
    ],
)
def test_a_bad_config_is_refused_before_anything_is_started(tmp_path: Path, main: Any, config: Any, words: str) -> None:
    async def start() -> None:
        host = RealHost("n", tmp_path)
        try:
            with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the words are compared below
                await main(host, config)
            assert words in str(refusal.value)
            assert host.idle
        finally:
            await host.close()

    asyncio.run(start())
