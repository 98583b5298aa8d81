"""Jepsen's log lines: `INFO  jepsen.util - 3	:invoke	:cas	[3 0]`, process, type, f, value, and perhaps an error.

A log has other lines as well; they are passed over if they begin as log lines do and name no type of operation.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from harness.jepsen import edn
from harness.jepsen.operation_columns import Column, OperationColumns, Values, column_of, earlier, texts_of
from harness.jepsen.scan import ABSENT, BESIDE, IN_LINES, MARKED_FINAL, NUMBERS, POSITION, Lines
from harness.jepsen.source import BrokenText

_NAMES_A_TYPE = re.compile(rb"\s:(invoke|ok|fail|info)(\s|$)|\t:[\w\-]+\t:")
_UNKNOWN_TYPE = re.compile(rb"(?<!\S):?[\w.\-]++\t:(?P<type>[\w\-]++)\t:[^\s:]+\t")
_LOG = re.compile(rb"(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\s|\d{4}-\d\d-\d\d")
LONGEST_SHOWN = 80


class LineReader:
    """Reads log lines."""

    def __init__(self) -> None:
        self._values = Values(_plain)
        self._rests = Values(edn.sequence)

    def read(self, block: bytes, *, final: bool) -> tuple[OperationColumns, int]:
        """The operations in the whole lines of the block, and where the text goes on behind them."""
        used = len(block) if final else block.rfind(b"\n") + 1
        text = np.frombuffer(block[:used], np.uint8)
        lines = Lines.of(text)
        broken = None
        try:
            for at in lines.others.tolist():
                _pass_over(at, block[at : _end_of_line(block, at, used)])
        except BrokenText as error:
            broken = error
        columns = {}
        for number, name in enumerate(IN_LINES):
            texts = texts_of(text, lines.begin[:, number], lines.end[:, number])
            columns[name], unreadable = column_of(texts, self._rests if name == "rest" else self._values)
            if unreadable is not None:
                broken = earlier(broken, int(lines.at[unreadable[0]]), unreadable[1])
        rests = columns.pop("rest")
        # A rest of digits alone comes as the integer that it is.
        forms = [rest if isinstance(rest, tuple) else (rest,) for rest in rests.values]
        absent = Column([None], np.zeros(len(lines.at), np.int32))
        recorded = OperationColumns(
            at=lines.at,
            fields={
                **columns,
                "value": Column([rest[0] for rest in forms], rests.codes),
                "error": Column([rest[1] if len(rest) > 1 else None for rest in forms], rests.codes),
                **dict.fromkeys(("key", "node", *BESIDE, *POSITION, MARKED_FINAL), absent),
            },
            numbers={name: np.full(len(lines.at), ABSENT) for name in NUMBERS},
            odd={},
            broken=broken,
        )
        return recorded.before_broken(), used

    def end(self, at: int) -> None:
        """Lines need nothing behind them."""


def _end_of_line(block: bytes, at: int, used: int) -> int:
    end = block.find(b"\n", at, used)
    return used if end < 0 else end


def _pass_over(at: int, line: bytes) -> None:
    """Raises BrokenText if the line holds an operation, or is no line of a log."""
    unknown = _UNKNOWN_TYPE.search(line)
    if unknown and unknown["type"] not in (b"invoke", b"ok", b"fail", b"info"):
        raise BrokenText(at, f"type must be one of invoke, ok, fail, info, it is :{unknown['type'].decode()}")
    if _NAMES_A_TYPE.search(line) or (line.strip() and not _LOG.match(line)):
        shown = line.strip()[:LONGEST_SHOWN].decode(errors="backslashreplace")
        raise BrokenText(
            at,
            "neither EDN, nor JSON, nor a line of Jepsen's log, which reads PROCESS :TYPE :F VALUE with tabs between: "
            f"{shown!r}",
        )


def _plain(text: bytes) -> Any:
    """Processes and names."""
    if text.isdigit() and len(text) <= edn.DIGITS:
        return int(text)
    name = text.decode(errors="replace")
    return edn.Keyword(name.removeprefix(":"))
