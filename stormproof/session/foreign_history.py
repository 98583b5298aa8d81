"""Histories as a user names them: a directory or an archive of tests stands for all of them, and a pipe for what comes
out of it, which is kept in a scratch file meanwhile.

`-` is standard input. What a history is written as is seen from its first bytes; its name decides only where these say
nothing (a stream that was torn before them).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import islice
from pathlib import Path

from harness import path_name
from harness.errors import HarnessError, UsageError
from harness.jepsen.archive import is_archive, unpack
from harness.jepsen.source import BrokenText
from harness.jepsen.test_directory import is_test_directory
from harness.notations import Notation, recognised, write_rows
from harness.reading import STANDARD_INPUT, is_stream, refuse_irregular, spool
from harness.record.run_directory import RunDirectory

Meanwhile = Callable[[Path, int], None]

OWN_SUFFIXES = (".parquet", ".arrows")
MOST_WITHIN = 100_000
"""Tests and runs in one directory."""
_SPOOLED = "given"
_ROWS = "rows.json"


class Form(Enum):
    PARQUET = "parquet"
    STREAM = "arrows"
    """Arrow's, as a run leaves it that was killed."""
    TEXT = "text"


_BEGINNINGS = ((b"PAR1", Form.PARQUET), (b"\xff\xff\xff\xff", Form.STREAM))


@dataclass(frozen=True, kw_only=True)
class HistoryFile:
    """A history that can be read as often as it takes."""

    path: Path
    """The name of the history as it was given."""
    file: Path
    """A regular file with what it holds."""
    form: Form
    notation: str = ""
    """The notation of a history of sessions without times."""

    @property
    def name(self) -> str:
        """What a folder may be called after it."""
        return path_name.made_of("stdin" if self.path == STANDARD_INPUT else self.path.stem, otherwise="history")


def is_there(path: Path) -> bool:
    """Raises UsageError for a path that names nothing on any system."""
    try:
        return path == STANDARD_INPUT or path.exists()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def locate_history(path: Path, scratch: Path, *, meanwhile: Meanwhile | None = None) -> HistoryFile:
    """The history, and where it can be read: in `scratch`, a folder, if it is a stream; while that lasts,
    `meanwhile` is called time and again with the file and how many bytes have come.

    Raises UsageError for what is none (a device, a socket) or cannot be read, HarnessError where there is no room.
    """
    file = path
    try:
        refuse_irregular(path)
        if is_stream(path):
            file = scratch / _SPOOLED
            spool(path, file, meanwhile=None if meanwhile is None else partial(meanwhile, file))
        with file.open("rb") as opened:
            head = opened.read(4)
    except OSError as error:
        if error.filename == str(scratch / _SPOOLED):
            raise HarnessError(f"{path} cannot be kept in {scratch}: {error.strerror or error}") from None
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise _unreadable(path, error) from None
    form = next((form for beginning, form in _BEGINNINGS if head == beginning), None)
    if form is None:
        named = path.suffix.removeprefix(".")
        form = Form(named) if path.suffix in OWN_SUFFIXES else Form.TEXT
    notation = recognised(file) if form is Form.TEXT else None
    if notation is not None:
        return _of_sessions(path, file, notation, scratch)
    return HistoryFile(path=path, file=file, form=form)


def history_in_directory(path: Path, scratch: Path) -> HistoryFile | None:
    """The history that a directory of another checker's logs holds; None where it is none.

    Raises UsageError, HarnessError.
    """
    try:
        notation = recognised(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    return None if notation is None else _of_sessions(path, path, notation, scratch)


def _of_sessions(path: Path, file: Path, notation: Notation, scratch: Path) -> HistoryFile:
    """Rows that say the same, in `scratch`. Raises UsageError, HarnessError."""
    rows = scratch / _ROWS
    try:
        write_rows(notation.read(file), rows)
    except BrokenText as broken:
        raise UsageError(f"{path} is no history in {notation.name}: byte {broken.at}: {broken.reason}") from None
    except OSError as error:
        raise HarnessError(f"{path} cannot be kept in {scratch}: {error.strerror or error}") from None
    return HistoryFile(path=path, file=rows, form=Form.TEXT, notation=notation.name)


def _unreadable(path: Path, error: OSError | ValueError) -> UsageError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return UsageError(f"{path} cannot be read: {reason or error}")


@dataclass(frozen=True, kw_only=True)
class Target:
    """One history, test or run."""

    named: Path
    """The name under which it is printed."""
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
        return []  # What is wrong with it is said at its turn.
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
