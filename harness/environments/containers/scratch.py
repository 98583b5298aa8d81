"""Directories for a while, named after the process that made them, so that those of a killed one can be found."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.environments.containers.engine import is_alive, owner

_NAME = re.compile(r"stormproof-(?P<owner>.+:\d+:\w+)-\w+")


@contextmanager
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix=f"stormproof-{owner()}-"))
    try:
        yield path
    finally:
        _remove(path)


def remove_orphans() -> list[str]:
    """Remove those whose process is gone; returns what was removed."""
    removed = []
    for path in sorted(Path(tempfile.gettempdir()).glob("stormproof-*")):
        match = _NAME.fullmatch(path.name)
        if match and path.is_dir() and not is_alive(match["owner"]):
            _remove(path)
            removed.append(f"directory {path}")
    return removed


def _remove(path: Path) -> None:
    """An interrupted build of an image may have left kernel file systems mounted there: never walk into those."""
    for mounted in ("sys", "proc"):
        if (path / mounted).is_mount():
            subprocess.run(["umount", "--lazy", str(path / mounted)], capture_output=True, check=False)
    if not any((path / mounted).is_mount() for mounted in ("sys", "proc")):
        shutil.rmtree(path, ignore_errors=True)
