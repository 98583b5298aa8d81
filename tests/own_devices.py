"""Device nodes of a test's own, so that a mistake in what it tests destroys none of the machine's."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest


def full_device(path: Path) -> Path:
    """A device on which nothing has room, as /dev/full; skips where none can be made and opened."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        path.open("r+b", buffering=0).close()
    except OSError as error:
        pytest.skip(f"no device can be made and opened here: {error.strerror}")
    return path
