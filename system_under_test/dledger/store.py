"""A member's log on its disk: written at once, durable by `sync`, with nothing in memory for each entry.

A log that begins anew gets files of its own, in a directory named by how often it has. Until they are durable, and the
checkpoint says so, a restart leads back to the log before, whole. Without a checkpoint all data files are checked
at a start.

    checkpoint                  where the log begins, what was durable and committed
    fileAges                    for how long files have been full
    N/data/POSITION             entries, named by their first position
    N/index/POSITION            32 bytes an entry

Claims: after a loss of power the log is one that it was since the last `sync`, or a beginning of that, and contains all
that was durable and not cut since. Within what was committed by the last checkpoint, harm is noticed by reading only,
and to the reserved channel not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from system_under_test.dledger.entry import HEAD_BYTES, NOTHING, Entry
from system_under_test.dledger.entry_files import EntryFiles, FileSizes
from system_under_test.dledger.vote_file import Beginning, Checkpoint, CheckpointFile
from system_under_test.runtime.host import Disk, DiskError, DiskFull
from system_under_test.storage.commit_log import CommitLog
from system_under_test.storage.errors import MessageTooLarge, StorageFailed
from system_under_test.storage.file_ages import FileAges
from system_under_test.storage.file_cleaner import FileAge


class FileStore:
    """An `EntryLog`; `open` comes first. Reading raises StorageFailed, and StorageCorrupt where an entry is harmed."""

    def __init__(self, disk: Disk, directory: str, sizes: FileSizes, full_share: float = 1.0) -> None:
        """Nothing is appended while more than `full_share` of the disk is in use."""
        self._disk = disk
        self._directory = directory
        self._sizes = sizes
        self._full_share = full_share
        self._checkpoint_file = CheckpointFile(disk, f"{directory}/checkpoint")
        self._checkpoint = Checkpoint()
        self._ages = FileAges(disk, f"{directory}/fileAges")
        self._files = self._files_of(Beginning())
        self._retired: list[EntryFiles] = []
        """Of logs before this one, one of which a loss of power may lead back to."""
        self._syncs = asyncio.Lock()
        self.committed = NOTHING
        """The last index that is committed, as the newest checkpoint says, which is at most the last one."""
        self._device = _Device(directory)

    @property
    def begin(self) -> int:
        return self._files.begin

    @property
    def end(self) -> int:
        return self._files.tail.index

    @property
    def end_term(self) -> int:
        return self._files.tail.term

    @property
    def durable_end(self) -> int:
        """All entries up to this index survive a loss of power; NOTHING, or the one before the first: none does."""
        return self._files.durable_end

    @property
    def end_position(self) -> int:
        """Behind the last entry."""
        return self._files.tail.position

    @property
    def data(self) -> CommitLog:
        """The data files, by position; another one where the log has begun anew. Only this store writes it."""
        return self._files.log

    async def open(self) -> None:
        """Load what is there, durably. Raises StorageCorrupt, StorageFailed, DiskFull."""
        with self._device:
            self._checkpoint = await self._checkpoint_file.read()
            times = self._checkpoint.beginning.times
            for other in range(times + 2):
                if other != times:
                    self._files_of(Beginning(other)).remove()
            files = self._files = self._files_of(self._checkpoint.beginning)
            await files.recover(self._checkpoint)
            if files.begin == NOTHING and files.beginning.position:
                # An empty log goes on with index 0, and that stands at 0.
                self._begin(self._new_files(0, 0))
            self.committed = min(self._checkpoint.committed, self.end)
            self._ages.load()
        await self.sync()

    # reading

    def entry(self, index: int) -> Entry | None:
        with self._device:
            return self._files.entry(index)

    def entries(self, first: int, last: int, most_bytes: int) -> Sequence[Entry]:
        with self._device:
            return self._files.entries(first, last, most_bytes)

    def term(self, index: int) -> int:
        with self._device:
            return self._files.term(index)

    def position_behind(self, index: int) -> int:
        """Where the entry at this index ends; where the log begins, if that is before the first one."""
        with self._device:
            return self._files.position_behind(index)

    def next_position(self, size: int) -> int:
        """Where an entry of `size` bytes would stand if it were appended now."""
        return self._files.next_position(self.end_position, size)

    # writing

    def append_own(self, term: int, bodies: Sequence[bytes]) -> Sequence[Entry]:
        entries: list[Entry] = []
        index, end = self.end, self.end_position
        for body in bodies:
            index, size = index + 1, HEAD_BYTES + len(body)
            if not self._files.fits(size):
                raise MessageTooLarge(f"{size} bytes do not fit into a file of {self._sizes.data_bytes}")
            entries.append(Entry(index, term, self._files.next_position(end, size), body))
            end = entries[-1].position + size
        if not self.append(entries):
            raise ValueError(f"an own entry of term {term} cannot follow one of term {self.end_term}")
        return entries

    def append(self, entries: Sequence[Entry]) -> bool:
        with self._device:
            self._require_room()
            return self._files.append(entries)

    def end_with(self, entry: Entry) -> bool:
        with self._device:
            if self._files.end_with(entry):
                return True
            if entry.position % self._sizes.data_bytes or not self._files.fits(entry.size):
                return False
            self._require_room()
            files = self._new_files(entry.position, entry.index)
            try:
                files.append((entry,))
            except DiskFull:
                files.remove()
                raise
            self._begin(files)
            return True

    def _require_room(self) -> None:
        if self._disk.used_share() > self._full_share:
            raise DiskFull(f"more than {self._full_share:.0%} of the disk is in use")

    def _files_of(self, beginning: Beginning) -> EntryFiles:
        return EntryFiles(self._disk, self._directory, self._sizes, beginning)

    def _new_files(self, position: int, first: int) -> EntryFiles:
        files = self._files_of(Beginning(self._files.beginning.times + 1, position))
        files.start_empty(first)
        return files

    def _begin(self, files: EntryFiles) -> None:
        self._retired.append(self._files)
        self._files = files

    # durability

    async def sync(self) -> None:
        """Make everything written before the call durable. Raises StorageFailed, for good, and DiskFull where the log
        has begun and there is no room to say so. One at a time."""
        async with self._syncs:
            await self._sync()

    async def save_committed(self, committed: int) -> None:
        """Make everything written durable, and a checkpoint that says how far it is committed: a start checks the files
        from there on. Raises StorageFailed, DiskFull."""
        async with self._syncs:
            self.committed = committed
            await self._sync(is_due=True)

    async def full_files(self, elapsed_s: Callable[[], float]) -> list[FileAge]:
        """The data files all of whose entries are durable and committed, oldest first, each with the time since it was
        first found so. `elapsed_s` is asked at that moment how many seconds more it is. Raises StorageFailed."""
        async with self._syncs:
            with self._device:
                full = self._expirable()
                with suppress(DiskFull):
                    await self._ages.grow(full, elapsed_s())
            return [FileAge(start + self._sizes.data_bytes, self._ages.of(start)) for start in full]

    async def expire(self, before_position: int) -> None:
        """Drop those of these files that end at this position or before. `begin` is raised before they go. Raises
        StorageFailed, DiskFull."""
        async with self._syncs:
            await self._sync()
            with self._device:
                ends = [start + self._sizes.data_bytes for start in self._expirable()]
                expired = [end for end in ends if end <= before_position]
                if expired:
                    self._files.begin_at(expired[-1])
            await self._sync()

    def _expirable(self) -> tuple[int, ...]:
        return self._files.full_files_before(min(self.committed, self.durable_end))

    async def _sync(self, *, is_due: bool = False) -> None:
        """With a checkpoint where it is due, or where the log begins elsewhere than the newest one says."""
        with self._device:
            files = self._files
            await files.sync()
            if files.synced_end >= files.begin != NOTHING:
                last = self._checkpoint
                if files.beginning.times != last.beginning.times:
                    # A file of these may start where one of those before did.
                    await self._ages.keep(())
                if is_due or files.beginning != last.beginning or last.end == NOTHING:
                    checkpoint = Checkpoint(files.beginning, files.synced_end, min(self.committed, files.synced_end))
                    await self._checkpoint_file.write(checkpoint)
                    self._checkpoint = checkpoint
                    self._remove_what_is_gone(files)
            files.vouch()

    def _remove_what_is_gone(self, files: EntryFiles) -> None:
        """Now that the checkpoint is that of these files."""
        files.remove_expired()
        for retired in self._retired:
            if retired.beginning.times < files.beginning.times:
                retired.remove()
        self._retired = [retired for retired in self._retired if retired.beginning.times >= files.beginning.times]


class _Device:
    """Once it has failed within, nothing is accepted or vouched for any more."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._failed = False

    def __enter__(self) -> None:
        if self._failed:
            raise StorageFailed("the device failed before")

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, DiskError | StorageFailed):
            self._failed = True
        if isinstance(error, DiskError):
            raise StorageFailed(f"{self._directory}: {error}") from error
