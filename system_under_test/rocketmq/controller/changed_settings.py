"""What administrators have changed of a controller's settings while it ran; it outlives the process.

A change is kept together with the value that the configuration had then. A controller that starts again with another
value in its configuration goes by that: somebody has edited it since.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

from system_under_test.remoting.command import RemotingError
from system_under_test.remoting.json_body import decode_json
from system_under_test.remoting.properties import decode_properties
from system_under_test.rocketmq.controller.config import ControllerConfig
from system_under_test.rocketmq.controller.protocol import MalformedRequest
from system_under_test.runtime.host import Disk
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.record_file import RecordFile

MAX_BYTES = 64 * 1024
"""How long a request may be that changes settings."""


def parse_changes(body: bytes) -> dict[str, str]:
    """Values by setting; whether there are such settings is not looked at. Raises MalformedRequest."""
    if len(body) > MAX_BYTES:
        raise MalformedRequest(f"the body has {len(body)} bytes, settings at most {MAX_BYTES}")
    try:
        return decode_properties(body)
    except ValueError as error:
        raise MalformedRequest(f"the body is no properties: {error}") from error


class ChangedSettings:
    """`config` is what holds now: as configured until `load`."""

    def __init__(self, disk: Disk, configured: ControllerConfig) -> None:
        self._record = RecordFile(disk, f"{configured.store_path}/changed-settings")
        self._configured = configured.public()
        self._updates = asyncio.Lock()
        self.config = configured

    def load(self) -> None:
        """Raises StorageCorrupt."""
        record = self._record.read()
        if record is None:
            return
        try:
            for name, (configured, changed) in decode_json(record).items():
                if self._configured.get(name) == configured:
                    self.config = self.config.changed({name: changed})
        except (ValueError, TypeError, AttributeError, MalformedRequest, RemotingError) as error:
            raise StorageCorrupt(f"the changed settings: {error!r}") from error

    async def update(self, changes: Mapping[str, str]) -> None:
        """Durable on return. Raises MalformedRequest, RemotingError as `ControllerConfig.changed` does; StorageFailed,
        DiskFull."""
        async with self._updates:
            config = self.config.changed(changes)
            differing = {
                name: (self._configured[name], value)
                for name, value in config.public().items()
                if value != self._configured[name]
            }
            await self._record.write(json.dumps(differing, sort_keys=True).encode())
            self.config = config
