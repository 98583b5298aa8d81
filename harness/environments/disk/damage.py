"""Damage to what lies on a disk: bits that rot, files that lose their ends. The same for simulated disks and others."""

from __future__ import annotations

import bisect
import itertools
import random
import re
from collections.abc import Sequence
from typing import Final, Protocol

from harness.environments.disk.durability import Inode
from harness.environments.impairment import BitRot, Corruption

TORN_BYTES: Final = 200
"""A file that loses little loses at most so much: the last records."""
MOST_NAMED: Final = 12
"""So many of the bits that were flipped are named."""


class Damageable(Protocol):
    def files(self) -> Sequence[tuple[str, Inode]]:
        """Those that have content, by path."""

    def rot(self, path: str, offset: int, mask: int = 1) -> bool:
        """Flip bits of one byte, on the platter and in what is seen."""

    def cut_short(self, path: str, size: int) -> None:
        """The file ends after so many bytes, on the platter as well."""


def rot(disk: Damageable, how: BitRot | Corruption, draw: random.Random) -> str:
    """Flip bits once; returns which, in words, or nothing where there is nothing to flip."""
    if isinstance(how, Corruption):
        return corrupt_files(disk, how.pattern, how.bytes_per_bit, draw)
    return rot_bits(disk, how.bits, draw)


def rot_bits(disk: Damageable, bits: int, draw: random.Random) -> str:
    """Flip so many bits, each anywhere in any file that has content; returns which, in words."""
    files = disk.files()
    rotten = []
    for _ in range(bits if files else 0):
        path, inode = draw.choice(files)
        offset, bit = draw.randrange(len(inode.content)), draw.randrange(8)
        disk.rot(path, offset, 1 << bit)
        rotten.append(f"bit {bit} of byte {offset} of {path}")
    return ", ".join(rotten)


def corrupt_files(disk: Damageable, pattern: str, bytes_per_bit: int, draw: random.Random) -> str:
    """Flip one bit in so many bytes of the files that the pattern names, at least one; returns which, in words."""
    files = [(path, inode) for path, inode in disk.files() if matches(pattern, path)]
    ends = list(itertools.accumulate(len(inode.content) for _, inode in files))
    if not ends:
        return ""
    bits = max(1, round(ends[-1] / bytes_per_bit))
    rotten: list[str] = []
    for _ in range(bits):
        place, bit = draw.randrange(ends[-1]), draw.randrange(8)
        number = bisect.bisect_right(ends, place)
        path, inode = files[number]
        offset = place - (ends[number] - len(inode.content))
        disk.rot(path, offset, 1 << bit)
        if len(rotten) < MOST_NAMED:
            rotten.append(f"bit {bit} of byte {offset} of {path}")
    more = f", and {bits - MOST_NAMED} more" if bits > MOST_NAMED else ""
    return f"{bits} bits in {ends[-1]} bytes of {len(files)} files: {', '.join(rotten)}{more}"


def cut_files_short(disk: Damageable, count: int, draw: random.Random) -> str:
    """Cut the ends of so many files off, of each a little or any part; returns which, in words."""
    files = disk.files()
    words = []
    for path, inode in draw.sample(files, min(count, len(files))):
        length = len(inode.content)
        lost = draw.randint(1, min(length, TORN_BYTES) if draw.random() < 0.5 else length)
        disk.cut_short(path, length - lost)
        words.append(f"{path} lost {lost} of {length} bytes")
    return ", ".join(words)


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern names a path: `*` and `?` stay within one folder, `**/` is any number of folders."""
    expression = ""
    for part in re.findall(r"\*\*/|\*\*|\*|\?|[^*?]+", pattern.removeprefix("/")):
        expression += {"**/": "(.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part, re.escape(part))
    return re.fullmatch(expression, path, re.DOTALL) is not None
