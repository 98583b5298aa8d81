"""The file system of one node: files, directories and their names in memory, seen and durable.

What an fsync and a loss of power do to it follows `harness.environments.disk.durability`, as on simulated disks.
Owners, modes and times are durable at once. An fsync of a file makes its newest name durable as well, and the names of
the directories above; an fsync of a directory those in it.

Errors are OSError with the number that a process gets. Nothing here knows the kernel's protocol.
"""

from __future__ import annotations

import errno
import os
import random
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from harness.environments.disk.disk_faults import DiskFaults, DiskTroubles
from harness.environments.disk.durability import Inode, NameJournal, NameOrder, survival
from harness.environments.impairment import DiskErrors, FailingFsync, FullDisk, MisdirectedWrites

ROOT: Final = 1
MAX_PENDING_BYTES: Final = 64 << 20
"""Once a file has more unsynced bytes than this, half of the writes are written back by the kernel."""
LARGEST_FILE_BYTES: Final = 4 << 30
"""Files lie in memory, also what of them is empty."""
USUAL_FSYNC_S: Final = 0.002
"""What an fsync of a disk takes that is not slow; the memory here takes nothing, so a slow disk waits so many times."""


class Node:
    """A file, directory, symbolic link, socket or FIFO. Known to the kernel by its number."""

    __slots__ = (
        "changed_ns",
        "data",
        "entries",
        "gid",
        "links",
        "lookups",
        "mode",
        "modified_ns",
        "number",
        "parent",
        "pending_bytes",
        "rdev",
        "read_ns",
        "target",
        "uid",
    )

    def __init__(self, number: int, mode: int, uid: int, gid: int) -> None:
        self.number, self.mode, self.uid, self.gid, self.rdev = number, mode, uid, gid, 0
        self.read_ns = self.modified_ns = self.changed_ns = time.time_ns()
        self.links = 0
        """How many names it has."""
        self.lookups = 0
        """How often the kernel was told of it and has not forgotten it again."""
        self.data = Inode() if stat.S_ISREG(mode) else None
        self.pending_bytes = 0
        self.entries: dict[bytes, Node] | None = {} if stat.S_ISDIR(mode) else None
        self.parent: Node | None = None
        """Of a directory."""
        self.target = b""

    @property
    def size(self) -> int:
        return len(self.data.content) if self.data is not None else len(self.target)

    @property
    def shown_links(self) -> int:
        if self.entries is None:
            return self.links
        return (2 + sum(one.entries is not None for one in self.entries.values())) if self.links else 0

    def touch(self) -> None:
        self.modified_ns = self.changed_ns = time.time_ns()


Key = tuple[Node, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Saved:
    """What is copied of a node."""

    number: int
    mode: int
    uid: int
    gid: int
    rdev: int
    target: bytes
    modified_ns: int
    content: bytes

    @staticmethod
    def of(node: Node) -> _Saved:
        return _Saved(
            number=node.number,
            mode=node.mode,
            uid=node.uid,
            gid=node.gid,
            rdev=node.rdev,
            target=node.target,
            modified_ns=node.modified_ns,
            content=bytes(node.data.content) if node.data is not None else b"",
        )


Image = list[tuple[bytes, _Saved]]
"""What lies on a volume, by path."""


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class Volume:
    def __init__(self, draw: random.Random) -> None:
        """`draw`: decides which calls fail where only a share of them is to."""
        self.faults = DiskFaults()
        self.troubles = DiskTroubles(self.faults, on_pace=lambda: None)
        self.used_bytes = 0
        self.generation = 0
        """How often power was lost."""
        self._draw = draw
        self._failed_read: tuple[Node, int] | None = None
        self._last = ROOT
        self.root = Node(ROOT, stat.S_IFDIR | 0o755, 0, 0)
        self.root.links = 1
        self.root.parent = self.root
        self.nodes: dict[int, Node] = {ROOT: self.root}
        self._journal: NameJournal[Key, Node] = NameJournal(holder=lambda key: key[0], order=NameOrder.JOURNALLED)

    # Names ----------------------------------------------------------------------------------------------------

    def lookup(self, directory: Node, name: bytes) -> Node:
        node = _entries(directory).get(name)
        if node is None:
            raise _error(errno.ENOENT)
        return node

    def make(
        self, directory: Node, name: bytes, *, mode: int, uid: int, gid: int, rdev: int = 0, target: bytes = b""
    ) -> Node:
        entries = self._living(directory)
        if name in entries:
            raise _error(errno.EEXIST)
        if directory.mode & stat.S_ISGID:
            gid = directory.gid
            if stat.S_ISDIR(mode):
                mode |= stat.S_ISGID
        self._last += 1
        node = self.nodes[self._last] = Node(self._last, mode, uid, gid)
        node.rdev, node.target = rdev, target
        if node.entries is not None:
            node.parent = directory
        self._name(directory, name, node)
        return node

    def link(self, node: Node, directory: Node, name: bytes) -> None:
        if name in self._living(directory):
            raise _error(errno.EEXIST)
        if not node.links:
            raise _error(errno.ENOENT)
        self._name(directory, name, node)

    def _name(self, directory: Node, name: bytes, node: Node) -> None:
        _entries(directory)[name] = node
        node.links += 1
        node.changed_ns = time.time_ns()
        directory.touch()
        self._journal.changed(time.monotonic_ns(), (directory, name), node)

    def remove(self, directory: Node, name: bytes, *, is_directory: bool) -> None:
        node = self.lookup(directory, name)
        if is_directory:
            if node.entries is None:
                raise _error(errno.ENOTDIR)
            if node.entries:
                raise _error(errno.ENOTEMPTY)
        elif node.entries is not None:
            raise _error(errno.EISDIR)
        del _entries(directory)[name]
        self._unname(node)
        directory.touch()
        self._journal.changed(time.monotonic_ns(), (directory, name), None, removed=node)

    def _unname(self, node: Node) -> None:
        node.links -= 1
        node.changed_ns = time.time_ns()
        if not node.links:
            self.used_bytes -= node.size if node.data is not None else 0
            self._forget_if_gone(node)

    def rename(self, source: Node, old: bytes, target: Node, new: bytes, *, may_replace: bool = True) -> None:
        node = self.lookup(source, old)
        replaced = self._living(target).get(new)
        if replaced is node:
            return
        if replaced is not None:
            if not may_replace:
                raise _error(errno.EEXIST)
            if (replaced.entries is None) != (node.entries is None):
                raise _error(errno.ENOTDIR if replaced.entries is None else errno.EISDIR)
            if replaced.entries:
                raise _error(errno.ENOTEMPTY)
        del _entries(source)[old]
        _entries(target)[new] = node
        if node.entries is not None:
            node.parent = target
        if replaced is not None:
            self._unname(replaced)
        node.changed_ns = time.time_ns()
        source.touch()
        target.touch()
        self._journal.changed(time.monotonic_ns(), (target, new), node, renamed_from=(source, old), removed=replaced)

    def listing(self, directory: Node) -> list[tuple[bytes, Node]]:
        parent = directory.parent or directory
        return [(b".", directory), (b"..", parent), *_entries(directory).items()]

    def _living(self, directory: Node) -> dict[bytes, Node]:
        if not directory.links:
            raise _error(errno.ENOENT)
        return _entries(directory)

    def forget(self, number: int, count: int) -> None:
        node = self.nodes.get(number)
        if node is not None:
            node.lookups -= count
            self._forget_if_gone(node)

    def _forget_if_gone(self, node: Node) -> None:
        if not node.links and node.lookups <= 0:
            self.nodes.pop(node.number, None)

    # Content --------------------------------------------------------------------------------------------------

    def read(self, node: Node, offset: int, length: int) -> bytes:
        # What it could not read ahead the kernel asks for once more, before it tells the process: that is one failure.
        again, self._failed_read = (node, offset) == self._failed_read, None
        if again and self.faults.read_error_probability:
            raise _error(errno.EIO)
        if self._happens(self.faults.read_error_probability):
            self.troubles.struck(DiskErrors, f"read {self._path(node)} {offset}+{length}")
            self._failed_read = (node, offset)
            raise _error(errno.EIO)
        return bytes(memoryview(_data(node).content)[offset : offset + length])

    def write(self, node: Node, offset: int, data: bytes, *, is_durable: bool) -> None:
        """`is_durable`: it was opened with O_SYNC or O_DSYNC."""
        inode = _data(node)
        self._require_room(node, offset + len(data), f"write {offset}+{len(data)}")
        if self._happens(self.faults.write_error_probability):
            self.troubles.struck(DiskErrors, f"write {self._path(node)} {offset}+{len(data)}")
            raise _error(errno.EIO)
        before = node.size
        place = self.troubles.place_of(inode, offset, len(data))
        if place != offset:
            self.troubles.struck(MisdirectedWrites, f"write {self._path(node)} {offset}+{len(data)} to {place}")
            if offset + len(data) > before:
                inode.change(offset + len(data), None)
        inode.change(place, data)
        self._grown(node, node.size - before)
        node.pending_bytes += len(data)
        node.touch()
        if is_durable:
            self.fsync(node)
        elif node.pending_bytes > MAX_PENDING_BYTES:
            inode.carry(inode.carried + len(inode.operations) // 2 + 1)
            node.pending_bytes = _unsynced(inode)

    def truncate(self, node: Node, size: int) -> None:
        inode = _data(node)
        self._require_room(node, size, f"truncate {size}")
        before = node.size
        if size != before:
            inode.change(size, None)
            self._grown(node, size - before)
        node.touch()

    def clear(self, node: Node, offset: int, length: int) -> None:
        """Zeros, as far as there is something."""
        length = min(length, node.size - offset)
        if length > 0:
            self.write(node, offset, bytes(length), is_durable=False)

    def _grown(self, node: Node, bytes_more: int) -> None:
        if node.links:
            self.used_bytes += bytes_more

    def _require_room(self, node: Node, size: int, call: str) -> None:
        capacity = self.faults.capacity_bytes
        growth = size - node.size
        if size > LARGEST_FILE_BYTES:
            raise _error(errno.EFBIG)
        if growth > 0 and capacity is not None and self.used_bytes + growth > capacity:
            self.troubles.struck(FullDisk, f"{call.partition(' ')[0]} {self._path(node)} {call.partition(' ')[2]}")
            raise _error(errno.ENOSPC)

    def fsync(self, node: Node) -> None:
        """What was written until now becomes durable, with the newest name, or fails, and then it never does."""
        inode = _data(node)
        if self._happens(self.faults.fsync_error_probability):
            self.troubles.struck(FailingFsync, f"fsync {self._path(node)} {inode.drop(inode.written)} bytes")
            node.pending_bytes = 0
            raise _error(errno.EIO)
        inode.carry(inode.written)
        node.pending_bytes = 0
        self._sync_name(node)

    def fsync_directory(self, directory: Node) -> None:
        if self._happens(self.faults.fsync_error_probability):
            self.troubles.struck(FailingFsync, f"fsync {self._path(directory)}")
            raise _error(errno.EIO)
        for change in [one for one in self._journal.changes if any(key[0] is directory for key in one.names())]:
            self._journal.sync_until(change)
        self._sync_name(directory)

    def _sync_name(self, node: Node) -> None:
        """And those of the directories above."""
        while True:
            named = [one for one in self._journal.changes if one.inode is node]
            if named:
                self._journal.sync_until(named[-1])
            above = named[-1].name[0] if named else node.parent
            if above is None or above is node:
                return
            node = above

    @property
    def harms_reads(self) -> bool:
        """Whether reads are not what the kernel has in memory, but fail, or find what went elsewhere."""
        return self.faults.read_error_probability > 0.0 or self.faults.misdirects_writes

    @property
    def wait_s(self) -> float:
        """What an fsync takes longer than here, where the disk is slow."""
        return (self.faults.fsync_slow_factor - 1.0) * USUAL_FSYNC_S

    def _happens(self, probability: float) -> bool:
        return probability > 0.0 and self._draw.random() < probability

    # What lies there ------------------------------------------------------------------------------------------

    def image(self) -> Image:
        """A copy of everything, as processes see it."""
        return [(path, _Saved.of(node)) for path, node in self._names()]

    def put_back(self, image: Image, *, spared: frozenset[str] = frozenset()) -> None:
        """There is just this, durably; and what is `spared`, as it is."""
        stays = [(path, _Saved.of(node)) for path, node in self._names() if os.fsdecode(path) in spared]
        self.generation += 1
        before = [node for _, node in self._walk()]
        self._journal.clear()
        self._become_durable()
        kept = {path: saved for path, saved in [*image, *stays]}
        made: dict[int, Node] = {}
        for path, saved in sorted(kept.items()):
            folder, _, name = path.rpartition(b"/")
            directory = self._found(folder)
            if directory is None:
                continue
            if (known := made.get(saved.number)) is not None:
                self._name(directory, name, known)
                continue
            node = self.make(directory, name, mode=saved.mode, uid=saved.uid, gid=saved.gid, rdev=saved.rdev)
            node.gid, node.target, node.modified_ns = saved.gid, saved.target, saved.modified_ns
            made[saved.number] = node
            if node.data is not None:
                node.data.content[:] = node.data.durable[:] = saved.content
        self._journal.settle()
        self.used_bytes = sum(node.size for _, node in self._walk() if node.data is not None)
        for node in before:
            self._forget_if_gone(node)

    def _found(self, path: bytes) -> Node | None:
        """The directory of this path."""
        node: Node | None = self.root
        for name in path.split(b"/") if path else ():
            node = None if node is None or node.entries is None else node.entries.get(name)
        return node

    def files(self) -> list[tuple[str, Node]]:
        """Regular files by path, each once."""
        return [(os.fsdecode(path), node) for path, node in self._walk() if node.data is not None]

    def _walk(self) -> Iterator[tuple[bytes, Node]]:
        """Everything that has a name, sorted, each once; the root is not among it."""
        seen: set[Node] = set()
        for path, node in self._names():
            if node not in seen:
                seen.add(node)
                yield path, node

    def _names(self) -> Iterator[tuple[bytes, Node]]:
        """All names below the root, with what has them."""
        seen = {self.root}
        pending: list[tuple[bytes, Node]] = [(b"", self.root)]
        while pending:
            place, directory = pending.pop()
            for name, node in sorted(_entries(directory).items(), reverse=True):
                if node in seen:
                    continue
                path = place + name
                if node.entries is not None:
                    seen.add(node)
                    pending.append((path + b"/", node))
                yield path, node

    def _path(self, wanted: Node) -> str:
        return next((os.fsdecode(path) for path, node in self._walk() if node is wanted), f"file {wanted.number}")

    def known_names(self) -> set[tuple[int, bytes]]:
        """All names, with the numbers of their directories."""
        everybody = [self.root, *(node for _, node in self._walk())]
        return {(one.number, name) for one in everybody if one.entries is not None for name in one.entries}

    # Loss of power --------------------------------------------------------------------------------------------

    def lose_power(self, draw: random.Random) -> tuple[int, int]:
        """Keep what is durable and of the rest what the draw says; returns how many bytes and names were lost."""
        self.generation += 1
        surviving = survival(draw)
        before = [node for _, node in self._walk()]
        lost_names = self._journal.lose_power(draw, surviving, time.monotonic_ns())
        self._become_durable()
        after = {node: None for _, node in self._walk()}
        lost_bytes = sum(_unsynced(node.data) for node in before if node.data is not None and node not in after)
        for node in after:
            if node.data is not None:
                lost_bytes += node.data.lose_power(draw, surviving)
                node.pending_bytes = 0
        self.used_bytes = sum(node.size for node in after if node.data is not None)
        for node in before:
            self._forget_if_gone(node)
        return lost_bytes, lost_names

    def _become_durable(self) -> None:
        """Let processes see the names that are durable."""
        for node in list(self.nodes.values()):
            node.links = 0
            if node.entries is not None:
                node.entries.clear()
        self.root.links = 1
        for (directory, name), node in self._journal.durable.items():
            _entries(directory)[name] = node
        for _, directory in [(b"", self.root), *self._walk()]:
            if directory.entries is not None:
                for name, node in list(directory.entries.items()):
                    if node.entries is not None:
                        if node.links:  # a directory has one name
                            del directory.entries[name]
                            continue
                        node.parent = directory
                    node.links += 1
                    self.nodes[node.number] = node


def _entries(directory: Node) -> dict[bytes, Node]:
    if directory.entries is None:
        raise _error(errno.ENOTDIR)
    return directory.entries


def _data(node: Node) -> Inode:
    if node.data is None:
        raise _error(errno.EISDIR if node.entries is not None else errno.EINVAL)
    return node.data


def _unsynced(inode: Inode) -> int:
    return sum(len(data) for _, data in inode.operations if data is not None)


class Damaged:
    """`Damageable`: a volume without what is spared."""

    def __init__(self, volume: Volume, spared: frozenset[str]) -> None:
        self._volume = volume
        self._files: dict[str, Node] = {
            path: node for path, node in volume.files() if path not in spared and node.size > 0
        }

    def files(self) -> list[tuple[str, Inode]]:
        return [(path, _data(node)) for path, node in self._files.items()]

    def rot(self, path: str, offset: int, mask: int = 1) -> bool:
        return _data(self._files[path]).flip(offset, mask)

    def cut_short(self, path: str, size: int) -> None:
        node = self._files[path]
        self._volume.used_bytes -= node.size - size
        _data(node).cut_short(size)
        node.pending_bytes = 0
