"""The log of a member of DLedger, ours or one of the public library, as its data files have it that came home.

It shares no code with either: what is read is the format that both promise to write.
"""

from __future__ import annotations

import math
import re
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
    """In order, from the node's folder of a run."""
    found: dict[Stored, Checksums] = {}
    last: Stored | None = None
    (*_, newest) = sorted((node / NODE_LOGS).glob("*/data"), key=lambda path: path.parent.name)
    end = _end(newest.parent / "checkpoint")
    for path in sorted(newest.iterdir()):
        data, at = path.read_bytes(), 0
        while len(data) - at >= HEAD.size:
            magic, size, index, term, position, channel, chain, crc, body_size = HEAD.unpack_from(data, at)
            if magic != ENTRY_MAGIC:
                break
            entry = Stored(index, term, position, channel, data[at + HEAD.size : at + size])
            if entry.index > end or (last is not None and (entry.index != last.index + 1 or entry.term < last.term)):
                return found
            assert (size, position) == (HEAD.size + body_size, int(path.name) + at), (path, entry)
            last, found[entry] = entry, Checksums(chain, crc)
            at += size
        else:
            magic = BLANK_MAGIC
        if magic != BLANK_MAGIC:
            return found
    return found


def _end(checkpoint: Path) -> float:
    """The last index. A member of the library leaves behind it what was cut, and says here where its log ends."""
    found = re.search(r"endIndex=(-?\d+)", checkpoint.read_text()) if checkpoint.exists() else None
    return math.inf if found is None else int(found[1])
