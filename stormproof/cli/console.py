"""What a command prints: few essential lines, progress for those who watch, one JSON object for machines.

Nothing else in `stormproof.cli` prints. What comes here may hold text from histories, from nodes, or names of files, so
it goes through `printable`: one call is one line, whatever is in it. Colours are added afterwards, on terminals alone.
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
from harness.progress import Moment, Remark
from stormproof.cli.live_line import ERASE, LiveLine

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
    AT_INTERVALS = "at intervals"
    """The progress of long work is printed every few seconds."""
    NO = "no"

    @classmethod
    def when(cls, asked: bool | None) -> Watching:
        """As asked for by --progress or --quiet; otherwise all on a terminal, and elsewhere little."""
        if asked is None:
            return cls.YES if sys.stderr.isatty() else cls.AT_INTERVALS
        return cls.YES if asked else cls.NO


class Tone(Enum):
    """What a line says at a glance, by its colour on a terminal."""

    GOOD = "32"
    BAD = "31"
    DOUBT = "33"


@dataclass(frozen=True, kw_only=True)
class Console:
    output: Output = Output.TEXT
    watching: Watching = Watching.NO
    says: bool = True
    """Whether essential lines are printed: not those of one history of many, which get a line together."""
    started: float = field(default_factory=time.monotonic)

    def say(self, line: str, tone: Tone | None = None) -> None:
        """An essential line."""
        if not self.says:
            return
        settle()
        stream = sys.stdout if self.output is Output.TEXT else sys.stderr
        _print(line, stream, tone if self.output is not Output.JSON else None)

    def progress(self, news: str | Moment | Remark) -> None:
        """A line; a moment is shown on the live line, until the next one or the next line that is no remark."""
        if isinstance(news, Remark):
            remark(news.line)
        if isinstance(news, Remark) or self.watching is Watching.NO:
            return
        if isinstance(news, Moment):
            _live_line(self.started).report(news)
        elif self.watching is Watching.YES:
            settle()
            _print(f"{time.monotonic() - self.started:7.1f} s  {news}", sys.stderr)

    def result(self, data: Mapping[str, Any]) -> None:
        """The one JSON object, where JSON was asked for."""
        if self.output is Output.JSON:
            settle()
            text = json.dumps(data, allow_nan=False)  # in ASCII; of that, JSON leaves one control character as it is
            _print(text.replace("\x7f", "\\u007f"), sys.stdout)


def remark(line: str, *, by: str = "stormproof") -> None:
    """One line on standard error beside what was asked for: a mistake, a problem, what a part of the harness does."""
    _print(f"{by}: {line}", sys.stderr)


def remarks_alone(news: str | Moment | Remark) -> None:
    """Progress of which nothing else is shown."""
    if isinstance(news, Remark):
        remark(news.line)


def remark_at_once(line: str) -> None:
    """In a signal's handler: sys.stderr may be in the middle of a line of its own, and standard error be gone."""
    erased = ERASE if _live is not None and _live.is_shown else ""
    with contextlib.suppress(OSError):
        os.write(STANDARD_ERROR, f"{erased}stormproof: {printable(line)}\n".encode(errors="backslashreplace"))


def remark_traceback() -> None:
    """Where the exception that is being handled came from."""
    for line in traceback.format_exc().splitlines():
        remark(line, by="traceback")


def settle() -> None:
    """Leave nothing of the live line on the terminal."""
    if _live is not None:
        _live.end()


def shows_colours(stream: TextIO) -> bool:
    """A terminal that has colours, unless the environment says otherwise: NO_COLOR (https://no-color.org), or
    FORCE_COLOR and CLICOLOR_FORCE, which mean files and pipes, too."""
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return _can_be_erased(stream)


def _can_be_erased(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM") != "dumb"


_live: LiveLine | None = None
"""The terminal is one for the whole process."""


def _live_line(started: float) -> LiveLine:
    global _live
    if _live is None or _live.stream is not sys.stderr:
        if _live is not None:
            _live.close()
        _live = LiveLine(sys.stderr, in_place=_can_be_erased(sys.stderr), started=started)
    return _live


def _print(line: str, stream: TextIO, tone: Tone | None = None) -> None:
    text = printable(line)
    if tone is not None and shows_colours(stream):
        text = f"\x1b[1;{tone.value}m{text}\x1b[0m"
    # Where remarks cannot be written, the exit code still says what became of the command.
    forgiven = contextlib.suppress(OSError) if stream is sys.stderr else contextlib.nullcontext()
    with forgiven, contextlib.nullcontext() if _live is None else _live.erased():
        print(text, file=stream, flush=True)
