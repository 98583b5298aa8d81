"""What published releases of RocketMQ answer: one conversation, had with a release and written down, or played back.

    python -m tests.rocketmq.scenarios.record_public_answers 5.4.0 --jars FOLDER

writes `public_transcripts/release-5.4.0.txt` anew, in the form that `test_public_transcripts.py` reads. Addresses of
nodes are written as their names and times as one time.
"""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from system_under_test.remoting.command import RemotingCommand, frame_length
from system_under_test.rocketmq.client.admin_client import AdminClient, BrokerEpochs, BrokerGroup
from system_under_test.rocketmq.client.controller_client import ControllerClient
from system_under_test.rocketmq.client.message_client import MessageClient, PullResult, SendResult
from system_under_test.rocketmq.client.pop_client import PopClient, PoppedMessage, PopResult
from system_under_test.rocketmq.controller.protocol import ControllerMetadata, GroupState
from system_under_test.rocketmq.nameserver.route import TopicRoute
from system_under_test.rocketmq.topic import TopicConfig
from system_under_test.runtime.host import ConnectionClosed

NAME_SERVER, CONTROLLER, BROKER = "c1:9876", "c1:9878", "b1:10911"
GROUP, TOPIC, READERS = "broker-a", "letters", "readers"
PATIENCE_S = 20.0
"""A virtual machine that has just started takes seconds for its first answers."""
INVISIBLE_MS = 60_000
FIXED_MS = 1_700_000_000_000
_TIME = re.compile(rb"\b1[6-9][0-9]{11}\b")
_LOOPBACK = re.compile(rb"127\.0\.0\.1:(987|109)")
_NAMES = {b"987": b"c1:987", b"109": b"b1:109"}
_BINARY_TIME = re.compile(rb"(?s)\x00\x00\x01[\x80-\xbf].{4}")


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What our clients made of the answers."""

    groups: list[BrokerGroup]
    metadata: ControllerMetadata
    states: dict[str, GroupState]
    route: TopicRoute
    sent: SendResult
    pulled: PullResult
    popped: PopResult
    changed: PoppedMessage
    epochs: BrokerEpochs
    runtime: dict[str, str]


async def conversation(host: Any, tape: Tape) -> Heard:
    admin, messages = AdminClient(host, PATIENCE_S), MessageClient(host, (NAME_SERVER,), PATIENCE_S)
    controllers, pops = ControllerClient(host, (CONTROLLER,), PATIENCE_S), PopClient(host, messages, READERS)
    try:
        with tape.titled("the groups of brokers", NAME_SERVER):
            groups = await admin.broker_groups(NAME_SERVER)
        with tape.titled("which controller is active", CONTROLLER):
            metadata = await controllers.metadata(CONTROLLER)
        controllers.active = CONTROLLER
        with tape.titled("the SyncStateSet", CONTROLLER):
            states = await controllers.sync_state_data([GROUP])
        with tape.titled("a new topic", BROKER):
            await admin.put_topic(BROKER, TopicConfig.of(TOPIC, 1))
        with tape.titled("the route of a topic", NAME_SERVER):
            route = await messages.route(TOPIC)
        with tape.titled("a message", BROKER):
            sent = await messages.send(TOPIC, 0, b"one", broker_name=GROUP)
        with tape.titled("a read", BROKER):
            pulled = await messages.pull(TOPIC, 0, 0, 8, READERS, BROKER)
        with tape.titled("a pop", BROKER):
            popped = await pops.pop(TOPIC, INVISIBLE_MS, broker_name=GROUP)
        with tape.titled("another invisible time", BROKER):
            changed = await pops.change_invisible_time(popped.messages[0], 2 * INVISIBLE_MS)
        with tape.titled("an acknowledgement", BROKER):
            await pops.ack(changed)
        with tape.titled("the epochs of a broker", BROKER):
            epochs = await admin.epochs(BROKER)
        with tape.titled("what a broker says of itself", BROKER):
            runtime = await admin.runtime_info(BROKER)
    finally:
        controllers.close()
        messages.close()
        admin.close()
    return Heard(
        groups=groups,
        metadata=metadata,
        states=states,
        route=route,
        sent=sent,
        pulled=pulled,
        popped=popped,
        changed=changed,
        epochs=epochs,
        runtime=runtime,
    )


@dataclass
class Exchange:
    title: str
    address: str
    asked: bytes = b""
    answered: bytes = b""


@dataclass
class Tape:
    exchanges: list[Exchange] = field(default_factory=list)

    @contextmanager
    def titled(self, title: str, address: str) -> Iterator[None]:
        self.exchanges.append(Exchange(title, address))
        yield


class RecordedConnection:
    """Of a real network: whole frames go onto the tape."""

    def __init__(self, connection: Any, tape: Tape) -> None:
        self._connection, self._tape = connection, tape

    @property
    def closed(self) -> bool:
        return bool(self._connection.closed)

    def write(self, data: bytes) -> None:
        self._tape.exchanges[-1].asked = data
        self._connection.write(data)

    async def read_exactly(self, count: int) -> bytes:
        data = await self._connection.read_exactly(count)
        self._tape.exchanges[-1].answered += data
        return bytes(data)

    def close(self) -> None:
        self._connection.close()


class RecordingNetwork:
    def __init__(self, network: Any, tape: Tape) -> None:
        self._network, self._tape = network, tape

    async def connect(self, address: str, timeout_s: float) -> RecordedConnection:
        return RecordedConnection(await self._network.connect(address, timeout_s), self._tape)


class PlayedConnection:
    """Answers the requests with what is on the tape, one after the other."""

    closed = False

    def __init__(self, answers: list[bytes]) -> None:
        self._answers = answers
        self._unread = bytearray()
        self._has_answer = asyncio.Event()

    def write(self, data: bytes) -> None:
        answer = RemotingCommand.decode(self._answers.pop(0)[4:])
        answer.opaque = RemotingCommand.decode(data[4:]).opaque
        self._unread += answer.encode()
        self._has_answer.set()

    async def read_exactly(self, count: int) -> bytes:
        while len(self._unread) < count:
            if self.closed:
                raise ConnectionClosed("played to its end")
            self._has_answer.clear()
            await self._has_answer.wait()
        data = bytes(self._unread[:count])
        del self._unread[:count]
        return data

    def close(self) -> None:
        self.closed = True
        self._has_answer.set()


class PlayingNetwork:
    def __init__(self, answers: list[bytes]) -> None:
        self.answers = answers

    async def connect(self, address: str, timeout_s: float) -> PlayedConnection:
        return PlayedConnection(self.answers)


def neutral(frame: bytes) -> bytes:
    """The frame without what differs from machine to machine; both lengths fit what is left."""
    assert frame_length(frame[:4]) == len(frame) - 4
    (word,) = struct.unpack_from(">I", frame, 4)
    end = 8 + (word & 0xFFFFFF)
    header, body = _neutral(frame[8:end]), _neutral(frame[end:])
    return struct.pack(">II", 4 + len(header) + len(body), word & 0xFF000000 | len(header)) + header + body


def _neutral(data: bytes) -> bytes:
    data = _TIME.sub(b"%d" % FIXED_MS, data)
    data = _LOOPBACK.sub(lambda found: _NAMES[found[1]], data)
    return _BINARY_TIME.sub(FIXED_MS.to_bytes(8, "big"), data)
