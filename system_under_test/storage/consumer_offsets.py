"""How far each consumer group has read each queue: (group, topic, queue) → next queue offset.

Kept in memory and persisted by the store from time to time: an offset lost with a crash means that messages come
again, which is legal. An offset beyond the end of its queue would pass over messages written later, which never is;
therefore every cut of the log clamps the offsets, durably, before anything new is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, ItemsView, Mapping

from system_under_test.runtime.host import Disk
from system_under_test.storage.record_file import RecordFile


class ConsumerOffsets:
    """The offsets of one store."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._record = RecordFile(disk, path)
        self._offsets: dict[tuple[str, str, int], int] = {}
        self._changed = False
        self.version = 0
        """Grows with each change. To make the versions of two processes differ, start it at different numbers."""

    def load(self) -> None:
        """Read the persisted offsets. Raises StorageCorrupt."""
        record = self._record.read()
        if record is not None:
            self.restore(record)
            self._changed = False

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        """The group's next offset, or None if it never reported one."""
        return self._offsets.get((group, topic, queue_id))

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Take what the group reports, also if it goes back: a group may rewind."""
        self._offsets[group, topic, queue_id] = offset
        self._note_change()

    def encode(self) -> bytes:
        """All offsets as they stand on disk."""
        return json.dumps(sorted([*key, offset] for key, offset in self._offsets.items())).encode()

    def restore(self, data: bytes) -> None:
        """Replace all offsets by what `encode` gave."""
        self._offsets = {(group, topic, queue_id): offset for group, topic, queue_id, offset in json.loads(data)}
        self._note_change()

    def items(self) -> ItemsView[tuple[str, str, int], int]:
        """(group, topic, queue) with the group's next offset."""
        return self._offsets.items()

    def take(self, offsets: Mapping[tuple[str, str, int], int], queue_end: Callable[[str, int], int]) -> bool:
        """Be as a master's offsets are, as far as the own queues reach; whether all of them do."""
        taken = {key: min(offset, queue_end(key[1], key[2])) for key, offset in offsets.items()}
        if taken != self._offsets:
            self._offsets = taken
            self._note_change()
        return taken == offsets

    def drop_topic(self, topic: str) -> None:
        self._keep(lambda key: key[1] != topic)

    def drop_group(self, group: str) -> None:
        self._keep(lambda key: key[0] != group)

    def _keep(self, is_kept: Callable[[tuple[str, str, int]], bool]) -> None:
        kept = {key: offset for key, offset in self._offsets.items() if is_kept(key)}
        if len(kept) < len(self._offsets):
            self._offsets = kept
            self._note_change()

    def clamp(self, queue_end: Callable[[str, int], int]) -> None:
        """Lower every offset that lies beyond the end of its queue."""
        for (group, topic, queue_id), offset in self._offsets.items():
            end = queue_end(topic, queue_id)
            if offset > end:
                self._offsets[group, topic, queue_id] = end
                self._note_change()

    def beyond(self, queue_end: Callable[[str, int], int]) -> int:
        """How many offsets lie beyond the end of their queue."""
        return sum(offset > queue_end(topic, queue_id) for (_, topic, queue_id), offset in self._offsets.items())

    def _note_change(self) -> None:
        self._changed = True
        self.version += 1

    async def persist(self) -> None:
        """Durable on return; nothing is written if nothing changed. Raises StorageFailed."""
        if self._changed:
            self._changed = False
            await self._record.write(self.encode())
