"""Transactional messages: halves, sent by producers of one group of which each may be asked; received as from a queue.

How a transaction ends stands in the message, so each producer that is asked knows it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from harness.errors import OperationError
from harness.operation import Operation
from system_under_test.remoting.client_error import ClientError
from system_under_test.rocketmq.client.transaction_client import TransactionProducer
from system_under_test.rocketmq.transaction_protocol import Decision
from workloads.systems.rocketmq.clients.borders import padded
from workloads.systems.rocketmq.clients.connect import carry_out
from workloads.systems.rocketmq.clients.queue import QueueClient
from workloads.systems.rocketmq.errors import ROLLED_BACK
from workloads.systems.rocketmq.settings import (
    NAMESERVER_PORT,
    RocketmqSettings,
    addresses,
    name_server_names,
    node_of,
)

PRODUCERS = "producers"
REQUEST_TIMEOUT_S = 1.5
"""A transaction makes two requests."""
HEARTBEAT_S = 1.0
COMMITS, ROLLS_BACK = b" commits", b" rolls back"
_OF_A_HALF = "x" * (len("TRAN_MSG..true") + len("PGROUP..producers") + len("UNIQ_KEY..") + 32)
"""Stands for the properties that its producer gives a half message, and is as long as they are."""


class TransactionalClient:
    def __init__(self, host: Any, settings: RocketmqSettings) -> None:
        self._host = host
        self._settings = settings
        self._queue = QueueClient(host, settings, workload="transactional")
        self._producer = TransactionProducer(
            host,
            addresses(name_server_names(settings), NAMESERVER_PORT),
            PRODUCERS,
            decision_of,
            timeout_s=REQUEST_TIMEOUT_S,
            heartbeat_s=HEARTBEAT_S,
        )
        self._requests = {
            "enqueue": self._enqueue,
            "dequeue": self._queue.dequeue,
            "drain": self._queue.drain,
        }

    async def open(self) -> None:
        self._producer.start(self._queue.topic)

    async def close(self) -> None:
        self._producer.close()
        await self._queue.close()

    async def invoke(self, operation: Operation) -> Operation:
        return await carry_out(self._requests, operation)

    async def _enqueue(self, operation: Operation) -> Operation:
        value = operation.value
        assert value is not None
        commits = value["commits"]
        body = self._padded(b"%d" % value["value"] + (COMMITS if commits else ROLLS_BACK))
        try:
            group, queue = self._queue.queues.of(operation)
            half = await self._producer.send_half(self._queue.topic, queue, body, broker_name=group.name)
            if value["is_said"]:
                # Who does not hear of it asks.
                with suppress(ClientError):
                    await self._producer.end(half, decision_of(body))
        except ClientError:
            if commits:
                raise
            raise OperationError(ROLLED_BACK, "the half may have been sent") from None
        if not commits:
            raise OperationError(ROLLED_BACK, "as decided", node=node_of(half.broker))
        return operation._replace(type="ok", node=node_of(half.broker))

    def _padded(self, body: bytes) -> bytes:
        if self._settings.values == "ordinary":
            return body
        return padded(body, self._queue.topic, _OF_A_HALF, self._settings, self._host.random)


def decision_of(body: bytes) -> Decision:
    return Decision.COMMIT if body.endswith(COMMITS) else Decision.ROLLBACK
