"""How far delivery has come with each level of delay: level → queue offset before which all has been delivered.

A message counts as delivered once its copy in its own topic is confirmed and durable here: until then what was
delivered is only noted, with the end of the copy in the log, and `settle` makes it progress. So progress that is kept,
or copied to a slave, never runs ahead of what a change of master or a loss of power leaves. Progress that is lost means
that messages are delivered again, which is legal. Progress beyond the end of its queue would pass over messages written
later, which never is; therefore every cut of the log lowers it, durably, before anything new is written.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping

from system_under_test.runtime.host import Disk
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.record_file import RecordFile

QueueEnd = Callable[[str, int], int]
MAX_SETTLED = 10_000
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
"""Where delayed messages wait: those of a level in queue level - 1."""


class DelayProgress:
    """The progress of one store; levels are counted from 1."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._record = RecordFile(disk, path)
        self._offsets: dict[int, int] = {}
        self._noted: deque[tuple[int, int, int]] = deque()
        """(end of the copies in the log, level, offset), by the end."""
        self._settled: deque[tuple[int, int, int]] = deque(maxlen=MAX_SETTLED)
        """The last notes that became progress, each with the offset that its level had before."""
        self._changed = False
        self.version = 0
        """Grows with each change. To make the versions of two processes differ, start it at different numbers."""

    def load(self) -> None:
        """Read the persisted progress. Raises StorageCorrupt."""
        record = self._record.read()
        if record is not None:
            try:
                self._offsets = decode_progress(json.loads(record))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise StorageCorrupt(f"progress of delayed messages: {error!r}") from error

    def offset(self, level: int) -> int:
        """All of the level before it has been delivered."""
        return self._offsets.get(level, 0)

    def delivered(self, level: int, offset: int, end: int) -> None:
        """All of the level before `offset` has been delivered; the log holds the copies before `end`."""
        if self._noted:
            end = max(end, self._noted[-1][0])
        self._noted.append((end, level, offset))

    def settle(self, safe_end: int) -> None:
        """The log is confirmed and durable before `safe_end`."""
        while self._noted and self._noted[0][0] <= safe_end:
            end, level, offset = self._noted.popleft()
            before = self._offsets.get(level, 0)
            if offset > before:
                self._settled.append((end, level, before))
                self._offsets[level] = offset
                self._note_change()

    def as_json(self) -> dict[str, object]:
        """As RocketMQ writes it."""
        return {"offsetTable": {str(level): offset for level, offset in sorted(self._offsets.items())}}

    def take(self, offsets: Mapping[int, int], log_end: int, queue_end: QueueEnd) -> bool:
        """A master's progress, as far as the own queues reach; whether all of them do.

        The own log ends at `log_end` and has the copies, which may have to be made durable. What was delivered is: so
        the own progress stays where it is further.
        """
        taken = {level: min(offset, queue_end(SCHEDULE_TOPIC, level - 1)) for level, offset in offsets.items()}
        known = {**self._offsets, **{level: offset for _, level, offset in self._noted}}
        for level, offset in sorted(taken.items()):
            if offset > known.get(level, 0):
                self.delivered(level, offset, log_end)
        return taken == offsets

    def cut(self, log_end: int, queue_end: QueueEnd) -> None:
        """The log ends at `log_end`: what was delivered beyond it is not, what waited beyond it is no more.

        What was confirmed is cut only after an unclean election; as far as this process knows, it is delivered anew.
        """
        self._noted = deque(note for note in self._noted if note[0] <= log_end)
        while self._settled and self._settled[-1][0] > log_end:
            _, level, before = self._settled.pop()
            self._offsets[level] = min(self._offsets[level], before)
            self._note_change()
        for level, offset in self._offsets.items():
            end = queue_end(SCHEDULE_TOPIC, level - 1)
            if offset > end:
                self._offsets[level] = end
                self._note_change()

    def _note_change(self) -> None:
        self._changed = True
        self.version += 1

    async def persist(self) -> None:
        """Durable on return; nothing is written if nothing changed. Raises StorageFailed, DiskFull."""
        if self._changed:
            version = self.version
            await self._record.write(json.dumps(self.as_json(), separators=(",", ":")).encode())
            self._changed = self.version != version


def decode_progress(value: Mapping[str, object]) -> dict[int, int]:
    """From what `as_json` gave. Raises ValueError, KeyError, TypeError or AttributeError."""
    table = value["offsetTable"]
    if not isinstance(table, Mapping):
        raise TypeError(f"expected offsets by level, got {table!r}")
    offsets = {int(level): offset for level, offset in table.items()}
    if not all(level > 0 and type(offset) is int and offset >= 0 for level, offset in offsets.items()):
        raise ValueError(f"expected offsets by level, got {table!r}")
    return offsets
