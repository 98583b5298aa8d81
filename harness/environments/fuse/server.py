"""Answers the kernel's requests with what a volume says.

The kernel keeps what it was told of names and content until it hears that they have changed, which only happens to a
volume from outside: by a loss of power or damage. Locks, permissions and mapped memory are the kernel's own business;
extended attributes are not supported.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import struct
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from harness.environments.fuse.kernel import Kernel, Request
from harness.environments.fuse.volume import Node, Volume

ATTRIBUTES: Final = struct.Struct("<QQQQQQIIIIIIIIII")
ENTRY: Final = struct.Struct("<QQQQII")
SHOWN: Final = struct.Struct("<QII")
OPENED: Final = struct.Struct("<QII")
SET_ATTRIBUTES: Final = struct.Struct("<IIQQQQQQIIIIIIII")
TRANSFER: Final = struct.Struct("<QQIIQII")
ENTRY_OF_DIRECTORY: Final = struct.Struct("<QQII")
STATISTICS: Final = struct.Struct("<QQQQQIIII24x")
ALLOCATE: Final = struct.Struct("<QQQII")
KEPT_FOR_S: Final = 86_400
KEEP_CACHE: Final = 2
BLOCK: Final = 4096
SIZE_WITHOUT_END: Final = 1 << 40
LONGEST_NAME: Final = 255
MODE, UID, GID, SIZE, READ_TIME, WRITE_TIME, READ_NOW, WRITE_NOW = 1, 2, 4, 8, 16, 32, 128, 256
KEEP_SIZE, PUNCH, ZERO = 1, 2, 16
DURABLE: Final = os.O_DSYNC
NO_REPLACE: Final = 1

Answer = bytes | None
"""What the kernel gets; None: there is no reply, or somebody else gives it."""


class Server:
    def __init__(self, kernel: Kernel, volume: Volume) -> None:
        self.kernel = kernel
        self.volume = volume
        self.lock = threading.Lock()
        """Held while the volume is used; but not while the kernel is notified of something, which may wait for a
        request to be answered first."""
        self._listings: dict[int, list[tuple[bytes, Node]]] = {}
        self._last_listing = 0

    def serve(self) -> None:
        """Until nothing is mounted any more."""
        while (request := self.kernel.request()) is not None:
            handler = HANDLERS.get(request.operation)
            if request.operation in UNANSWERED:
                if handler is not None:
                    with self.lock:
                        handler(self, request)
                continue
            try:
                if handler is None:
                    raise OSError(errno.ENOSYS, "")
                with self.lock:
                    answer = handler(self, request)
            except OSError as error:
                self.kernel.reply(request, failed=error.errno or errno.EIO)
            except Exception:
                logging.exception("request %d of node %d", request.operation, request.node)
                self.kernel.reply(request, failed=errno.EIO)
            else:
                if answer is not None:
                    self.kernel.reply(request, answer)

    # Nodes ----------------------------------------------------------------------------------------------------

    def _node(self, request: Request) -> Node:
        return self._numbered(request.node)

    def _numbered(self, number: int) -> Node:
        node = self.volume.nodes.get(number)
        if node is None:
            raise OSError(errno.ESTALE, "")
        return node

    def _entry(self, node: Node) -> bytes:
        node.lookups += 1
        return ENTRY.pack(node.number, 0, KEPT_FOR_S, KEPT_FOR_S, 0, 0) + attributes(node)

    def lookup(self, request: Request) -> Answer:
        return self._entry(self.volume.lookup(self._node(request), _name(request.body)))

    def forget(self, request: Request) -> Answer:
        self.volume.forget(request.node, struct.unpack_from("<Q", request.body)[0])
        return None

    def forget_several(self, request: Request) -> Answer:
        count = struct.unpack_from("<I", request.body)[0]
        for number, times in struct.iter_unpack("<QQ", request.body[8 : 8 + 16 * count]):
            self.volume.forget(number, times)
        return None

    def get_attributes(self, request: Request) -> Answer:
        return _encode_attributes(self._node(request))

    def set_attributes(self, request: Request) -> Answer:
        node = self._node(request)
        fields = SET_ATTRIBUTES.unpack_from(request.body)
        valid, size, mode, uid, gid = fields[0], fields[3], fields[11], fields[13], fields[14]
        read_ns, write_ns = (fields[5] * 10**9 + fields[8], fields[6] * 10**9 + fields[9])
        if valid & SIZE:
            self.volume.truncate(node, size)
        now_ns = time.time_ns()
        if valid & MODE:
            node.mode = stat.S_IFMT(node.mode) | stat.S_IMODE(mode)
        if valid & UID:
            node.uid = uid
        if valid & GID:
            node.gid = gid
        if valid & (READ_TIME | READ_NOW):
            node.read_ns = now_ns if valid & READ_NOW else read_ns
        if valid & (WRITE_TIME | WRITE_NOW):
            node.modified_ns = now_ns if valid & WRITE_NOW else write_ns
        node.changed_ns = now_ns
        return _encode_attributes(node)

    def read_link(self, request: Request) -> Answer:
        return self._node(request).target

    # Names ----------------------------------------------------------------------------------------------------

    def _make(self, request: Request, name: bytes, *, mode: int, rdev: int = 0, target: bytes = b"") -> Node:
        if len(name) > LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, "")
        return self.volume.make(
            self._node(request), name, mode=mode, uid=request.uid, gid=request.gid, rdev=rdev, target=target
        )

    def make_node(self, request: Request) -> Answer:
        mode, rdev = struct.unpack_from("<II", request.body)
        return self._entry(self._make(request, _name(request.body[16:]), mode=mode, rdev=rdev))

    def make_directory(self, request: Request) -> Answer:
        mode = struct.unpack_from("<I", request.body)[0]
        return self._entry(self._make(request, _name(request.body[8:]), mode=stat.S_IFDIR | stat.S_IMODE(mode)))

    def make_link(self, request: Request) -> Answer:
        name, target, _ = bytes(request.body).split(b"\0", 2)
        return self._entry(self._make(request, name, mode=stat.S_IFLNK | 0o777, target=target))

    def create(self, request: Request) -> Answer:
        mode = struct.unpack_from("<II", request.body)[1]
        node = self._make(request, _name(request.body[16:]), mode=stat.S_IFREG | stat.S_IMODE(mode))
        return self._entry(node) + self._opened()

    def link(self, request: Request) -> Answer:
        node = self._numbered(struct.unpack_from("<Q", request.body)[0])
        self.volume.link(node, self._node(request), _name(request.body[8:]))
        return self._entry(node)

    def unlink(self, request: Request) -> Answer:
        self.volume.remove(self._node(request), _name(request.body), is_directory=False)
        return b""

    def remove_directory(self, request: Request) -> Answer:
        self.volume.remove(self._node(request), _name(request.body), is_directory=True)
        return b""

    def rename(self, request: Request) -> Answer:
        return self._rename(request, struct.unpack_from("<Q", request.body)[0], 0, request.body[8:])

    def rename_with_flags(self, request: Request) -> Answer:
        target, flags = struct.unpack_from("<QI", request.body)
        return self._rename(request, target, flags, request.body[16:])

    def _rename(self, request: Request, target: int, flags: int, names: memoryview) -> Answer:
        if flags & ~NO_REPLACE:
            raise OSError(errno.EINVAL, "")
        old, new, _ = bytes(names).split(b"\0", 2)
        self.volume.rename(self._node(request), old, self._numbered(target), new, may_replace=not flags & NO_REPLACE)
        return b""

    # Content --------------------------------------------------------------------------------------------------

    def _opened(self) -> bytes:
        """The handle says before how many losses of power: what was open then is of no use after it."""
        kept = 0 if self.volume.harms_reads else KEEP_CACHE
        return OPENED.pack(self.volume.generation, kept, 0)

    def open(self, request: Request) -> Answer:
        self._node(request)
        return self._opened()

    def _still_open(self, request: Request, handle: int) -> Node:
        if handle != self.volume.generation:
            raise OSError(errno.EIO, "")
        return self._node(request)

    def read(self, request: Request) -> Answer:
        handle, offset, size, *_ = TRANSFER.unpack_from(request.body)
        return self.volume.read(self._still_open(request, handle), offset, size)

    def write(self, request: Request) -> Answer:
        handle, offset, size, _, _, flags, _ = TRANSFER.unpack_from(request.body)
        node = self._still_open(request, handle)
        data = bytes(request.body[TRANSFER.size : TRANSFER.size + size])
        self.volume.write(node, offset, data, is_durable=bool(flags & DURABLE))
        return struct.pack("<II", size, 0)

    def allocate(self, request: Request) -> Answer:
        handle, offset, length, mode, _ = ALLOCATE.unpack_from(request.body)
        node = self._still_open(request, handle)
        if mode & ~(KEEP_SIZE | PUNCH | ZERO):
            raise OSError(errno.EOPNOTSUPP, "")
        if mode & (PUNCH | ZERO):
            self.volume.clear(node, offset, length)
        if not mode & KEEP_SIZE and offset + length > node.size:
            self.volume.truncate(node, offset + length)
        return b""

    def fsync(self, request: Request) -> Answer:
        node = self._still_open(request, struct.unpack_from("<Q", request.body)[0])
        return self._synced(request, lambda: self.volume.fsync(node))

    def fsync_directory(self, request: Request) -> Answer:
        node = self._node(request)
        return self._synced(request, lambda: self.volume.fsync_directory(node))

    def _synced(self, request: Request, sync: Callable[[], None]) -> Answer:
        if self.volume.wait_s <= 0.0:
            sync()
            return b""
        threading.Thread(target=self._sync_late, args=(request, sync, self.volume.generation), daemon=True).start()
        return None

    def _sync_late(self, request: Request, sync: Callable[[], None], generation: int) -> None:
        time.sleep(self.volume.wait_s)
        failed = 0
        with self.lock:
            try:
                if generation != self.volume.generation:
                    raise OSError(errno.EIO, "")
                sync()
            except OSError as error:
                failed = error.errno or errno.EIO
        self.kernel.reply(request, failed=failed)

    def done(self, request: Request) -> Answer:
        """There is nothing to be done."""
        return b""

    # Directories ----------------------------------------------------------------------------------------------

    def open_directory(self, request: Request) -> Answer:
        self._last_listing += 1
        self._listings[self._last_listing] = self.volume.listing(self._node(request))
        return OPENED.pack(self._last_listing, 0, 0)

    def read_directory(self, request: Request) -> Answer:
        handle, offset, size, *_ = TRANSFER.unpack_from(request.body)
        if offset == 0:  # also after rewinddir
            self._listings[handle] = self.volume.listing(self._node(request))
        answer = bytearray()
        for place, (name, node) in enumerate(self._listings.get(handle, ())[offset:], int(offset) + 1):
            entry = ENTRY_OF_DIRECTORY.pack(node.number, place, len(name), stat.S_IFMT(node.mode) >> 12) + name
            entry += bytes(-len(entry) % 8)
            if len(answer) + len(entry) > size:
                break
            answer += entry
        return bytes(answer)

    def release_directory(self, request: Request) -> Answer:
        self._listings.pop(struct.unpack_from("<Q", request.body)[0], None)
        return b""

    def statistics(self, request: Request) -> Answer:
        volume = self.volume
        size = volume.faults.capacity_bytes
        size = SIZE_WITHOUT_END if size is None else size
        free = max(0, size - volume.used_bytes) // BLOCK
        files = len(volume.nodes)
        return STATISTICS.pack(size // BLOCK, free, free, files + (1 << 20), 1 << 20, BLOCK, LONGEST_NAME, BLOCK, 0)

    # From outside ---------------------------------------------------------------------------------------------

    def forget_content(self) -> None:
        """The kernel asks for all content again. Without the lock."""
        with self.lock:
            nodes = [node.number for node in self.volume.nodes.values() if node.data is not None and node.lookups]
        for number in nodes:
            self.kernel.content_changed(number)

    def tell_of_changes(self, names: list[tuple[int, bytes]], nodes: list[int]) -> None:
        """The kernel forgets these names and what it keeps of these files. Without the lock."""
        for directory, name in names:
            self.kernel.name_changed(directory, name)
        for node in nodes:
            self.kernel.content_changed(node)


def _name(body: memoryview) -> bytes:
    return bytes(body).partition(b"\0")[0]


def _encode_attributes(node: Node) -> bytes:
    return SHOWN.pack(KEPT_FOR_S, 0, 0) + attributes(node)


def attributes(node: Node) -> bytes:
    times = (node.read_ns, node.modified_ns, node.changed_ns)
    return ATTRIBUTES.pack(
        node.number,
        node.size,
        -(-node.size // 512),
        *(one // 10**9 for one in times),
        *(one % 10**9 for one in times),
        node.mode,
        node.shown_links,
        node.uid,
        node.gid,
        node.rdev,
        BLOCK,
        0,
    )


Handler = Callable[[Server, Request], Answer]
HANDLERS: Mapping[int, Handler] = {
    1: Server.lookup,
    2: Server.forget,
    3: Server.get_attributes,
    4: Server.set_attributes,
    5: Server.read_link,
    6: Server.make_link,
    8: Server.make_node,
    9: Server.make_directory,
    10: Server.unlink,
    11: Server.remove_directory,
    12: Server.rename,
    13: Server.link,
    14: Server.open,
    15: Server.read,
    16: Server.write,
    17: Server.statistics,
    18: Server.done,
    20: Server.fsync,
    27: Server.open_directory,
    28: Server.read_directory,
    29: Server.release_directory,
    30: Server.fsync_directory,
    35: Server.create,
    38: Server.done,
    42: Server.forget_several,
    43: Server.allocate,
    45: Server.rename_with_flags,
}
"""The kernel's number of an operation -> what answers it. For others the kernel learns that there are none, and mostly
does not ask again."""
UNANSWERED: Final = frozenset((2, 36, 42))
"""Forgetting, and interruptions: nothing here takes long enough to be interrupted."""
