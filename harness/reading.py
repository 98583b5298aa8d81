"""Reading what users and other programs name, in bounds that hold before anything is in memory.

A file that the project keeps (`scenario.json`, `verdict.json`) must be a regular one. What a user hands in may be a
pipe as well, such as `<(…)` or standard input, which is `-`; devices, sockets and directories are refused, for
`/dev/zero` never ends. All refusals are ValueErrors with the reason as their words; the caller names the file.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

STANDARD_INPUT = Path("-")
LONGEST_RECORD_BYTES = 1 << 25
"""How long one JSON file of a run may be."""
LONGEST_LINE_BYTES = 1 << 20
"""How long a line of JSON may be, such as one of nemesis.jsonl; a partition of a hundred nodes takes a tenth of it."""
LONGEST_LINES_BYTES = 1 << 27
"""How long a file of JSON lines may be that is held in memory as a whole."""
MOST_SPOOLED_BYTES = 1 << 36
"""How much is written from a pipe to a scratch file at most."""
LOOKED_EVERY_S = 0.2
"""How often it is looked at what has come of a stream."""
_BLOCK_BYTES = 1 << 20


class TooLong(ValueError):
    """More than may be read."""


def is_stream(path: Path) -> bool:
    """Whether it can be read only once: standard input, a pipe. Raises OSError if it is not there."""
    return path == STANDARD_INPUT or stat.S_ISFIFO(path.stat().st_mode)


def read_given(path: Path, most_bytes: int) -> bytes:
    """A file, a pipe, or standard input. Raises OSError, ValueError, TooLong."""
    with _open_source(path) as file:
        return _at_most(file, most_bytes)


def read_kept(path: Path, most_bytes: int) -> bytes:
    """A regular file. Raises OSError, ValueError, TooLong."""
    _refuse(path.stat().st_mode, may_be=(stat.S_IFREG,))
    with path.open("rb") as file:
        return _at_most(file, most_bytes)


def json_kept(path: Path, most_bytes: int = LONGEST_RECORD_BYTES) -> Any:
    """What a JSON file holds. Raises OSError, ValueError, TooLong."""
    try:
        return json.loads(read_kept(path, most_bytes).decode())
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def lines_kept(path: Path, most_bytes: int = LONGEST_LINES_BYTES) -> Iterator[bytes]:
    """The lines of a regular file, a bounded number of bytes at a time. Raises OSError, ValueError, TooLong."""
    _refuse(path.stat().st_mode, may_be=(stat.S_IFREG,))
    left = most_bytes
    with path.open("rb") as file:
        for number in range(1, most_bytes + 1):
            line = file.readline(LONGEST_LINE_BYTES + 1)
            left -= len(line)
            if len(line) > LONGEST_LINE_BYTES:
                raise TooLong(f"line {number} is longer than {_size(LONGEST_LINE_BYTES)}")
            if left < 0:
                raise TooLong(f"it is longer than {_size(most_bytes)}")
            if not line:
                return
            yield line


def spool(
    path: Path, into: Path, most_bytes: int = MOST_SPOOLED_BYTES, *, meanwhile: Callable[[int], None] | None = None
) -> None:
    """Copy a stream to a file, so that it can be read again. Raises OSError, ValueError, TooLong.

    While it is not at its end `meanwhile`, if given, is called a few times a second with the number of bytes that have
    come. However long that takes, the writer of the stream does not wait for it: a thread copies.
    """
    with _open_source(path) as stream, into.open("wb") as file:
        copying = _Copying(stream=stream, file=file, into=into, most=most_bytes)
        if meanwhile is None:
            copying.copy()
        else:
            copying.copy_beside(meanwhile)


@dataclass
class _Copying:
    """A stream on its way into a file."""

    stream: BinaryIO
    file: BinaryIO
    into: Path
    most: int
    came: int = 0
    failure: Exception | None = None
    ended: threading.Event = field(default_factory=threading.Event)
    """The copying has ended, or is to end."""

    def copy(self) -> None:
        """To its end. Raises OSError, TooLong."""
        while block := self.stream.read(_BLOCK_BYTES):
            self._take(block)

    def copy_beside(self, meanwhile: Callable[[int], None]) -> None:
        """The same in a thread, while this one calls `meanwhile`. Raises OSError, TooLong, and what that raises."""
        thread = threading.Thread(target=self._copy_until_ended, daemon=True)
        thread.start()
        try:
            while not self.ended.wait(LOOKED_EVERY_S):
                meanwhile(self.came)
        finally:
            self.ended.set()
            thread.join()
        if self.failure is not None:
            raise self.failure

    def _copy_until_ended(self) -> None:
        # Signals are for the thread that works: one that came here would not wake it from what it waits for.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        descriptor, coming = self.stream.fileno(), select.poll()
        coming.register(descriptor, select.POLLIN)
        try:
            while not self.ended.is_set():
                # A read that waits for ever would outlive a reader that has gone away.
                if not coming.poll(LOOKED_EVERY_S * 1000):
                    continue
                block = os.read(descriptor, _BLOCK_BYTES)  # what is there, and not only a whole block
                if not block:
                    return
                self._take(block)
                self.file.flush()
                self.came += len(block)
        except (OSError, ValueError) as error:
            self.failure = error
        finally:
            self.ended.set()

    def _take(self, block: bytes) -> None:
        if self.file.tell() + len(block) > self.most:
            raise TooLong(f"it is longer than {_size(self.most)}; write it to a file")
        self.file.write(block)
        if shutil.disk_usage(self.into.parent).free < _BLOCK_BYTES:
            raise OSError(28, os.strerror(28), str(self.into))


def refuse_irregular(path: Path) -> None:
    """Raises ValueError for what never ends or cannot be read: a device, a socket. Raises OSError if nothing is there.

    A directory, a file, a pipe and standard input pass.
    """
    if path != STANDARD_INPUT:
        _refuse(path.stat().st_mode, may_be=(stat.S_IFREG, stat.S_IFIFO, stat.S_IFDIR))


@contextmanager
def _open_source(path: Path) -> Iterator[BinaryIO]:
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise ValueError("standard input is closed")
        stream = sys.stdin.buffer
        _refuse(os.fstat(stream.fileno()).st_mode, may_be=(stat.S_IFREG, stat.S_IFIFO, stat.S_IFSOCK))
        yield stream
        return
    _refuse(path.stat().st_mode, may_be=(stat.S_IFREG, stat.S_IFIFO))
    with path.open("rb") as file:
        yield file


def _at_most(file: BinaryIO, most_bytes: int) -> bytes:
    data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise TooLong(f"it is longer than {_size(most_bytes)}")
    return data


_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a pipe",
}


def _refuse(mode: int, *, may_be: tuple[int, ...]) -> None:
    kind = stat.S_IFMT(mode)
    if kind not in may_be:
        pipe = " or a pipe" if stat.S_IFIFO in may_be else ""
        raise ValueError(f"it is {_KINDS.get(kind, 'no file')}, a file{pipe} is expected")


def _size(size: int) -> str:
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} bytes"
