"""The bytes of a foreign history, a block at a time, and where in it something stands.

Text is UTF-8, with or without a byte order mark, plain or packed by gzip or zstd. Of a packed one that is cut off
everything is read that its bytes still say. Places are bytes of the text, counted from 0; lines and columns are counted
when somebody asks, by reading the text once more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

SNIFFED_BYTES = 1 << 16
"""So many bytes show what a text is."""
BLOCK_BYTES = 1 << 22
LONGEST_BYTES = 1 << 26
"""No operation is longer."""

_PACKED = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"))
_PACKED_OTHERWISE = (
    (b"BZh", "bzip2", "bzip2 -dc"),
    (b"\xfd7zXZ", "xz", "xz -dc"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4 -dc"),
    (b"PK\x03\x04", "zip", "unzip -p"),
)
"""What is told apart so that the refusal can say what unpacks it."""
_MAGIC_BYTES = 5
_PIECE_BYTES = 1 << 18
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


class Unfinished(BrokenText):
    """The text ends before what begins there does."""

    def from_byte(self, begin: int) -> Unfinished:
        return Unfinished(self.at + begin, self.reason, fault=self.fault + begin)


class CutOff(Exception):
    """What is being read goes on behind the end of the block."""


@dataclass(frozen=True, kw_only=True)
class TextPosition:
    """A place in a text; lines and columns as editors count them, from 1."""

    byte: int
    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class Text:
    """The bytes of a text, unpacked where they are packed."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, BrokenText for what is packed in a way that is not read."""
        self._path = path
        self._read = 0
        self._codec = _codec_of(path)
        self._file = self._opened()
        self.is_cut_off = False
        """Whether the packed file ended before what was packed did; known once that was reached."""

    def _opened(self) -> pa.NativeFile:
        # Arrow itself opens no path that is not UTF-8.
        file = pa.PythonFile(self._path.open("rb", buffering=0), mode="r")
        return file if self._codec is None else pa.CompressedInputStream(file, self._codec)

    def read(self, size: int) -> bytes:
        """Fewer bytes than that only where the text ends. Raises OSError, BrokenText."""
        if self._codec is None:
            return bytes(self._file.read(size))
        pieces = []
        while size > 0 and not self.is_cut_off:
            piece = self._piece(min(size, _PIECE_BYTES))
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _piece(self, size: int) -> bytes:
        try:
            piece = bytes(self._file.read(size))
        except OSError as error:
            if "Truncated" not in str(error):
                raise BrokenText(self._read, f"the {self._codec} file is broken: {error}") from None
            self.is_cut_off = True
            piece = self._rest()
        self._read += len(piece)
        return piece

    def _rest(self) -> bytes:
        """What stands between the last whole piece and where the file is cut off.

        A read that meets the end fails as a whole, so this goes there anew and byte by byte.
        """
        self._file.close()
        self._file = self._opened()
        left = self._read
        while left:
            left -= len(self._file.read(min(left, _PIECE_BYTES)))
        rest = bytearray()
        try:
            while byte := self._file.read(1):
                rest += byte
        except OSError:
            pass  # This is where it is cut off.
        return bytes(rest)

    def close(self) -> None:
        self._file.close()


def _codec_of(path: Path) -> str | None:
    """Raises OSError, BrokenText."""
    with path.open("rb") as file:
        magic = file.read(_MAGIC_BYTES)
    for beginning, name, command in _PACKED_OTHERWISE:
        if magic.startswith(beginning):
            raise BrokenText(0, f"it is packed with {name}; unpack it first: {command} FILE | stormproof check -")
    return next((codec for beginning, codec in _PACKED if magic.startswith(beginning)), None)


def is_short(path: Path) -> bool:
    """Whether one block holds the text, which is not packed. Raises OSError."""
    with path.open("rb") as file:
        magic = file.read(_MAGIC_BYTES)
        is_packed = any(magic.startswith(beginning) for beginning, _ in _PACKED)
        return not is_packed and file.seek(0, os.SEEK_END) <= BLOCK_BYTES


@contextmanager
def opened(path: Path) -> Iterator[Text]:
    """Raises OSError, BrokenText."""
    text = Text(path)
    try:
        yield text
    finally:
        text.close()


def length_of_mark(head: bytes) -> int:
    """How many of the first bytes of a text are its byte order mark. Raises BrokenText."""
    if head[:2] in _UTF_16:
        raise BrokenText(0, "the text is UTF-16; write it as UTF-8")
    return len(_MARK) if head.startswith(_MARK) else 0


def place(path: Path, byte: int) -> TextPosition:
    """Reads the text up to there. Raises OSError."""
    line, begin, at = 1, 0, 0
    tail = b""
    with opened(path) as file:
        while at < byte:
            block = file.read(min(BLOCK_BYTES, byte - at))
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
    return TextPosition(byte=byte, line=line, column=characters + 1)
