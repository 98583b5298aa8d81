"""No input ends a node of CMQ or changes a queue: malformed requests and messages of Raft come in at every node."""

from __future__ import annotations

import asyncio
import random

import pytest

from system_under_test.cmq import entry as entries
from system_under_test.cmq import wire
from system_under_test.cmq.wire import Request
from system_under_test.raft.message import (
    Append,
    Entry,
    Greeting,
    Kind,
    Message,
    SnapshotChunk,
    encode,
    encode_greeting,
)
from system_under_test.remoting.command import RemotingCommand
from system_under_test.runtime.host import ConnectFailed, ConnectionClosed, Host
from tests.references.malformed_inputs import harmed
from tests.unit.system_under_test.cmq.cmq_cluster import NODES, PORT, Cluster, play

QUEUE = "q"
FIELDS = {
    "queue": ("", QUEUE, "other", "a/b", "ü", "x" * 65, "x" * 70_000),
    "most": ("0", "1", "17", "-1", "9" * 400, "NaN", "٣"),
    "waitMs": ("0", "5", "-1", "1e9", ""),
    "group": ("0", "1", "2", "-1", "true", "9" * 20),
    "node": ("", "n1", "n9", "a b", "x" * 300),
    "address": ("", "n9:9300", ":", "n9:x", "n1:99999999"),
}
HARMLESS = (Request.PULL, Request.ROUTE, Request.STATUS)
"""What these ask for in earnest changes no queue."""


def request(draw: random.Random) -> bytes:
    """A whole frame of nonsense, or a harmed one of a request that would change something."""
    if draw.random() < 0.5:
        number = draw.randrange(1 << 40, 1 << 60)
        command = draw.choice((wire.produce("unknown", [b"m" * 20]), wire.ack(QUEUE, [number]), wire.create("a/b")))
        return harmed(draw, command.encode())
    fields = {name: draw.choice(values) for name, values in FIELDS.items() if draw.random() < 0.7}
    code = draw.choice((*HARMLESS, Request.ADD, 63_999))
    return RemotingCommand.request(code, fields, draw.randbytes(draw.randrange(40))).encode()


def message_of_raft(draw: random.Random) -> bytes:
    """Of a peer: entries that nobody can read, in the group's own name, or in that of another group what is harmed or
    no snapshot."""
    term = draw.choice((1, 2, 3, 1 << 40))
    command = entries.encode(entries.Produce(QUEUE, (b"m",)))
    data = draw.choice((b"\x07nonsense", b"\xff" * 30, command[:-1], command + b"m"))
    entry = Entry(1, 1, data, draw.choice((Kind.COMMAND, Kind.MEMBERSHIP)))
    if draw.random() < 0.4:
        return encode(1, Append("n9", "", term, 1, 0, 0, 1, (entry,)))
    message: Message = draw.choice(
        (Append("n9", "", term, 1, 0, 0, 1, (entry,)), SnapshotChunk("n9", "", term, 1, 9, len(data), 0, data))
    )
    return harmed(draw, encode(draw.choice((0, 2, 7, 1 << 31)), message))


def first_words(draw: random.Random) -> bytes:
    greeting = encode_greeting(Greeting("n9", f"n9:{PORT}"))
    return greeting if draw.random() < 0.8 else harmed(draw, greeting)


async def feed(host: Host, node: str, draw: random.Random, count: int) -> int:
    """So many inputs; returns how often the node closed the connection."""
    closed = 0
    for _ in range(count):
        speaks_raft = draw.random() < 0.5
        try:
            connection = await host.network.connect(f"{node}:{PORT}", 5.0)
            if speaks_raft:
                connection.write(first_words(draw))
            for _ in range(draw.randrange(1, 4)):
                connection.write(message_of_raft(draw) if speaks_raft else request(draw))
                await connection.drain()
                await host.clock.sleep(draw.choice((0.0, 0.001, 0.02)))
            connection.close()
        except (ConnectFailed, ConnectionClosed):
            closed += 1
    return closed


def storm_of_inputs(seed: int, count: int) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(QUEUE)
        await cluster.produce(QUEUE, *(b"%d" % number for number in range(9)))
        await cluster.ack(QUEUE, 4)
        async with asyncio.TaskGroup() as group:
            feeding = [
                group.create_task(
                    feed(cluster.environment.client_host("fuzzer"), node, random.Random(f"{node} {seed}"), count)
                )
                for node in NODES
            ]
        assert all(task.result() for task in feeding), "nothing that was sent made a node close a connection"
        await cluster.produce(QUEUE, b"9")
        left = await cluster.all_messages(QUEUE)
        assert left == {number: b"%d" % number for number in range(10) if number != 4}

    play(story, seed=seed, snapshotEntries=5)


def test_no_input_ends_a_node_or_changes_a_queue() -> None:
    storm_of_inputs(1, 150)


@pytest.mark.gate
@pytest.mark.parametrize("seed", range(2, 6))
def test_no_input_of_many_ends_a_node_or_changes_a_queue(seed: int) -> None:
    storm_of_inputs(seed, 1_000)
