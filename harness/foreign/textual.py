"""Jepsen's log lines: `INFO  jepsen.util - 3	:invoke	:cas	[3 0]`, process, type, f, value, and perhaps an error.

A log has other lines as well; they are passed over if they begin as log lines do and name no type of operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from harness.foreign.edn import parse
from harness.foreign.source import BrokenText, Pieces, Row

_LINE = re.compile(
    r"(?:.*\s)?(?P<process>:?[\w.\-]+)[ \t]+:(?P<type>[\w\-]+)[ \t]+:(?P<f>[\w.\-]+)[ \t]+(?P<rest>\S.*?)\s*"
)
_OPERATION = re.compile(r"\s:(invoke|ok|fail|info)(\s|$)")
_LOG = re.compile(r"(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\s|\d{4}-\d\d-\d\d")


def rows(pieces: Pieces) -> Iterator[tuple[int, Row]]:
    """Each operation with its line. Raises BrokenText."""
    for text in pieces:
        named = _OPERATION.search(text)
        found = _LINE.fullmatch(text.rstrip("\n")) if named else None
        if found is not None:
            try:
                rest = _forms(found["rest"])
            except BrokenText as error:
                raise BrokenText(pieces.line, error.reason) from None
            process = found["process"]
            row: Row = {
                "process": int(process) if process.isdigit() else process.lstrip(":"),
                "type": found["type"],
                "f": found["f"],
                "value": rest[0],
            }
            if len(rest) > 1:
                row["error"] = rest[1]
            yield pieces.line, row
        elif named or (text.strip() and not _LOG.match(text)):
            raise BrokenText(pieces.line, f"a line must read PROCESS :TYPE :F VALUE, it reads {text.strip()[:80]!r}")


@lru_cache(maxsize=65_536)
def _forms(text: str) -> tuple[Any, ...]:
    forms: tuple[Any, ...] = parse(f"[{text}\n]")
    return forms
