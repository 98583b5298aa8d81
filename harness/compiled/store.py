"""Where compiled kernels are kept: one directory for each user, the same for all checkouts and Spark's workers.

STORMPROOF_KERNELS names another one. Entries are whole or absent: they come by a rename and carry a checksum, so that
any number of processes may write at once and one may be killed. What nobody used for a month goes.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

CHOSEN = "STORMPROOF_KERNELS"
SUFFIX = ".kernel"
SHIPPED = "shipped"
"""A directory beside this file, in a zip that travels to a cluster: what was compiled before it set out."""

UNFINISHED = ".unfinished"

UNUSED_S = 30 * 24 * 3600.0
ABANDONED_S = 3600.0
"""Unfinished entries as old as that are of processes that were killed."""
TOUCHED_S = 24 * 3600.0
NOWHERE = Path(os.devnull, "kernels")
MOST_BYTES = 512 * 2**20
CHECKSUM_BYTES = hashlib.sha256().digest_size


@cache
def directory() -> Path:
    """Where this user can write; NOWHERE if there is no such place, and each process compiles for itself."""
    if os.environ.get(CHOSEN):
        chosen = Path(os.environ[CHOSEN]).expanduser()
        with suppress(OSError):
            chosen.mkdir(parents=True, exist_ok=True)
        return chosen
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for place in (
        Path(home, "stormproof", "kernels"),
        Path(tempfile.gettempdir(), f"kernels-stormproof-{os.getuid()}"),
    ):
        with suppress(OSError):
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_ours(place):
                return place
    return NOWHERE


def read(name: str) -> bytes | None:
    """What was kept under this name, here or where this package came from."""
    path = directory() / f"{name}{SUFFIX}"
    try:
        content = path.read_bytes()
        if time.time() - path.stat().st_mtime > TOUCHED_S:
            os.utime(path)
    except OSError:
        content = _shipped(name)
    payload = content[CHECKSUM_BYTES:]
    return payload if payload and hashlib.sha256(payload).digest() == content[:CHECKSUM_BYTES] else None


def write(name: str, payload: bytes) -> None:
    """Keep it; where that is impossible, the next process compiles again."""
    with suppress(OSError):
        descriptor, unfinished = tempfile.mkstemp(dir=directory(), prefix=f"{name}.", suffix=UNFINISHED)
        try:
            with open(descriptor, "wb") as file:
                file.write(hashlib.sha256(payload).digest() + payload)
            os.replace(unfinished, directory() / f"{name}{SUFFIX}")
        except BaseException:
            os.unlink(unfinished)
            raise
        _prune_once()


def kept() -> list[Path]:
    """The entries that are there."""
    return sorted(directory().glob(f"*{SUFFIX}"))


def most_used(most_bytes: int) -> list[Path]:
    """The entries used last, as many as take so many bytes."""
    total = 0
    chosen = []
    for _, size, path in sorted((-path.stat().st_mtime, path.stat().st_size, path) for path in kept()):
        total += size
        if total > most_bytes:
            break
        chosen.append(path)
    return chosen


def prune(now_s: float) -> None:
    """Remove what was not used for long, and the least used where there is too much."""
    entries = []
    for path in list(directory().iterdir()):
        with suppress(OSError):
            status = path.stat()
            unused_s = now_s - status.st_mtime
            if unused_s > (ABANDONED_S if path.suffix == UNFINISHED else UNUSED_S):
                path.unlink()
            elif path.suffix == SUFFIX:
                entries.append((unused_s, status.st_size, path))
    total = 0
    for _, size, path in sorted(entries):
        total += size
        if total > MOST_BYTES:
            path.unlink(missing_ok=True)


@cache
def _prune_once() -> None:
    prune(time.time())


def _is_ours(place: Path) -> bool:
    """Machine code is taken from nobody else: others could write into a directory for temporary files."""
    status = place.stat()
    return (
        status.st_uid == os.geteuid()
        and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        and os.access(place, os.W_OK | os.X_OK)
    )


def _shipped(name: str) -> bytes:
    loader: Any = sys.modules[__name__].__loader__  # a zip's, where this came in one
    try:
        return bytes(loader.get_data(str(Path(__file__).parent / SHIPPED / f"{name}{SUFFIX}")))
    except OSError:
        return b""
