"""Where a member keeps how far it has consumed: at the brokers, or, where each member gets everything, in a file.

Both hold the newest offsets in memory and write them from time to time. What is written lags behind what is consumed,
never leads: messages come again after a failure, and none is passed over.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Protocol

from system_under_test.remoting.client_error import ClientError
from system_under_test.remoting.json_body import decode_json
from system_under_test.rocketmq.client.consumer.requests import ConsumerRequests
from system_under_test.rocketmq.consumer_protocol import MessageQueue
from system_under_test.runtime.host import Disk, DiskError, DiskFull
from system_under_test.storage.errors import StorageCorrupt, StorageFailed
from system_under_test.storage.record_file import RecordFile


class OffsetStore(Protocol):
    async def read(self, queue: MessageQueue) -> int | None:
        """Where the last consumer left the queue; None: nowhere. Raises ClientError if it cannot tell."""

    def get(self, queue: MessageQueue) -> int | None:
        """The newest offset, which may not be written yet."""

    def update(self, queue: MessageQueue, offset: int, *, may_lower: bool = False) -> None: ...

    def forget(self, queue: MessageQueue) -> None:
        """The queue is another member's now."""

    async def persist(self, queues: Sequence[MessageQueue]) -> None:
        """Write what is new. What cannot be written is tried again the next time."""


class RemoteOffsets:
    def __init__(self, requests: ConsumerRequests, group: str) -> None:
        self._requests = requests
        self._group = group
        self._offsets: dict[MessageQueue, int] = {}

    async def read(self, queue: MessageQueue) -> int | None:
        return await self._requests.committed_offset(queue, self._group)

    def get(self, queue: MessageQueue) -> int | None:
        return self._offsets.get(queue)

    def update(self, queue: MessageQueue, offset: int, *, may_lower: bool = False) -> None:
        if may_lower or offset > self._offsets.get(queue, -1):
            self._offsets[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        self._offsets.pop(queue, None)

    async def persist(self, queues: Sequence[MessageQueue]) -> None:
        await asyncio.gather(*(self._write(queue) for queue in queues if queue in self._offsets))

    async def _write(self, queue: MessageQueue) -> None:
        """Also what was written before: a master that took over may not have it."""
        try:
            await self._requests.commit(queue, self._group, self._offsets[queue])
        except ClientError:
            self._requests.forget_route(queue.topic)


class LocalOffsets:
    """Raises StorageCorrupt if the file is harmed."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._record = RecordFile(disk, path)
        self._offsets: dict[MessageQueue, int] = {}
        record = self._record.read()
        if record is not None:
            try:
                table = decode_json(record)["offsetTable"]
                self._offsets = {MessageQueue.from_json(one): int(one["offset"]) for one in table}
            except (ValueError, KeyError, TypeError) as error:
                raise StorageCorrupt(f"{path}: {error!r}") from error

    async def read(self, queue: MessageQueue) -> int | None:
        return self._offsets.get(queue)

    def get(self, queue: MessageQueue) -> int | None:
        return self._offsets.get(queue)

    def update(self, queue: MessageQueue, offset: int, *, may_lower: bool = False) -> None:
        if may_lower or offset > self._offsets.get(queue, -1):
            self._offsets[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        """It is this member's for ever."""

    async def persist(self, queues: Sequence[MessageQueue]) -> None:
        table = [{**queue.as_json(), "offset": offset} for queue, offset in sorted(self._offsets.items())]
        try:
            await self._record.write(json.dumps({"offsetTable": table}, separators=(",", ":")).encode())
        except (StorageFailed, DiskFull, DiskError):
            return
