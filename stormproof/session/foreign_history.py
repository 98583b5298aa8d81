"""A history as a user names it: a file, or what comes out of a pipe, which is kept in a scratch file meanwhile.

`-` is standard input. What a history is written as is seen from its first bytes; its name decides only where these say
nothing (a stream that was torn before them).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path

from harness import path_name
from harness.errors import HarnessError, UsageError
from harness.jepsen.source import BrokenText
from harness.notations import Notation, recognised, write_rows
from harness.reading import STANDARD_INPUT, is_stream, refuse_irregular, spool

Meanwhile = Callable[[Path, int], None]

OWN_SUFFIXES = (".parquet", ".arrows")
_SPOOLED = "given"
_ROWS = "rows.json"


class Form(Enum):
    PARQUET = "parquet"
    STREAM = "arrows"
    """Arrow's, as a run leaves it that was killed."""
    TEXT = "text"


_BEGINNINGS = ((b"PAR1", Form.PARQUET), (b"\xff\xff\xff\xff", Form.STREAM))


@dataclass(frozen=True, kw_only=True)
class GivenHistory:
    """A history that can be read as often as it takes."""

    path: Path
    """As it was named."""
    file: Path
    """A regular file with what it holds."""
    form: Form
    notation: str = ""
    """Of a history of sessions without times, whose notation it has."""

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


def locate_history(path: Path, scratch: Path, *, meanwhile: Meanwhile | None = None) -> GivenHistory:
    """The history, and where it can be read: in `scratch`, a folder, if it is a stream; then `meanwhile` is called now
    and then, until that has ended, with the file and how many bytes have come.

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
    return GivenHistory(path=path, file=file, form=form)


def given_directory(path: Path, scratch: Path) -> GivenHistory | None:
    """The history that a directory of another checker's logs holds; None where it is none.

    Raises UsageError, HarnessError.
    """
    try:
        notation = recognised(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    return None if notation is None else _of_sessions(path, path, notation, scratch)


def _of_sessions(path: Path, file: Path, notation: Notation, scratch: Path) -> GivenHistory:
    """Rows that say the same, in `scratch`. Raises UsageError, HarnessError."""
    rows = scratch / _ROWS
    try:
        write_rows(notation.read(file), rows)
    except BrokenText as broken:
        raise UsageError(f"{path} is no history in {notation.name}: byte {broken.at}: {broken.reason}") from None
    except OSError as error:
        raise HarnessError(f"{path} cannot be kept in {scratch}: {error.strerror or error}") from None
    return GivenHistory(path=path, file=rows, form=Form.TEXT, notation=notation.name)


def _unreadable(path: Path, error: OSError | ValueError) -> UsageError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return UsageError(f"{path} cannot be read: {reason or error}")
