"""The bytes of a foreign history, a block at a time, and where in it something stands.

Text is UTF-8, with or without a byte order mark, plain or compressed by gzip. Places are bytes of the text, counted
from 0; lines and columns are counted when somebody asks, by reading the text once more.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

SNIFFED_BYTES = 1 << 16
"""From so many of them one sees what a text is."""
BLOCK_BYTES = 1 << 22
LONGEST_BYTES = 1 << 26
"""No operation is longer."""

_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")

Row = dict[str, Any]
"""One operation as it was recorded: `process`, `type`, `f`, `value`, and what else there may be."""


class BrokenText(Exception):
    """From here on the text cannot be read."""

    def __init__(self, at: int, reason: str, *, fault: int | None = None) -> None:
        super().__init__(reason)
        self.at = at
        """Where what is broken begins: an operation, if it is one."""
        self.fault = at if fault is None else fault
        """Where one sees it."""
        self.reason = reason

    def from_byte(self, begin: int) -> BrokenText:
        """The same, of a text that begins there."""
        return BrokenText(self.at + begin, self.reason, fault=self.fault + begin)


class CutOff(Exception):
    """What is being read goes on behind the end of the block."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place in a text; lines and columns as editors count them, from 1."""

    byte: int
    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


def is_short(path: Path) -> bool:
    """Whether one block holds the text, which is not packed. Raises OSError."""
    with path.open("rb") as file:
        return file.read(len(_GZIP)) != _GZIP and file.seek(0, os.SEEK_END) <= BLOCK_BYTES


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The text, decompressed. Raises OSError."""
    with path.open("rb") as file:
        is_packed = file.read(len(_GZIP)) == _GZIP
        file.seek(0)
        if not is_packed:
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield cast(BinaryIO, unpacked)


def after_mark(file: BinaryIO) -> int:
    """Go to where the text begins, which is behind a byte order mark, and say where that is. Raises BrokenText."""
    head = read(file, len(_MARK), 0)
    if head[:2] in _UTF_16:
        raise BrokenText(0, "the text is UTF-16; write it as UTF-8")
    begin = len(_MARK) if head == _MARK else 0
    file.seek(begin)
    return begin


def read(file: BinaryIO, size: int, at: int) -> bytes:
    """At most so many bytes; `at` is where they stand. Raises OSError, BrokenText."""
    try:
        return file.read(size)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BrokenText(at, f"the gzip file is broken or cut off: {error}") from None


def place(path: Path, byte: int) -> Place:
    """Reads the text up to there. Raises OSError."""
    line, begin, at = 1, 0, 0
    tail = b""
    with opened(path) as file:
        while at < byte:
            block = read(file, min(BLOCK_BYTES, byte - at), at)
            if not block:
                break
            newlines = block.count(b"\n")
            if newlines:
                line += newlines
                begin = at + block.rindex(b"\n") + 1
                tail = block[begin - at :]
            elif len(tail) < LONGEST_BYTES:
                tail += block
            at += len(block)
    characters = len(tail.decode(errors="replace").removeprefix("\ufeff"))
    return Place(byte=byte, line=line, column=characters + 1)
