"""No input ends a node: malformed bytes come in at every port of a cluster, which lives on and serves."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.environments.simulated.environment import SimulatedEnvironment, run_simulation
from harness.environments.simulated.regime import Regime
from harness.program import PythonProgram
from harness.seed import Seed
from harness.system import NodeSpec
from harness.trace import Trace
from system_under_test.raft.message import Greeting, encode_greeting
from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.codes import RequestCode
from system_under_test.remoting.command import RemotingCommand
from system_under_test.rocketmq.client.message_client import MessageClient
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host
from tests.references.malformed_inputs import CODECS, ODD_VALUES, Codec, drawn, harmed

BROKER = {
    "enableControllerMode": True,
    "namesrvAddr": "c1:9876",
    "controllerAddr": "c1:9878",
    "topics": {"T": 2, "kept": 1},
    "mappedFileSizeCommitLog": 1 << 20,
    "brokerHeartbeatInterval": 500,
}
CONTROLLER = {
    "enableControllerInNamesrv": True,
    "controllerPort": 9878,
    "controllerDLegerPeers": "c1-c1:9879",
    "controllerDLegerSelfId": "c1",
}
BODIES = {
    "names": (RequestCode.CONTROLLER_GET_SYNC_STATE_DATA,),
    "consumer group": (RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,),
    "controller settings": (RequestCode.UPDATE_CONTROLLER_CONFIG,),
    "key-value command": (
        RequestCode.KEY_VALUE_PUT,
        RequestCode.KEY_VALUE_COMPARE_AND_SET,
        RequestCode.KEY_VALUE_TRANSACTION,
    ),
}
"""Decoders of bodies, with the requests in which their inputs come."""
NAMES = {codec.name: codec for codec in CODECS}
COMMANDS = tuple(codec for codec in CODECS if codec.join.__name__ == "_frame")
EMBEDDED = tuple((NAMES[name], code) for name, codes in BODIES.items() for code in codes)
FIELDS = (
    *("brokerName", "brokerId", "topic", "queueId", "queueOffset", "maxMsgNums", "consumerGroup", "commitOffset"),
    *("producerGroup", "bornTimestamp", "suspendTimeoutMillis", "key", "pulse", "epoch", "maxOffset", "clusterName"),
    *("brokerAddr", "heartbeatTimeoutMillis", "masterEpoch", "masterBrokerId", "appliedBrokerId", "registerCheckCode"),
    *("haServerAddr", "properties", "sysFlag", "flag", "syncStateSetEpoch", "masterAddress", "readQueueNums"),
    *(
        "subscription",
        "expressionType",
        "batch",
        "writeQueueNums",
        "perm",
        "topicSysFlag",
        "groupName",
        "cleanOffset",
        "knownVersion",
    ),
    *("invisibleTime", "pollTime", "bornTime", "initMode", "exp", "expType", "order", "extraInfo", "offset"),
)
VALUES = (
    *("", "T", "g", "0", "1", "-1", "7", "2147483648", "9223372036854775807", "-9223372036854775809", "9" * 20),
    *(
        "9" * 400,
        "1e9",
        "NaN",
        "true",
        "null",
        "\0",
        "a" * 300,
        "ü",
        "SQL92",
        "a = 1 OR",
        "b1:10911",
        ":",
        "b1:x",
        "x" * 70_000,
    ),
)


def framed(frame: bytes) -> bytes:
    return struct.pack(">I", len(frame)) + frame


def command(draw: random.Random) -> bytes:
    """A frame of remoting: harmed as a whole or in its body, or well-formed with fields that nobody expects."""
    kind = draw.random()
    if kind < 0.4:
        return framed(drawn(draw, draw.choice(COMMANDS)))
    if kind < 0.6:
        codec, code = draw.choice(EMBEDDED)
        return RemotingCommand.request(code, {"brokerName": "g", "masterEpoch": "1"}, drawn(draw, codec)).encode()
    fields = {name: draw.choice(VALUES) for name in draw.sample(FIELDS, draw.randrange(len(FIELDS)))}
    body = draw.choice((b"", b"{}", *ODD_VALUES))
    return RemotingCommand.request(draw.choice(tuple(RequestCode)), fields, body).encode()


def of(*names: str) -> Callable[[random.Random], bytes]:
    codecs: tuple[Codec, ...] = tuple(NAMES[name] for name in names)
    return lambda draw: drawn(draw, draw.choice(codecs))


def raft(draw: random.Random) -> bytes:
    """A harmed greeting, or a whole one and what is harmed behind it."""
    if draw.random() < 0.3:
        return framed(harmed(draw, drawn(draw, NAMES["Raft greeting"])))
    return encode_greeting(Greeting("c9", "c9:9879")) + framed(harmed(draw, drawn(draw, NAMES["Raft message"])))


PORTS: dict[str, Callable[[random.Random], bytes]] = {
    "c1:9876": command,
    "c1:9878": command,
    "c1:9879": raft,
    "b1:10911": command,
    "b1:10912": of("slave's handshake", "ack", "transfer"),
}


async def feed(host: Host, address: str, draw: random.Random, count: int) -> int:
    """Send so many inputs, over a new connection whenever the node has closed one; returns how often it had."""
    connection, closed = None, 0
    for _ in range(count):
        try:
            if connection is None:
                connection = await host.network.connect(address, 5.0)
            connection.write(PORTS[address](draw))
            await connection.drain()
            await host.clock.sleep(draw.choice((0.0, 0.001, 0.02)))
        except (ConnectFailed, ConnectionClosed):
            connection = None
            closed += 1
            await host.clock.sleep(0.01)
    if connection is not None:
        connection.close()
    return closed


async def send_until_taken(client: MessageClient, environment: SimulatedEnvironment) -> None:
    for _ in range(100):
        try:
            # No input names this topic, so none deletes it.
            await client.send("kept", 0, b"body")
            return
        except ClientError:
            await environment.timeline.sleep(0.5)
    raise AssertionError(f"no message is taken any more; dead nodes: {environment.panics()}")


def storm_of_inputs(seed: int, count: int, logs: Path) -> None:
    async def main(environment: SimulatedEnvironment) -> None:
        nodes = (("c1", "nameserver", CONTROLLER), ("b1", "broker", BROKER), ("b2", "broker", BROKER))
        await environment.start(
            [
                NodeSpec(
                    name=name,
                    groups=(),
                    program=PythonProgram(main=f"system_under_test.rocketmq.node:{kind}", config=config),
                )
                for name, kind, config in nodes
            ],
            logs,
        )
        client = MessageClient(environment.client_host("client"), ["c1:9876"])
        await send_until_taken(client, environment)
        async with asyncio.TaskGroup() as group:
            feeding = [
                group.create_task(
                    feed(environment.client_host("fuzzer"), address, random.Random(f"{address} {seed}"), count)
                )
                for address in PORTS
            ]
        last_words = {node: words.splitlines()[-8:] for node, words in environment.panics().items()}
        assert last_words == {}
        assert all(task.result() for task in feeding), "nothing that was sent made a node close a connection"
        await send_until_taken(client, environment)

    run_simulation(main, Seed(seed), Trace(), regime=Regime.calm())


def test_no_input_ends_a_node(tmp_path: Path) -> None:
    storm_of_inputs(1, 500, tmp_path)


@pytest.mark.gate
@pytest.mark.parametrize("seed", range(2, 8))
def test_no_input_of_many_ends_a_node(seed: int, tmp_path: Path) -> None:
    storm_of_inputs(seed, 5_000, tmp_path)
