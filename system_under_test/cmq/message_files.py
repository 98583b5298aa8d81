"""The files in which the queues' messages stand: records one behind the other, as the state machine wrote them.

    PLACE/QUEUE.FIRST       the records of a queue from message FIRST on, 20 digits

Nothing is synced as it is written: the log of entries has it all. A snapshot names the files and how long they were;
before it is published they are made durable to these lengths. At a restart they are cut to the lengths of the newest
snapshot, and the log writes again what stood behind. So what a killed process left in the page cache is never built
upon, and neither a cut that a loss of power took back nor a removed file that it brought back does harm: both are cut
or removed once more.

Claims: after `restore` the files have exactly the messages that the snapshot says, each unharmed, or StorageCorrupt is
raised. What `read` returns is the message that was written, or StorageCorrupt is raised.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from zlib import crc32

from system_under_test.cmq.record import HEAD_BYTES, decode_record, record_bytes, record_ends
from system_under_test.cmq.snapshot import files as files_of
from system_under_test.cmq.state_machine import CopiedState, FileState, Write, file_name
from system_under_test.raft.snapshot import SnapshotFile
from system_under_test.runtime.host import Disk, DiskError, File
from system_under_test.storage.errors import RecordInvalid, StorageCorrupt, StorageFailed

MAX_OPEN = 32
"""So many files of a group are open at once, those used last."""
_PIECE_BYTES = 1 << 20
_WHAT_TO_DO = "remove this node from its group, and add it anew with an empty disk"


@dataclass(slots=True)
class _MessageFile:
    first: int
    ends: array[int] = field(default_factory=lambda: array("Q"))
    """Where each record ends, in bytes."""
    durable_size: int = 0

    @property
    def size(self) -> int:
        return self.ends[-1] if self.ends else 0

    @property
    def next_number(self) -> int:
        return self.first + len(self.ends)

    def extend(self, ends: Iterable[int]) -> None:
        """By records that end so many bytes behind the last one."""
        size = self.size
        self.ends.extend([size + end for end in ends])


class MessageFiles:
    """`restore` comes first. Whatever reads or writes raises StorageFailed where the device fails."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._place = ""
        self._files: dict[str, _MessageFile] = {}
        """By name."""
        self._firsts: dict[str, list[int]] = {}
        """Of each queue the first numbers of its files, ascending."""
        self._open: OrderedDict[str, File] = OrderedDict()
        """By name, the one used last at the end."""

    # at a start, and when a snapshot comes from the leader

    def restore(self, place: str, copied: CopiedState) -> CopiedState:
        """Let the files in this directory be those of a snapshot, or of none; what they have then is returned. Raises
        StorageCorrupt where a file is missing, too short or harmed."""
        self.close()
        self._place = place
        with self._device(""):
            copied = self.reset(copied)
            for queue in copied.queues:
                ends = [*(file.first for file in queue.files[1:]), queue.next_number]
                for file, end in zip(queue.files, ends, strict=False):
                    self._load(queue.name, file, end)
        return copied

    def reset(self, copied: CopiedState) -> CopiedState:
        """Take away all that the snapshot does not name; what is left is returned."""
        sizes = {file.name: file.size for file in files_of(copied)}
        for name in self.names_on_disk():
            size = sizes.get(name)
            if size is None:
                self._disk.remove(self.path(name))
            elif (file := self._opened(name)).size > size:
                file.truncate(size)
        return copied

    def names_on_disk(self) -> list[str]:
        start = len(self._place) + 1
        return [path[start:] for path in self._disk.list(self._place)]

    def path(self, name: str) -> str:
        return f"{self._place}/{name}"

    def _load(self, queue: str, state: FileState, end: int) -> None:
        name = file_name(queue, state.first)
        if not self._disk.exists(self.path(name)):
            raise StorageCorrupt(f"{self.path(name)} is gone: {_WHAT_TO_DO}")
        loaded = _MessageFile(state.first)
        crc = 0
        for data, ends in pieces(self._opened(name), state.size, state.first):
            loaded.extend(ends)
            crc = crc32(data, crc)
        if loaded.next_number != end or loaded.size != state.size or crc != state.crc:
            raise self._harmed(name, loaded.next_number)
        loaded.durable_size = state.size
        self._files[name] = loaded
        self._firsts.setdefault(queue, []).append(state.first)

    # while it runs

    def write(self, write: Write) -> None:
        """Visible at once; durable once a `sync` that names the file is over. Raises DiskFull: then nothing of it was
        written, and it may be tried again before anything else is."""
        name = file_name(write.queue, write.file)
        written = self._files.get(name)
        if written is None:
            written = _MessageFile(write.file)
        with self._device(name):
            self._opened(name).write_at(written.size, write.data)
        if not written.ends:
            self._files[name] = written
            self._firsts.setdefault(write.queue, []).append(write.file)
        written.extend(record_ends(write.data, written.next_number))

    def read(self, queue: str, number: int) -> bytes:
        """The body of a message that the state has. Raises StorageCorrupt where it is harmed."""
        firsts = self._firsts[queue]
        name = file_name(queue, firsts[bisect_right(firsts, number) - 1])
        file = self._files[name]
        at = number - file.first
        start = file.ends[at - 1] if at else 0
        with self._device(name):
            data = self._opened(name).read_at(start, file.ends[at] - start)
        try:
            return decode_record(data, number)
        except RecordInvalid as error:
            raise self._harmed(name, number) from error

    async def sync(self, files: Iterable[SnapshotFile]) -> None:
        """Make these files durable up to these lengths, at least. Where a snapshot of the leader takes their place
        meanwhile, it ends: a snapshot that names them is refused then."""
        current = self._files
        for each in files:
            file = current[each.name]
            if file.durable_size >= each.size:
                continue
            size = file.size
            with self._device(each.name):
                await self._opened(each.name).fsync()
            if self._files is not current:
                return
            file.durable_size = max(size, file.durable_size)

    def older_than(self, copied: CopiedState) -> tuple[str, ...]:
        """Names of the files that a snapshot of this state needs no more."""
        return tuple(
            file_name(queue.name, first)
            for queue in copied.queues
            for first in self._firsts.get(queue.name, ())
            if first < queue.base
        )

    def remove(self, names: Iterable[str]) -> None:
        """Files that no snapshot names which may still be needed."""
        for name in names:
            file = self._files.pop(name)
            self._firsts[name.split(".")[0]].remove(file.first)
            self._close(name)
            with self._device(name):
                self._disk.remove(self.path(name))

    def close(self) -> None:
        """Forget all files; what is being synced is synced nevertheless."""
        for name in tuple(self._open):
            self._close(name)
        self._files, self._firsts = {}, {}

    # files

    def _opened(self, name: str) -> File:
        file = self._open.get(name)
        if file is None:
            file = self._open[name] = self._disk.open(self.path(name))
            if len(self._open) > MAX_OPEN:
                self._close(next(iter(self._open)))
        self._open.move_to_end(name)
        return file

    def _close(self, name: str) -> None:
        file = self._open.pop(name, None)
        if file is not None:
            file.close()

    @contextmanager
    def _device(self, name: str) -> Iterator[None]:
        try:
            yield
        except DiskError as error:
            raise StorageFailed(f"{self.path(name)}: {error}") from error

    def _harmed(self, name: str, number: int) -> StorageCorrupt:
        return StorageCorrupt(f"{self.path(name)} is harmed at message {number} or before: {_WHAT_TO_DO}")


def pieces(file: File, size: int, first: int) -> Iterator[tuple[bytes, list[int]]]:
    """The first `size` bytes, as far as whole records of message `first` and those after it follow each other: some
    records each time, and where in these bytes each one ends."""
    at = 0
    while at + HEAD_BYTES <= size:
        data = file.read_at(at, min(_PIECE_BYTES, size - at))
        needed = record_bytes(data)
        if len(data) < needed <= size - at:
            data = file.read_at(at, needed)
        ends = record_ends(data, first)
        if not ends:
            return
        yield data[: ends[-1]], ends
        at += ends[-1]
        first += len(ends)
