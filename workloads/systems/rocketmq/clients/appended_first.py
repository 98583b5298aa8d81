"""Clients of RocketMQ's own brokers above a group of DLedger: these append before they know who will have a message.

With controllers a broker refuses a message for want of replicas in sync before it appends anything. Above DLedger 5.4.0
answers with the same words once no majority had the message in time, and it may stand in the log all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.client import Client
from harness.errors import OUTCOME_UNKNOWN, OperationError
from harness.operation import Operation
from workloads.systems.rocketmq.errors import IN_SYNC_REPLICAS_NOT_ENOUGH


@dataclass(frozen=True, slots=True)
class AppendedFirst:
    """`Client`."""

    client: Client

    async def open(self) -> None:
        await self.client.open()

    async def close(self) -> None:
        await self.client.close()

    async def invoke(self, operation: Operation) -> Operation:
        try:
            return await self.client.invoke(operation)
        except OperationError as error:
            if error.error is not IN_SYNC_REPLICAS_NOT_ENOUGH:
                raise
            raise OperationError(OUTCOME_UNKNOWN, error.detail, node=error.node) from error
