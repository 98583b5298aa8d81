"""The log of a member of DLedger, ours or one of the public library, as its data files have it that came home.

It shares no code with either: what is read is the format that both promise to write.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from harness.record.run_directory import NODE_LOGS

HEAD = struct.Struct(">iiqqqiIIi")
ENTRY_MAGIC, BLANK_MAGIC = 1, -1


class Stored(NamedTuple):
    index: int
    term: int
    position: int
    channel: int
    body: bytes


class Checksums(NamedTuple):
    chain: int
    body: int


def stored(node: Path) -> dict[Stored, Checksums]:
    """In order, from the node's folder of a run. Behind the end of a log there may be what was cut."""
    found: dict[Stored, Checksums] = {}
    last: Stored | None = None
    for path in _data_files(node / NODE_LOGS):
        data, at = path.read_bytes(), 0
        while len(data) - at >= HEAD.size:
            magic, size, index, term, position, channel, chain, crc, body_size = HEAD.unpack_from(data, at)
            if magic != ENTRY_MAGIC:
                break
            entry = Stored(index, term, position, channel, data[at + HEAD.size : at + size])
            if last is not None and (entry.index != last.index + 1 or entry.term < last.term):
                return found
            assert (size, position) == (HEAD.size + body_size, int(path.name) + at), (path, entry)
            last, found[entry] = entry, Checksums(chain, crc)
            at += size
        else:
            magic = BLANK_MAGIC
        if magic != BLANK_MAGIC:
            return found
    return found


def _data_files(logs: Path) -> list[Path]:
    """Of the log as it began last."""
    (*_, newest) = sorted(logs.glob("*/data"), key=lambda path: path.parent.name)
    return sorted(newest.iterdir())
