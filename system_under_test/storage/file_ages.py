"""For how long each full file of the log has been full, counted while its broker ran.

Wall clocks jump, and with them whatever compares times of messages or files with now: a broker whose clock jumps by a
day would take all files of that day for expired. So an age is a sum of spans of the monotonic clock, kept durably; time
in which the broker was down does not count, and a file is younger than it is rather than older. Ages are those of what
is in a file: where the log is cut in it, or begins anew, its age is forgotten, durably, before that is written again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from system_under_test.runtime.host import Disk
from system_under_test.storage.errors import StorageCorrupt
from system_under_test.storage.record_file import RecordFile


class FileAges:
    """Start of a full file -> seconds since it was first seen full."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._record = RecordFile(disk, path)
        self._ages_s: dict[int, float] = {}

    def load(self) -> None:
        """A record that is harmed costs time only: all files are new."""
        try:
            record = self._record.read()
            pairs = [] if record is None else json.loads(record)
            self._ages_s = {int(start): float(age_s) for start, age_s in pairs}
        except (StorageCorrupt, ValueError, TypeError):
            self._ages_s = {}

    def of(self, start: int) -> float:
        """0 for a file that was not seen full."""
        return self._ages_s.get(start, 0.0)

    async def grow(self, full: Iterable[int], seconds: float) -> None:
        """These are full, and were for so many seconds if they are known; all others are forgotten. Durable on return.

        Raises StorageFailed, DiskFull: then nothing has changed.
        """
        await self._replace({start: self._ages_s[start] + seconds if start in self._ages_s else 0.0 for start in full})

    async def keep(self, full: Iterable[int]) -> None:
        """Forget all but these; durable on return. Raises StorageFailed, DiskFull."""
        await self._replace({start: self._ages_s[start] for start in full if start in self._ages_s})

    async def _replace(self, ages_s: dict[int, float]) -> None:
        if ages_s != self._ages_s:
            await self._record.write(json.dumps(sorted(ages_s.items())).encode())
            self._ages_s = ages_s
