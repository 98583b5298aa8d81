"""The one way in which files that a user or a run asked for are written.

- A regular file is the old one or the new one, whole, whatever dies in between: the text goes into a file beside it, to
  the disk, and then takes its place, with the mode and owner of the one that was there. After a failure or an interrupt
  nothing is left of it.
- A symbolic link stays: what it points to is written, and made if it is not there.
- A device, a named pipe, or a descriptor of this process (/dev/stdout, /dev/fd/3) is written in place, never replaced;
  `-` is standard output.
- A directory and a socket are refused.

All text is UTF-8; half of a surrogate pair, which UTF-8 lacks, is written as `\\udcff`, which JSON reads back.
"""

from __future__ import annotations

import codecs
import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TextIO, cast

from harness.lifetime.resources import holding

STANDARD_OUTPUT = Path("-")

MOST_LINKS = 40
"""The most symbolic links that are followed, as in the kernel."""

_AS_TEXT: Any = {"encoding": "utf-8", "errors": "backslashreplace", "newline": "\n"}


def write(path: Path, pieces: Iterable[str]) -> None:
    """Write the pieces one behind the other. Raises OSError."""
    with writing(path) as file:
        for piece in pieces:
            file.write(piece)


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """A file to write into. What is replaced stays what it was if the context is left with an exception.

    Raises OSError. Opening a named pipe waits for a reader.
    """
    descriptor = _own_descriptor(path)
    if path == STANDARD_OUTPUT:
        sys.stdout.flush()
        yield cast(TextIO, codecs.getwriter("utf-8")(sys.stdout.buffer, "backslashreplace"))
        sys.stdout.flush()
    elif descriptor is not None:
        sys.stdout.flush()
        with os.fdopen(os.dup(descriptor), "w", **_AS_TEXT) as file:
            yield file
    else:
        there = _status(path)
        if there is None or stat.S_ISREG(there.st_mode):
            yield from _replacing(Path(os.path.realpath(path)), there)
        else:
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_NOCTTY), "w", **_AS_TEXT) as file:
                yield file


def require_writable(path: Path) -> None:
    """Raises OSError if it is known before the work that `path` cannot be written. Changes nothing."""
    descriptor = _own_descriptor(path)
    if path == STANDARD_OUTPUT:
        return
    if descriptor is not None:
        os.fstat(descriptor)
        return
    there = _status(path)
    if there is None or stat.S_ISREG(there.st_mode):
        with _unfinished(Path(os.path.realpath(path))):
            pass


def _status(path: Path) -> os.stat_result | None:
    """None where nothing is there yet. Raises OSError for what cannot be written."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(there.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a directory", str(path))
    if stat.S_ISSOCK(there.st_mode):
        raise OSError(errno.ENXIO, "it is a socket", str(path))
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return there


def _own_descriptor(path: Path) -> int | None:
    """The descriptor of this process that `path` stands for: opened anew, it would be written from its beginning."""
    named = path.absolute()
    for _ in range(MOST_LINKS):
        folder = os.path.realpath(named.parent)
        if folder in (os.path.realpath("/proc/self/fd"), "/dev/fd") and named.name.isdecimal():
            return int(named.name)
        if not named.is_symlink():
            return None
        named = Path(folder, os.readlink(named))
    return None


def _replacing(path: Path, there: os.stat_result | None) -> Iterator[TextIO]:
    with _unfinished(path) as (file, unfinished):
        if there is not None:
            with suppress(PermissionError):
                os.fchown(file.fileno(), there.st_uid, there.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(there.st_mode))
        yield file
        file.flush()
        os.fsync(file.fileno())
        _name(file, unfinished)
        unfinished.replace(path)
    _sync(path.parent)


@contextmanager
def _unfinished(path: Path) -> Iterator[tuple[TextIO, Path]]:
    """A new file in the folder of `path`, open for writing, and gone afterwards, unless it has another name by then.

    Its own name is short: that of `path` may be as long as names can be.
    """
    unfinished = path.with_name(f".{secrets.token_hex(8)}.unfinished")
    with holding(partial(unfinished.unlink, missing_ok=True)), os.fdopen(_opened(unfinished), "w", **_AS_TEXT) as file:
        yield file, unfinished


def _opened(unfinished: Path) -> int:
    """Without a name as long as it is written, where the file system can do that: a killed process leaves nothing."""
    if os.path.exists("/proc/self/fd"):
        with suppress(OSError):
            return os.open(unfinished.parent, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    return os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def _name(file: TextIO, unfinished: Path) -> None:
    """Give it its name, if it has none."""
    if os.fstat(file.fileno()).st_nlink == 0:
        # With a descriptor beside it, which an absolute path makes no use of, the link to the file is followed.
        os.link(f"/proc/self/fd/{file.fileno()}", unfinished, src_dir_fd=file.fileno())


def _sync(directory: Path) -> None:
    """Make the new name durable, where the directory may be read."""
    with suppress(PermissionError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
