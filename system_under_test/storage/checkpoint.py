"""What a restart may rely on: how far the log and the consume queues are durable, and the confirm offset.

A checkpoint may lag behind the truth, never run ahead of it: before the log is cut the checkpoint is lowered, durably.
Missing or harmed, it costs time only: the whole log is checked and every consume queue is built anew, up to confirm
offset zero, so nothing unconfirmed becomes readable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from system_under_test.runtime.host import Disk
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.record_file import RecordFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Offsets are physical; `checked_offset` and `dispatched_offset` are message boundaries."""

    beginnings: int = 0
    """How often the log had begun anew: the rest is true of that log only."""
    min_offset: int = 0
    checked_offset: int = 0
    """All before it is durable and was checked or written by this process."""
    dispatched_offset: int = 0
    """All before it is in consume queues that are durable as `queue_entries` says."""
    confirm_offset: int = 0
    queue_entries: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Consume queue name → first queue offset in its file, queue offset behind its last durable entry."""
    index_entries: Mapping[str, int] | None = None
    """File of the index → how many of its entries are durable. None: there is no index of what is dispatched."""

    @property
    def place(self) -> tuple[int, int]:
        """How often the log had begun anew, and where it begins."""
        return self.beginnings, self.min_offset


class CheckpointFile:
    """The durable checkpoint of one store."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._record = RecordFile(disk, path)

    def load(self) -> Checkpoint | None:
        """The last checkpoint written, or None if there is none to believe."""
        try:
            record = self._record.read()
        except StorageCorrupt:
            return None
        if record is None:
            return None
        fields = json.loads(record)
        fields["queue_entries"] = {name: (first, end) for name, (first, end) in fields["queue_entries"].items()}
        return Checkpoint(**fields)

    async def write(self, checkpoint: Checkpoint) -> None:
        """Durable on return. Raises StorageFailed."""
        fields = {
            "beginnings": checkpoint.beginnings,
            "min_offset": checkpoint.min_offset,
            "checked_offset": checkpoint.checked_offset,
            "dispatched_offset": checkpoint.dispatched_offset,
            "confirm_offset": checkpoint.confirm_offset,
            "queue_entries": dict(checkpoint.queue_entries),
            "index_entries": None if checkpoint.index_entries is None else dict(checkpoint.index_entries),
        }
        await self._record.write(json.dumps(fields).encode())
