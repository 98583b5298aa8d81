"""What a command tells: few essential lines, progress for those who watch, one JSON object for machines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Output(Enum):
    TEXT = "text"
    JSON = "json"
    """Standard output holds one JSON object and nothing else; lines for people go to standard error."""


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
        print(line, file=sys.stderr if self.output is Output.JSON else sys.stdout, flush=True)

    def progress(self, line: str) -> None:
        if self.watching is Watching.YES:
            print(f"{time.monotonic() - self.started:7.1f} s  {line}", file=sys.stderr, flush=True)

    def result(self, data: Mapping[str, Any]) -> None:
        """The one JSON object, where JSON was asked for."""
        if self.output is Output.JSON:
            print(json.dumps(data, ensure_ascii=False, allow_nan=False), flush=True)
