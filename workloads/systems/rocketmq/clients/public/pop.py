"""The workload `pop` by the public client, one for each logical process.

It knows whole seconds only: an invisible time is rounded up, so a message may come later than the history says, and
never sooner for that. Which queue it asks next is its own choice, which of one group of brokers makes no difference.
"""

from __future__ import annotations

import math
from typing import Any

from harness.errors import OperationError
from harness.operation import Operation
from system_under_test.runtime.real import RealHost
from workloads.systems.rocketmq.clients.connect import request_timeout_s
from workloads.systems.rocketmq.clients.pop import BATCH, GROUP, POLL_SHARE, PopWorkloadClient, message_of, not_held
from workloads.systems.rocketmq.clients.public.process import public_process
from workloads.systems.rocketmq.settings import PROXY_PORT, RocketmqSettings, proxy_names

POLL_S = 1
OBSERVING = -1
"""Stands in place of a process's number for a client that takes no part in the workload."""


class PopByPublicClient(PopWorkloadClient):
    """Asks one proxy, which is drawn unless one is given."""

    def __init__(self, host: RealHost, settings: RocketmqSettings, process: int, proxy: str | None = None) -> None:
        super().__init__(host, settings)
        self._proxy = proxy or host.random.choice(proxy_names(settings))
        self._endpoints = host.network.reached_at(f"{self._proxy}:{PROXY_PORT}")
        self._timeout_s = math.ceil(request_timeout_s(settings))
        self._name = f"{process}-{host.random.getrandbits(64):016x}"
        self._received: set[int] = set()

    async def open(self) -> None:
        await self._ask("open", endpoints=self._endpoints, topic=self._topic, group=GROUP, timeout_s=self._timeout_s)

    async def close(self) -> None:
        await self._ask("close")
        await super().close()

    async def _ask(self, do: str, **request: Any) -> Any:
        """Raises OperationError."""
        return await public_process(self._host).ask(self._name, do, self._proxy, **request)

    async def _send(self, operation: Operation) -> Operation:
        await self._ask("send", body=str(message_of(operation)))
        return operation._replace(type="ok", node=self._proxy)

    async def _pop(self, operation: Operation) -> Operation:
        assert operation.value is not None
        waits = operation.f == "pop" and self._host.random.random() < POLL_SHARE
        asked_ns = self._holds.now_ns()
        invisible_s = _whole_seconds(operation.value["invisible_ms"])
        received = await self._ask("receive", most=BATCH, invisible_s=invisible_s, wait_s=POLL_S if waits else 0)
        deliveries = [{"message": int(body), "times": attempt - 1} for body, attempt in received]
        for delivery in deliveries:
            self._received.add(delivery["message"])
            self._holds.hold(delivery["message"], asked_ns, 1_000 * invisible_s)
        return operation._replace(type="ok", value={**operation.value, "deliveries": deliveries}, node=self._proxy)

    async def _ack(self, operation: Operation) -> Operation:
        await self._ask("ack", message=self._given_by(operation))
        self._holds.acknowledged(message_of(operation), self._proxy)
        return operation._replace(type="ok", node=self._proxy)

    async def _change(self, operation: Operation) -> Operation:
        assert operation.value is not None
        invisible_s = _whole_seconds(operation.value["invisible_ms"])
        given = self._given_by(operation)
        self._holds.require_unacknowledged(message_of(operation))
        asked_ns = self._holds.now_ns()
        await self._ask("change", message=given, invisible_s=invisible_s)
        self._holds.changed(message_of(operation), asked_ns, 1_000 * invisible_s)
        return operation._replace(type="ok", node=self._proxy)

    def _given_by(self, operation: Operation) -> str:
        """Raises OperationError."""
        if message_of(operation) not in self._received:
            raise not_held()
        return str(message_of(operation))


async def until_reached(host: RealHost, settings: RocketmqSettings) -> None:
    """Each proxy takes the public client in."""
    for proxy in proxy_names(settings):
        while True:
            client = PopByPublicClient(host, settings, OBSERVING, proxy)
            try:
                await client.open()
                break
            except OperationError:
                await host.clock.sleep(0.1)
            finally:
                await client.close()


def _whole_seconds(milliseconds: int) -> int:
    return -(-milliseconds // 1_000)
