"""A client of JetStream: each queue is a stream, which one durable consumer takes from.

What was delivered and not acknowledged is delivered again, so delivery is at least once. Nothing is deleted: what is
left in the end is read from the stream, from behind what the consumer has acknowledged without a gap.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from harness.errors import CLIENT_TIMEOUT, OperationError
from harness.operation import Operation
from workloads.systems.nats.jetstream import Jetstream, connected

CONSUMER = "dequeuers"
ACK_WAIT_S = 5
ACKNOWLEDGES_WITHIN_S = 2.5
"""So long after its beginning a dequeue still acknowledges:
the harness gives an operation up after five seconds, and what was acknowledged and never shown would count as lost."""


def stream_of(queue: str) -> str:
    """Of the queue with this key."""
    return "Q" + queue.rpartition("/")[2]


def subject_of(queue: str) -> str:
    return "queue." + queue.rpartition("/")[2]


async def keep_stream(jetstream: Jetstream, queue: str, replicas: int, **more: bool) -> str:
    """A stream that keeps all messages of a queue, which may be there already; its name. `more`: of its configuration.

    Raises OperationError.
    """
    stream = stream_of(queue)
    made = {"name": stream, "subjects": [subject_of(queue)], "num_replicas": replicas, "storage": "file"}
    limits = {"retention": "limits", "discard": "old", "max_consumers": -1, "max_msgs": -1, "max_bytes": -1}
    await jetstream.ask(f"STREAM.CREATE.{stream}", {**made, **limits, "max_age": 0, **more})
    return stream


async def make_stream(jetstream: Jetstream, queue: str, replicas: int) -> None:
    """The stream and its consumer, which may be there already. Raises OperationError."""
    stream = await keep_stream(jetstream, queue, replicas)
    consumer = {
        "durable_name": CONSUMER,
        "ack_policy": "explicit",
        "deliver_policy": "all",
        "ack_wait": ACK_WAIT_S * 1_000_000_000,
        "max_ack_pending": 10_000,
    }
    request = {"stream_name": stream, "config": consumer}
    await jetstream.ask(f"CONSUMER.DURABLE.CREATE.{stream}.{CONSUMER}", request)


class NatsClient:
    """Client of one process, at one server."""

    def __init__(self, host: Any, node: str) -> None:
        self._host, self._node = host, node
        self._jetstream: Jetstream | None = None

    async def open(self) -> None:
        self._jetstream = await connected(self._host, self._node)

    async def close(self) -> None:
        if self._jetstream is not None:
            await self._jetstream.close()
            self._jetstream = None

    async def invoke(self, operation: Operation) -> Operation:
        began_ns = self._host.clock.monotonic_ns()
        if self._jetstream is None:
            await self.open()
        assert self._jetstream is not None
        try:
            value = await self._carried_out(self._jetstream, operation, began_ns)
        except OperationError:
            await self.close()
            raise
        return operation._replace(type="ok", value=value, node=self._node)

    async def _carried_out(self, jetstream: Jetstream, operation: Operation, began_ns: int) -> Mapping[str, Any]:
        """The value of the completion."""
        queue, value = operation.key or "", dict(operation.value or {})
        if operation.f == "enqueue":
            await jetstream.publish(subject_of(queue), b"%d" % value["value"])
        elif operation.f == "dequeue":
            came = await jetstream.next_message(stream_of(queue), CONSUMER)
            value["values"] = [] if came is None else [int(came[0])]
            is_in_time = self._host.clock.monotonic_ns() - began_ns < ACKNOWLEDGES_WITHIN_S * 1e9
            if came is not None and is_in_time:
                await _acknowledged(jetstream, came[1])
        else:
            value["values"] = await _left(jetstream, stream_of(queue))
        return value


async def _acknowledged(jetstream: Jetstream, reply: str) -> None:
    """A message counts as delivered, whatever comes of its acknowledgement: where that fails, it comes again."""
    try:
        await jetstream.acknowledge(reply)
    except OperationError as error:
        if error.error is not CLIENT_TIMEOUT:
            await jetstream.close()


async def _left(jetstream: Jetstream, stream: str) -> list[int]:
    """All messages behind those that were acknowledged without a gap. Raises OperationError."""
    consumer = await jetstream.ask(f"CONSUMER.INFO.{stream}.{CONSUMER}")
    last = (await jetstream.ask(f"STREAM.INFO.{stream}"))["state"]["last_seq"]
    found = []
    for place in range(consumer["ack_floor"]["stream_seq"] + 1, last + 1):
        message = (await jetstream.ask(f"STREAM.MSG.GET.{stream}", {"seq": place}))["message"]
        found.append(int(base64.b64decode(message["data"])))
    return found
