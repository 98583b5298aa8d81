"""The logs of Cobra's clients: a directory with a file `*.log` for each session; big endian, numbers of 8 bytes.

    S transaction                        it begins                C transaction                it committed
    W write key value                    `write` is unique        R transaction write key value
    A transaction                        it was aborted

Keys and values are hashes; what names a version is its write. The writes 0xbebeebee and 0xdeadbeef stand for what was
there before, and for nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from harness.jepsen import source
from harness.jepsen.source import BrokenText
from harness.notations.sessions import Access, Sessions, SessionTransaction

_NUMBERS = {b"S": 1, b"C": 1, b"A": 1, b"W": 3, b"R": 4}
_INITIAL = (0xBEBEEBEE, 0xDEADBEEF)
_FIRST_BYTES = 10


def looks_so(head: bytes) -> bool:
    """Whether a transaction begins, and an access or its end follows."""
    return head[:1] == b"S" and head[9:10] in (b"W", b"R", b"C", b"A") and b"\0" in head[1:9]


def is_directory(path: Path) -> bool:
    """Whether there are logs with something in them, and all of these look so. Raises OSError."""
    written = [log for log in _logs(path) if log.stat().st_size]
    return bool(written) and all(looks_so(_head(log)) for log in written)


def _logs(path: Path) -> list[Path]:
    return sorted(one for one in path.glob("*.log") if one.is_file())


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_FIRST_BYTES)


def read_directory(path: Path) -> Sessions:
    """Raises OSError, BrokenText."""
    of: list[Sequence[SessionTransaction]] = []
    for log in _logs(path):
        with source.opened(log) as text:
            try:
                of += parse(text.read(log.stat().st_size)).of
            except BrokenText as broken:
                raise BrokenText(broken.at, f"{log.name}: {broken.reason}") from None
    return Sessions(of)


def parse(text: bytes) -> Sessions:
    """One session. Raises BrokenText."""
    session: list[SessionTransaction] = []
    open_: tuple[int, SessionTransaction] | None = None
    at = 0
    while at < len(text):
        kind = text[at : at + 1]
        count = _NUMBERS.get(kind)
        if count is None or len(text) < at + 1 + 8 * count:
            reason = "it ends within an entry" if count else f"no entry begins with {kind!r}"
            raise BrokenText(at, f"{reason}; logs with times are not read")
        numbers = struct.unpack_from(f">{count}q", text, at + 1)
        if (kind == b"S") is (open_ is not None):
            raise BrokenText(at, f"{kind.decode()} where a transaction {'is open' if open_ else 'has not begun'}")
        if kind == b"S":
            open_ = numbers[0], SessionTransaction()
        elif open_ is not None and kind in (b"C", b"A"):
            if numbers[0] != open_[0]:
                raise BrokenText(at, f"transaction {numbers[0]} ends where {open_[0]} is open")
            open_[1].committed = kind == b"C"
            session.append(open_[1])
            open_ = None
        elif open_ is not None:
            write, key = (numbers[0], numbers[1]) if kind == b"W" else (numbers[1], numbers[2])
            value = None if kind == b"R" and write in _INITIAL else write
            open_[1].accesses.append(Access(writes=kind == b"W", key=key, value=value))
        at += 1 + 8 * count
    return Sessions([session])
