"""Directories for a while: named after the process that made them, so that those of a dead one are found and removed.

Every temporary directory of the project is one of these.
"""

from __future__ import annotations

import atexit
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from harness.lifetime.owner import PATTERN, State, owner_id, state_of
from harness.lifetime.resources import hold, holding

_NAME = re.compile(r"stormproof-(?P<owner>[^/]+)-\w+")
_COLON = "+"
"""Stands for a colon in names of directories, which may end up in a list that is separated by colons."""
MOUNTS = Path("/proc/self/mounts")


@contextmanager
def directory(*, beside: Path | None = None) -> Iterator[Path]:
    """A fresh directory, gone afterwards: where temporary files belong, or hidden `beside` others. Raises OSError."""
    path = _fresh() if beside is None else beside / f".{_fresh().name}"
    with holding(partial(remove, path)):
        path.mkdir(mode=0o700)
        yield path


def for_the_process() -> Path:
    """A fresh directory that lasts as long as this process, also where that is asked to end, or until a cleanup."""
    path = _fresh()
    hold(partial(remove, path))
    atexit.register(_remove_ours, path)
    path.mkdir(mode=0o700)
    return path


def orphans() -> list[Path]:
    """Directories whose process is gone."""
    found = []
    for path in sorted(Path(tempfile.gettempdir()).glob("stormproof-*")):
        match = _NAME.fullmatch(path.name)
        name = match["owner"].replace(_COLON, ":") if match else ""
        if re.fullmatch(PATTERN, name) and path.is_dir() and state_of(name) is State.GONE:
            found.append(path)
    return found


def remove(path: Path) -> None:
    """Remove it as far as that can be, with what is mounted in it (debootstrap's kernel file systems, disks of nodes);
    never walks into what stays mounted."""
    for mounted in _mounted_in(path):
        subprocess.run(["umount", "--lazy", str(mounted)], capture_output=True, check=False)
    if not _mounted_in(path):
        shutil.rmtree(path, ignore_errors=True)


def _mounted_in(path: Path) -> list[Path]:
    """Mount points, the newest first. Nothing where the kernel does not say."""
    if not MOUNTS.exists():
        return []
    places = [line.split()[1] for line in MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()]
    unescaped = (Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), place)) for place in places)
    return [place for place in reversed(list(unescaped)) if place.is_relative_to(path)]


def _fresh() -> Path:
    return Path(tempfile.gettempdir(), f"{_prefix()}{secrets.token_hex(8)}")


def _prefix() -> str:
    return f"stormproof-{owner_id().replace(':', _COLON)}-"


def _remove_ours(path: Path) -> None:
    """At the end of a process; one that was forked from the owner is not the owner."""
    if path.name.startswith(_prefix()):
        remove(path)
