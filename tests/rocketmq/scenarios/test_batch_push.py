"""Batch push: what a master writes in one go reaches a slave in one frame, and only the master decides so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import pytest

from harness.system import NodeSpec
from system_under_test.rocketmq.broker.classic import wire as classic_wire
from system_under_test.rocketmq.broker.ha import wire
from system_under_test.rocketmq.message_protocol import SendRequest
from system_under_test.runtime.host import Connection
from tests.rocketmq.scenarios import broker_cluster, classic_cluster
from tests.rocketmq.scenarios.broker_cluster import CONTROLLERS, GROUP, TOPIC, Cluster
from tests.rocketmq.scenarios.deployed_cluster import Deployed, node
from tests.rocketmq.scenarios.deployed_cluster import play as play_deployed

OK = "SUCCESS"
LETTERS = [f"letter {number}" for number in range(10)]
SINGLE: Mapping[str, object] = {}
BATCH: Mapping[str, object] = {"enableBatchPush": True}
PEERS = ";".join(f"{name}-{name}:9879" for name in CONTROLLERS)


async def send_together(cluster: Cluster) -> Connection:
    """All letters come to b1 at one time; returns the connection that they came on."""
    connection = await cluster.host("producer").network.connect("b1:10911", 1.0)
    requests = [
        SendRequest(topic=TOPIC, queue_id=0, body=letter.encode(), born_timestamp_ms=0).encode() for letter in LETTERS
    ]
    connection.write(b"".join(request.encode() for request in requests))
    return connection


async def frames_to_a_classic_slave(cluster: Cluster) -> int:
    """How many frames with letters a slave gets that has all before them."""
    connection = await cluster.host("slave").network.connect("b1:10912", 1.0)
    connection.write(classic_wire.encode_ack(0))

    async def frame() -> bytes:
        header = classic_wire.decode_transfer_header(await connection.read_exactly(classic_wire.TRANSFER_HEADER_SIZE))
        return await connection.read_exactly(header.size)

    return await frames_of_letters(cluster, frame)


async def frames_to_an_elected_masters_slave(cluster: Cluster) -> int:
    """As above."""
    connection = await cluster.host("slave").network.connect("b1:10912", 1.0)
    connection.write(wire.encode_slave_handshake(wire.SlaveHandshake(False, True, 9)))
    header = wire.decode_master_handshake_header(await connection.read_exactly(wire.MASTER_HANDSHAKE_HEADER_SIZE))
    await connection.read_exactly(header.body_size)
    connection.write(wire.encode_ack(header.max_offset))

    async def frame() -> bytes:
        transfer = wire.decode_transfer_header(await connection.read_exactly(wire.TRANSFER_HEADER_SIZE))
        return await connection.read_exactly(transfer.body_size)

    return await frames_of_letters(cluster, frame)


async def frames_of_letters(cluster: Cluster, frame: Callable[[], Awaitable[bytes]]) -> int:
    await cluster.sleep(1)
    await send_together(cluster)
    data, frames = b"", 0
    while data.count(b"letter ") < len(LETTERS):
        body = await frame()
        data += body
        frames += body != b""
    return frames


@pytest.mark.parametrize(("settings", "frames"), [(SINGLE, len(LETTERS)), (BATCH, 1)])
def test_a_configured_master_sends_what_came_together_in_as_many_frames(
    settings: Mapping[str, object], frames: int
) -> None:
    async def story(cluster: Cluster) -> None:
        assert await frames_to_a_classic_slave(cluster) == frames

    classic_cluster.play(story, classic_cluster.MASTER, **settings)


@pytest.mark.parametrize(("settings", "frames"), [(SINGLE, len(LETTERS)), (BATCH, 1)])
def test_an_elected_master_sends_what_came_together_in_as_many_frames(
    settings: Mapping[str, object], frames: int
) -> None:
    async def story(cluster: Cluster) -> None:
        assert await frames_to_an_elected_masters_slave(cluster) == frames

    broker_cluster.play(story, **settings)


def test_a_batch_is_no_longer_than_a_frame_may_be() -> None:
    async def story(cluster: Cluster) -> None:
        assert await frames_to_a_classic_slave(cluster) > 1

    classic_cluster.play(story, classic_cluster.MASTER, enableBatchPush=True, haTransferBatchSize=512)


def test_what_is_acknowledged_of_a_batch_survives_its_master() -> None:
    async def story(cluster: Cluster) -> None:
        producer = await send_together(cluster)
        await producer.read_exactly(1)
        await cluster.kill("b1")
        await cluster.until_master("b2")
        assert await cluster.read("b2") == LETTERS
        await cluster.boot("b1")
        await cluster.until_members(1, 2)
        await cluster.until_equal("b1", "b2")

    broker_cluster.play(story, **BATCH)


@pytest.mark.parametrize("first", ["b1", "b2"])
def test_batch_push_is_switched_on_broker_by_broker_in_any_order(first: str) -> None:
    brokers = {
        name: {
            "brokerName": GROUP,
            "namesrvAddr": ";".join(f"{controller}:9876" for controller in CONTROLLERS),
            "enableControllerMode": True,
            "controllerAddr": ";".join(f"{controller}:9878" for controller in CONTROLLERS),
            "topics": {TOPIC: 1},
            "slaveReadEnable": True,
            "allAckInSyncStateSet": True,
        }
        for name in ("b1", "b2")
    }
    controller = {"enableControllerInNamesrv": True, "controllerDLegerPeers": PEERS, "controllerPort": 9878}
    nodes: list[NodeSpec] = [
        node(name, "nameserver", {**controller, "controllerDLegerSelfId": name}) for name in CONTROLLERS
    ] + [node(name, "broker", config) for name, config in brokers.items()]

    async def story(cluster: Deployed) -> None:
        sent = []
        for name in ("", *sorted(brokers, key=lambda name: name != first)):
            if name:
                await cluster.stop_cleanly(name)
                sent.append(f"while {name} is away")
                await cluster.publish(sent[-1])
                await cluster.reconfigure(name, {**brokers[name], **BATCH})
            sent.append(f"after {name}")
            await cluster.publish(sent[-1])
            await cluster.until_equal("b1", "b2")
        assert await cluster.read("b1") == sent

    play_deployed(story, *nodes)
