"""Where the log begins, and which queue offsets the first messages have that stand there or later, queue by queue.

Messages say their queue offsets themselves. A queue that has none in what is left of the log would begin at 0 again, so
that one offset is given twice: where files are deleted, and where a replica begins in the middle of its master's log.
Written before the log begins there, so a restart in between finds a beginning that the log has not reached yet. That
harms nothing: a queue with messages before it has their offsets, and one without has the same offset at both places.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from system_under_test.runtime.host import Disk
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.record_file import RecordFile

QueueOffsets = Mapping[tuple[str, int], int]
"""(topic, queue id) -> queue offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBeginning:
    """Of the log that has begun anew `beginnings` times."""

    beginnings: int = 0
    offset: int = 0
    """Physical; the queues' offsets are those at this place."""
    queues: QueueOffsets = field(default_factory=dict)
    """Those that are not listed begin at 0."""
    is_part: bool = False
    """What was before it has not expired: the master had it when this log began."""

    @property
    def place(self) -> tuple[int, int]:
        """How often the log had begun anew, and where it begins."""
        return self.beginnings, self.offset


class LogBeginningFile:
    """The durable beginning of one log; None where it is not known."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._record = RecordFile(disk, path)
        self.current: LogBeginning | None = None

    def load(self) -> None:
        """Raises StorageCorrupt: without it a queue offset might be given twice."""
        record = self._record.read()
        if record is not None:
            try:
                self.current = _decoded(json.loads(record))
            except (ValueError, KeyError, TypeError) as error:
                raise StorageCorrupt(f"beginning of the log: {error!r}") from error

    def of(self, beginnings: int) -> LogBeginning | None:
        """What is known of the log that has begun anew so often."""
        return self.current if self.current is not None and self.current.beginnings == beginnings else None

    async def replace(self, beginning: LogBeginning | None) -> None:
        """Durable on return. Raises StorageFailed, DiskFull."""
        if beginning != self.current:
            await self._record.write(_encoded(beginning))
            self.current = beginning


def _encoded(beginning: LogBeginning | None) -> bytes:
    if beginning is None:
        return b"null"
    queues = sorted([topic, queue_id, offset] for (topic, queue_id), offset in beginning.queues.items())
    fields = [beginning.beginnings, beginning.offset, beginning.is_part, queues]
    return json.dumps(fields, separators=(",", ":")).encode()


def _decoded(fields: object) -> LogBeginning | None:
    if fields is None:
        return None
    if not isinstance(fields, list):
        raise ValueError(f"expected a list, got {fields!r}")
    beginnings, offset, is_part, queues = fields
    offsets = {(str(topic), int(queue_id)): int(queue_offset) for topic, queue_id, queue_offset in queues}
    return LogBeginning(
        beginnings=int(beginnings), offset=int(offset), queues=MappingProxyType(offsets), is_part=bool(is_part)
    )
