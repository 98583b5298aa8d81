"""The kernel's side of a file system in user space: a mount, and requests and replies over /dev/fuse.

This is the protocol of the kernel itself (include/uapi/linux/fuse.h, version 7.31), in which files have numbers. What a
library makes of it has paths, hides files that are removed while they are open under other names, and cannot tell the
kernel that content has changed underneath.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEVICE: Final = "/dev/fuse"
MAJOR, MINOR = 7, 31
LARGEST_WRITE: Final = 128 << 10
REQUEST_BYTES: Final = LARGEST_WRITE + 4096
MS_NOSUID, MS_NODEV = 2, 4
MNT_DETACH: Final = 2

HEADER: Final = struct.Struct("<IIQQIIIHH")
REPLY: Final = struct.Struct("<IiQ")
INIT: Final = struct.Struct("<IIII")
INIT_REPLY: Final = struct.Struct("<IIIIHHIIHHI28x")
BIG_WRITES, PARALLEL_DIRECTORIES, MAX_PAGES, NO_OPENDIR = 1 << 5, 1 << 18, 1 << 22, 1 << 24
WANTED_FLAGS: Final = 1 | BIG_WRITES | PARALLEL_DIRECTORIES | MAX_PAGES
INVALIDATE_INODE, INVALIDATE_ENTRY = 2, 3


@dataclass(frozen=True, slots=True)
class Request:
    operation: int
    unique: int
    node: int
    uid: int
    gid: int
    body: memoryview


class Kernel:
    """One mount. Requests are read by one thread; replies and notices may come from any."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray(REQUEST_BYTES)

    def request(self) -> Request | None:
        """The next one, whose body is there until this is called again; None when nothing is mounted any more."""
        while True:
            try:
                length = os.readv(self._descriptor, [self._buffer])
            except OSError as error:
                if error.errno == errno.ENODEV:
                    return None
                if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                    continue  # a request that was interrupted before it was read
                raise
            _, operation, unique, node, uid, gid, _, _, _ = HEADER.unpack_from(self._buffer)
            return Request(operation, unique, node, uid, gid, memoryview(self._buffer)[HEADER.size : length])

    def reply(self, request: Request, data: bytes = b"", *, failed: int = 0) -> None:
        """`failed`: the number of an error."""
        self._write(REPLY.pack(REPLY.size + len(data), -failed, request.unique) + data)

    def content_changed(self, node: int) -> None:
        """The kernel forgets what it keeps of a file: content, size and owner."""
        self._notify(INVALIDATE_INODE, struct.pack("<Qqq", node, 0, 0))

    def name_changed(self, directory: int, name: bytes) -> None:
        self._notify(INVALIDATE_ENTRY, struct.pack("<QII", directory, len(name), 0) + name + b"\0")

    def _notify(self, what: int, data: bytes) -> None:
        self._write(REPLY.pack(REPLY.size + len(data), what, 0) + data)

    def _write(self, data: bytes) -> None:
        try:
            os.write(self._descriptor, data)
        except OSError as error:
            # The request was given up, the kernel knows nothing of the file, or nothing is mounted any more.
            if error.errno not in (errno.ENOENT, errno.ENODEV, errno.ENOTDIR):
                raise

    def greet(self) -> None:
        """Answer the first request of a mount. Raises OSError for a kernel that speaks another language."""
        request = self.request()
        if request is None:
            raise OSError(errno.ENODEV, "the kernel ended the mount at once")
        major, _, readahead, flags = INIT.unpack_from(request.body)
        if major != MAJOR:
            raise OSError(errno.EPROTO, f"the kernel speaks version {major} of FUSE, not {MAJOR}")
        pages = LARGEST_WRITE // 4096
        wanted = flags & WANTED_FLAGS
        self.reply(request, INIT_REPLY.pack(MAJOR, MINOR, readahead, wanted, 32, 24, LARGEST_WRITE, 1, pages, 0, 0))


def mount(place: Path, name: str) -> Kernel:
    """Mount a file system that everybody may use. Raises OSError, also where this process may not mount."""
    descriptor = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={descriptor},rootmode=40755,user_id=0,group_id=0,default_permissions,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    texts = (name.encode(), os.fsencode(place), b"fuse.stormproof")
    if libc.mount(*texts, MS_NOSUID | MS_NODEV, options.encode()):
        os.close(descriptor)
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    kernel = Kernel(descriptor)
    kernel.greet()
    return kernel


def unmount(place: Path) -> None:
    """At once for later look-ups; processes that use it still do. Nothing where nothing is mounted."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(place), MNT_DETACH) and ctypes.get_errno() not in (errno.EINVAL, errno.ENOENT):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
