"""What a command prints: few essential lines, progress for those who watch, one JSON object for machines.

Nothing else in `harness.cli` prints. What comes here may hold text from histories, from nodes, or names of files, so it
goes through `printable`: one call is one line, whatever is in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TextIO

from harness.printable import printable

STANDARD_ERROR = 2


class Output(Enum):
    TEXT = "text"
    JSON = "json"
    """Standard output holds one JSON object and nothing else; lines for people go to standard error."""
    FILE = "file"
    """Standard output holds a file that was asked for; lines for people go to standard error."""


class Watching(Enum):
    """Whether progress is shown, on standard error."""

    YES = "yes"
    NO = "no"

    @classmethod
    def when(cls, asked: bool | None) -> Watching:
        """As asked for by --progress or --quiet; otherwise exactly if a terminal is there."""
        shown = sys.stderr.isatty() if asked is None else asked
        return cls.YES if shown else cls.NO


@dataclass(frozen=True, kw_only=True)
class Console:
    output: Output = Output.TEXT
    watching: Watching = Watching.NO
    started: float = field(default_factory=time.monotonic)

    def say(self, line: str) -> None:
        """An essential line."""
        _print(line, sys.stdout if self.output is Output.TEXT else sys.stderr)

    def progress(self, line: str) -> None:
        if self.watching is Watching.YES:
            _print(f"{time.monotonic() - self.started:7.1f} s  {line}", sys.stderr)

    def result(self, data: Mapping[str, Any]) -> None:
        """The one JSON object, where JSON was asked for."""
        if self.output is Output.JSON:
            text = json.dumps(data, allow_nan=False)  # in ASCII; of that, JSON leaves one control character as it is
            _print(text.replace("\x7f", "\\u007f"), sys.stdout)


def remark(line: str, *, by: str = "stormproof") -> None:
    """One line on standard error beside what was asked for: a mistake, a problem, what a part of the harness does."""
    _print(f"{by}: {line}", sys.stderr)


def remark_at_once(line: str) -> None:
    """In a signal's handler: sys.stderr may be in the middle of a line of its own, and standard error be gone."""
    with contextlib.suppress(OSError):
        os.write(STANDARD_ERROR, f"stormproof: {printable(line)}\n".encode(errors="backslashreplace"))


def remark_traceback() -> None:
    """Where the exception that is being handled came from."""
    for line in traceback.format_exc().splitlines():
        remark(line, by="traceback")


def _print(line: str, stream: TextIO) -> None:
    print(printable(line), file=stream, flush=True)
