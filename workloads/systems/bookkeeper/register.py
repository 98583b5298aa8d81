"""Registers in the metadata store: a key for each, written only in place of the version that was just read."""

from __future__ import annotations

from typing import Any

from harness.errors import OUTCOME_UNKNOWN, PRECONDITION_FAILED, OperationError
from harness.operation import Operation
from system_under_test.metadata.access import Conflict, MetadataError, Unavailable
from system_under_test.metadata.client import MetadataClient
from workloads.systems.bookkeeper.errors import METADATA_UNAVAILABLE
from workloads.systems.bookkeeper.nodes import METADATA_ADDRESSES

KEY = "/registers/{}"


class RegisterClient:
    """`Client` of one process."""

    def __init__(self, host: Any, patience_s: float) -> None:
        self._metadata = MetadataClient(host, METADATA_ADDRESSES, timeout_s=patience_s)

    async def open(self) -> None:
        return None

    async def close(self) -> None:
        await self._metadata.stop()

    async def invoke(self, operation: Operation) -> Operation:
        value = dict(operation.value or {})
        key = KEY.format(operation.key)
        try:
            if operation.f == "read":
                found = await self._metadata.get(key)
                value["value"] = None if found is None else int(found.value)
            else:
                await self._write(key, value["value"], value["expected"] if operation.f == "cas" else None)
        except Unavailable as error:
            is_definite = error.is_definite or operation.f == "read"
            raise OperationError(METADATA_UNAVAILABLE if is_definite else OUTCOME_UNKNOWN, str(error)) from error
        except MetadataError as error:
            raise OperationError(METADATA_UNAVAILABLE, str(error)) from error
        return operation._replace(type="ok", value=value)

    async def _write(self, key: str, value: int, expected: int | None) -> None:
        """`expected`: None where any value may be replaced. Raises MetadataError, OperationError."""
        while True:
            found = await self._metadata.get(key)
            if expected is not None and (found is None or int(found.value) != expected):
                raise OperationError(PRECONDITION_FAILED, f"{key} is {'not there' if found is None else found.value}")
            try:
                if found is None:
                    await self._metadata.create(key, str(value))
                else:
                    await self._metadata.put(key, str(value), found.version)
                return
            except Conflict:
                # Another process wrote in between, and this one wrote nothing.
                continue
