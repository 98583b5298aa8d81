"""Topics that were deleted: up to which physical offset the log's messages of a topic are no more.

The log keeps their bytes, as all replicas have to hold the same ones. Without these offsets a replica that dispatches
its log anew would bring the messages of a topic back that was deleted, and mix them with those of a new topic of the
same name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from system_under_test.runtime.host import Disk
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.record_file import RecordFile


class ForgottenTopics:
    """Topic → the physical offset before which it has no messages; every change is durable before it is seen."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._record = RecordFile(disk, path)
        self.offsets: Mapping[str, int] = MappingProxyType({})

    def load(self) -> None:
        """Raises StorageCorrupt."""
        record = self._record.read()
        if record is not None:
            try:
                self.offsets = checked(json.loads(record))
            except (ValueError, TypeError, AttributeError) as error:
                raise StorageCorrupt(f"forgotten topics: {error!r}") from error

    async def replace(self, offsets: Mapping[str, int]) -> None:
        """Raises StorageFailed, DiskFull."""
        if offsets != self.offsets:
            await self._record.write(json.dumps(dict(sorted(offsets.items()))).encode())
            self.offsets = MappingProxyType(dict(offsets))

    def up_to(self, end: int) -> dict[str, int]:
        """What is left of them when the log ends at `end`: what is written there next is no topic's past."""
        return {topic: min(offset, end) for topic, offset in self.offsets.items()}


def checked(offsets: Mapping[str, int]) -> Mapping[str, int]:
    """Raises ValueError, TypeError or AttributeError unless these are offsets by topic."""
    if not all(type(topic) is str and type(offset) is int and offset >= 0 for topic, offset in offsets.items()):
        raise ValueError(f"expected offsets by topic, got {offsets}")
    return MappingProxyType(dict(offsets))
