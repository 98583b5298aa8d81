"""A stream of JetStream as a log: a publish is answered with the message's place, and readers ask by place.

A `poll` asks for one message after the other by DIRECT.GET, which any replica of the stream answers that has caught
up. Which one that is nobody can choose, so `final-poll` goes another way: a consumer of a single replica is put on a
server that JetStream draws, reads that server's own copy, and says which it is. One after the other is made until it
lies where the read has to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import NOT_FOUND, PRECONDITION_FAILED, SERVICE_NOT_AVAILABLE, OperationError
from harness.operation import Operation
from workloads.systems.nats.client import keep_stream, stream_of, subject_of
from workloads.systems.nats.jetstream import Jetstream, connected

FIRST = 1
"""The place of a stream's first message."""
POLLED = 32
"""A poll gets at most so many messages."""
POLLS_WITHIN_S, PLACED_WITHIN_S = 2.0, 2.5
"""A poll asks for no further message, and a final one makes no further reader, so long after its beginning:
the harness gives an operation up after five seconds."""
READ_AT_ONCE = 200
IDLE_NS = 10_000_000_000
"""Readers are deleted by JetStream if nobody asks them for so long."""


async def make_log_stream(jetstream: Jetstream, queue: str, replicas: int) -> None:
    """The stream, which may be there already. Raises OperationError."""
    await keep_stream(jetstream, queue, replicas, allow_direct=True)


class NatsLogClient:
    """Client of one process, at one server. As a consumer it begins each queue at its first message."""

    def __init__(self, host: Any, node: str) -> None:
        self._host, self._node = host, node
        self._jetstream: Jetstream | None = None
        self._next: dict[str, int] = {}
        """Queue -> the place that its next poll asks from."""

    async def open(self) -> None:
        self._jetstream = await connected(self._host, self._node)

    async def close(self) -> None:
        if self._jetstream is not None:
            await self._jetstream.close()
            self._jetstream = None

    async def invoke(self, operation: Operation) -> Operation:
        if self._jetstream is None:
            await self.open()
        assert self._jetstream is not None
        actions = {
            "send": self._send,
            "poll": self._poll,
            "final-poll": self._final_poll,
            "caught-up": self._caught_up,
        }
        try:
            value = await actions[operation.f](self._jetstream, operation)
        except OperationError as error:
            if error.error is not PRECONDITION_FAILED:
                await self.close()
            raise
        return operation._replace(type="ok", value=value, node=operation.node or self._node)

    async def _send(self, jetstream: Jetstream, operation: Operation) -> Mapping[str, Any]:
        value = dict(operation.value or {})
        return {**value, "offset": await jetstream.publish(subject_of(operation.key or ""), b"%d" % value["message"])}

    async def _poll(self, jetstream: Jetstream, operation: Operation) -> Mapping[str, Any]:
        """What came before a request that fails is shown, and the next poll goes on behind it."""
        queue = operation.key or ""
        place = self._next.get(queue, FIRST)
        until_ns = self._host.clock.monotonic_ns() + round(POLLS_WITHIN_S * 1e9)
        found: list[tuple[int, bytes]] = []
        while len(found) < POLLED and self._host.clock.monotonic_ns() < until_ns:
            try:
                came = await jetstream.next_stored(stream_of(queue), place)
            except OperationError:
                if not found:
                    raise
                break
            if came is None:
                break
            found.append(came)
            place = came[0] + 1
        self._next[queue] = place
        return _polled(place, found)

    async def _final_poll(self, jetstream: Jetstream, operation: Operation) -> Mapping[str, Any]:
        assert operation.value is not None and operation.node is not None
        stream, place = stream_of(operation.key or ""), max(FIRST, operation.value["offset"])
        reader = await self._reader_at(jetstream, stream, place, operation.node)
        found = await jetstream.pulled(stream, reader, READ_AT_ONCE)
        await jetstream.ask(f"CONSUMER.DELETE.{stream}.{reader}")
        return _polled(found[-1][0] + 1 if found else place, found)

    async def _reader_at(self, jetstream: Jetstream, stream: str, place: int, node: str) -> str:
        """The name of a new consumer that lies at this server. Raises OperationError."""
        config = {
            "ack_policy": "none",
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": place,
            "num_replicas": 1,
            "mem_storage": True,
            "inactive_threshold": IDLE_NS,
        }
        until_ns = self._host.clock.monotonic_ns() + round(PLACED_WITHIN_S * 1e9)
        while self._host.clock.monotonic_ns() < until_ns:
            made = await jetstream.ask(f"CONSUMER.CREATE.{stream}", {"stream_name": stream, "config": config})
            if made["cluster"]["leader"] == node:
                return str(made["name"])
            await jetstream.ask(f"CONSUMER.DELETE.{stream}.{made['name']}")
        raise OperationError(SERVICE_NOT_AVAILABLE, f"no reader was put on {node}", node=node)

    async def _caught_up(self, jetstream: Jetstream, operation: Operation) -> Mapping[str, Any]:
        """Ok only if the stream's leader has nothing from the position on, and this replica no more than the leader."""
        assert operation.value is not None
        stream, place = stream_of(operation.key or ""), max(FIRST, operation.value["offset"])
        last = (await jetstream.ask(f"STREAM.INFO.{stream}"))["state"]["last_seq"]
        if place > last + 1 or await _has_message(jetstream, stream, place):
            raise OperationError(
                PRECONDITION_FAILED, f"read to {place - 1}, the leader ends at {last}", node=operation.node
            )
        return operation.value


async def _has_message(jetstream: Jetstream, stream: str, place: int) -> bool:
    """Whether the leader has one there or behind. Raises OperationError."""
    try:
        await jetstream.ask(f"STREAM.MSG.GET.{stream}", {"seq": place, "next_by_subj": ">"})
    except OperationError as error:
        if error.error is NOT_FOUND:
            return False
        raise
    return True


def _polled(place: int, found: Sequence[tuple[int, bytes]]) -> Mapping[str, Any]:
    """`place`: from where the next one asks."""
    messages = [{"offset": at, "message": int(body)} for at, body in found]
    return {"message": None, "offset": place, "messages": messages}
