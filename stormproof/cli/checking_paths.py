"""Which histories the PATHs of `stormproof check` stand for: a directory or an archive of tests for all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from harness.errors import HarnessError, UsageError
from harness.jepsen.archive import is_archive, unpack
from harness.jepsen.test_directory import is_test_directory
from harness.reading import is_stream
from harness.record.run_directory import RunDirectory
from stormproof.session.foreign_history import is_there

MOST_WITHIN = 100_000
"""Tests and runs in one directory."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One history, test or run."""

    named: Path
    """As it is told of."""
    at: Path
    """Where it lies."""
    is_within: bool = False
    """Whether it is one of those that a PATH stands for."""


def targets(paths: Sequence[Path], unpacked: Path) -> list[Target]:
    """In the order of the paths; `unpacked` is a folder for what lies in archives. Raises UsageError, HarnessError."""
    found: list[Target] = []
    for number, path in enumerate(paths):
        within = _within(path, unpacked / str(number))
        found += within or [Target(named=path, at=path)]
    return found


def _within(path: Path, unpacked: Path) -> list[Target]:
    """What the path stands for beside itself; nothing for a history, a test, a run, and what cannot be read."""
    try:
        if not is_there(path) or is_stream(path):
            return []
        if path.is_dir():
            return [Target(named=one, at=one, is_within=True) for one in _sorted(path)]
        if not path.is_file() or not is_archive(path):
            return []
        unpacked.mkdir()
    except (OSError, ValueError, UsageError):
        return []  # It is told when it is its turn.
    try:
        unpack(path, unpacked)
    except (OSError, ValueError) as error:
        raise HarnessError(f"{path} cannot be unpacked: {error}") from error
    tests = _sorted(unpacked)
    if not tests:
        raise UsageError(
            f"{path} is an archive without a test of Jepsen's: none of its directories has a history.edn or a "
            "jepsen.log; unpack it, and name the history"
        )
    return [Target(named=path / one.relative_to(unpacked), at=one, is_within=True) for one in tests]


def _sorted(path: Path) -> list[Path]:
    """Tests and runs in a directory that is none itself."""
    if is_test_directory(path) or is_run(path):
        return []
    return sorted(islice(_found(path), MOST_WITHIN))


def is_run(path: Path) -> bool:
    return RunDirectory(path).scenario.exists()


def _found(path: Path) -> Iterator[Path]:
    """Each once: `latest` and `current` are links to others."""
    for folder, folders, _ in os.walk(path):
        here = Path(folder)
        if here != path and (is_test_directory(here) or is_run(here)):
            folders.clear()
            yield here
