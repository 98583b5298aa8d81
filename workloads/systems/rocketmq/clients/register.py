"""Registers: keys of the controllers' store."""

from __future__ import annotations

from typing import Any

from harness.errors import UsageError
from harness.operation import Operation
from system_under_test.remoting.client_error import ClientError
from workloads.systems.rocketmq.clients.connect import key_value_client, operation_error
from workloads.systems.rocketmq.settings import RocketmqSettings


class RegisterClient:
    """A register by key in the controllers' store."""

    def __init__(self, host: Any, settings: RocketmqSettings, process: int) -> None:
        self._client = key_value_client(host, settings, process)

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        self._client.close()

    async def invoke(self, operation: Operation) -> Operation:
        assert operation.key is not None and operation.value is not None
        value = operation.value
        try:
            if operation.f == "read":
                read = await self._client.get(operation.key)
                return operation._replace(type="ok", value={"value": read, "expected": None})
            if operation.f == "write":
                await self._client.put(operation.key, value["value"])
                return operation._replace(type="ok")
            if operation.f == "cas":
                await self._client.compare_and_set(operation.key, value["expected"], value["value"])
                return operation._replace(type="ok")
        except ClientError as error:
            raise operation_error(error) from error
        raise UsageError(f"the register client knows read, write and cas, not {operation.f!r}")
