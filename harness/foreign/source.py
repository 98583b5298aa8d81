"""The text of a foreign history, piece by piece, with the number of the line that is being read."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

PIECE_BYTES = 1 << 20
"""A longer line comes in several pieces, so that a file of a single line needs no more memory than any other."""

Row = dict[str, Any]
"""One operation as it was recorded: `process`, `type`, `f`, `value`, and what else there may be."""


class BrokenText(Exception):
    """The text cannot be read from this line on."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


class Pieces:
    """Lines, or parts of long ones. `line` counts from 1 and belongs to the piece that came last."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.line = 0

    def __iter__(self) -> Iterator[str]:
        """Raises OSError, and BrokenText where it is not UTF-8."""
        decode = codecs.getincrementaldecoder("utf-8")().decode
        started = ended = True
        with self._path.open("rb") as file:
            for raw in iter(partial(file.readline, PIECE_BYTES), b""):
                self.line += ended
                started, ended = ended, raw.endswith(b"\n")
                try:
                    # A part of a line may end within a character.
                    yield raw.decode() if started and ended else decode(raw)
                except UnicodeDecodeError as error:
                    raise BrokenText(self.line, f"not UTF-8 text: {error.reason} at byte {error.start}") from None
