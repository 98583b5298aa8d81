"""Files that a user asks a command to write, with one line for each way in which that fails."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from pathlib import Path

from harness.errors import HarnessError, UsageError
from results import output
from results.output import STANDARD_OUTPUT

__all__ = ["STANDARD_OUTPUT", "require_folder", "require_writable", "write"]

_NO_FAULT_OF_THE_USER = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


def require_writable(path: Path) -> None:
    """Before hours of work, not after them. Raises UsageError, HarnessError."""
    try:
        output.require_writable(path)
    except OSError as error:
        raise _refusal(path, error) from error


def require_folder(path: Path) -> None:
    """Make the folder of `path` where there is none. Raises UsageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _refusal(path, error) from error


def write(path: Path, pieces: Iterable[str]) -> None:
    """`results.output.write`; raises UsageError where another path would do, HarnessError where the disk is full.

    BrokenPipeError of standard output is passed on: its reader has enough.
    """
    try:
        output.write(path, pieces)
    except OSError as error:
        if path == STANDARD_OUTPUT and isinstance(error, BrokenPipeError):
            raise
        raise _refusal(path, error) from error


def _refusal(path: Path, error: OSError) -> UsageError | HarnessError:
    named = "standard output" if path == STANDARD_OUTPUT else path
    words = f"cannot write {named}: {error.strerror or error}"
    if error.errno == errno.ENOENT and not path.parent.is_dir():
        words = f"cannot write {named}: there is no directory {path.parent}"
    if error.errno in _NO_FAULT_OF_THE_USER:
        return HarnessError(words)
    return UsageError(f"{words}; name another file")
