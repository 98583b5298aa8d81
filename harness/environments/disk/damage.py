"""Damage to what lies on a simulated disk: bits that rot, files that lose their ends."""

from __future__ import annotations

import random
from typing import Final

from harness.environments.simulated.disk_store import DiskStore

TORN_BYTES: Final = 200
"""About so much a file loses that loses little: the last records."""


def rot_bits(disk: DiskStore, bits: int, draw: random.Random) -> str:
    """Flip so many bits, each anywhere in any file that has content; returns which, in words."""
    files = disk.files()
    rotten = []
    for _ in range(bits if files else 0):
        path, inode = draw.choice(files)
        offset, bit = draw.randrange(len(inode.content)), draw.randrange(8)
        disk.rot(path, offset, 1 << bit)
        rotten.append(f"bit {bit} of byte {offset} of {path}")
    return ", ".join(rotten)


def cut_files_short(disk: DiskStore, count: int, draw: random.Random) -> str:
    """Cut the ends of so many files off, of each a little or any part; returns which, in words."""
    files = disk.files()
    words = []
    for path, inode in draw.sample(files, min(count, len(files))):
        length = len(inode.content)
        lost = draw.randint(1, min(length, TORN_BYTES) if draw.random() < 0.5 else length)
        disk.cut_short(path, length - lost)
        words.append(f"{path} lost {lost} of {length} bytes")
    return ", ".join(words)
