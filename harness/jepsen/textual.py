"""Jepsen's log lines: `INFO  jepsen.util - 3	:invoke	:cas	[3 0]`, process, type, f, value, and perhaps an error.

A log has other lines as well, and entries that go on over many of them: the map of the test, what a checker found,
where an exception came from. They are passed over, unless they look like an operation that is damaged. A text of which
no line begins as those of logs do has operations alone, and behind one that did not succeed more lines of its error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.jepsen import edn
from harness.jepsen.operation_columns import Column, OperationColumns, Values, column_of, earlier, texts_of
from harness.jepsen.scan import ABSENT, BESIDE, IN_LINES, MARKED_FINAL, NUMBERS, POSITION, Lines
from harness.jepsen.source import BrokenText, Unfinished

_DAMAGED = re.compile(rb"(?<!\S)(\d++|:?nemesis)\s++:(invoke|ok|fail|info)(\s|$)|\t:[\w\-]++\t:")
_UNKNOWN_TYPE = re.compile(rb"(?<!\S):?[\w.\-]++\t:(?P<type>[\w\-]++)\t:[^\s:]+\t")
_ENTRY = rb"(?:(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\s|\d{4}-\d\d-\d\d)"
_LOG = re.compile(_ENTRY)
_HAS_ENTRIES = re.compile(rb"^" + _ENTRY, re.MULTILINE)
_WITHOUT_FUNCTION = re.compile(rb"(?<!\S)\d++\t:(?:invoke|ok|fail|info)\tnil\t")
"""What a test asked without saying what."""
FAILED = ("fail", "info")
LONGEST_SHOWN = 80


@dataclass(frozen=True)
class _Rest:
    """What stands behind the name of an operation."""

    value: Any = None
    error: Any = None
    unreadable: str = ""
    """Why it is no value; it is the error then, as the text that it is."""


class LineReader:
    """Reads log lines."""

    def __init__(self) -> None:
        self._values = Values(_plain)
        self._rests = Values(_rest)
        self._is_log: bool | None = None
        self._may_go_on = False
        """Whether the last operation before the block has an error, which may have many lines."""

    def read(self, block: bytes, *, final: bool) -> tuple[OperationColumns, int]:
        """The operations in the whole lines of the block, and where the text goes on behind them."""
        used = len(block) if final else block.rfind(b"\n") + 1
        text = np.frombuffer(block[:used], np.uint8)
        if self._is_log is None:
            self._is_log = _HAS_ENTRIES.search(block) is not None
        lines = Lines.of(text)
        columns = {}
        for number, name in enumerate(IN_LINES):
            texts = texts_of(text, lines.begin[:, number], lines.end[:, number])
            columns[name], _ = column_of(texts, self._rests if name == "rest" else self._values)
        rests = columns.pop("rest")
        # A rest of digits alone comes as the integer that it is.
        forms = [rest if isinstance(rest, _Rest) else _Rest(rest) for rest in rests.values]
        failed = np.isin(columns["type"].codes, [n for n, kind in enumerate(columns["type"].values) if kind in FAILED])
        broken = self._pass_over(block[:used], lines, failed)
        broken = _unreadable(lines, forms, rests, columns, broken)
        cut_off = None
        last_line = block.rfind(b"\n", 0, used) + 1
        is_last = broken is not None and final and broken.at == last_line < used
        if is_last and (self._is_log or len(lines.at)):
            broken, cut_off = None, Unfinished(last_line, "the text ends within a line")
        absent = Column([None], np.zeros(len(lines.at), np.int32))
        recorded = OperationColumns(
            at=lines.at,
            fields={
                **columns,
                "value": Column([rest.value for rest in forms], rests.codes),
                "error": Column([rest.error for rest in forms], rests.codes),
                **dict.fromkeys(("key", "node", *BESIDE, *POSITION, MARKED_FINAL), absent),
            },
            numbers={name: np.full(len(lines.at), ABSENT) for name in NUMBERS},
            odd={},
            broken=broken,
            cut_off=cut_off,
        )
        if cut_off is not None:
            recorded = recorded.first(int(np.searchsorted(lines.at, cut_off.at)))
        return recorded.before_broken(), used

    def _pass_over(self, block: bytes, lines: Lines, failed: NDArray[np.bool_]) -> BrokenText | None:
        """What is the first line that is neither an operation nor may stand beside them; `failed`: of each operation,
        whether it did not succeed."""
        before = np.searchsorted(lines.at, lines.others) - 1
        for at, operation in zip(lines.others.tolist(), before.tolist(), strict=True):
            goes_on = bool(failed[operation]) if operation >= 0 else self._may_go_on
            try:
                _pass_over(at, block[at : _end_of_line(block, at, len(block))], bool(self._is_log) or goes_on)
            except BrokenText as error:
                return error
        if len(failed):
            self._may_go_on = bool(failed[-1])
        return None


def _unreadable(
    lines: Lines, forms: list[_Rest], rests: Column, columns: dict[str, Column], broken: BrokenText | None
) -> BrokenText | None:
    """The first operation whose value decides something and cannot be read, if it comes before what is broken."""
    for row in np.flatnonzero(np.array([bool(form.unreadable) for form in forms])[rests.codes]).tolist():
        process, kind = (columns[name].values[columns[name].codes[row]] for name in ("process", "type"))
        if process != "nemesis" and kind in ("invoke", "ok"):
            return earlier(broken, int(lines.at[row]), forms[rests.codes[row]].unreadable)
    return broken


def _rest(text: bytes) -> _Rest:
    """A value and perhaps an error, with a tab or a blank between them."""
    value, tab, error = text.partition(b"\t")
    try:
        forms = edn.sequence(value)
        if tab and len(forms) == 1:
            return _Rest(forms[0], _error(error))
        forms = edn.sequence(text)
    except BrokenText as broken:
        return _Rest(error=text.decode(errors="replace"), unreadable=broken.reason)
    return _Rest(forms[0] if forms else None, forms[1] if len(forms) > 1 else None)


def _error(text: bytes) -> Any:
    """What went wrong, as a form if it is one."""
    try:
        forms = edn.sequence(text)
    except BrokenText:
        forms = ()
    return forms[0] if len(forms) == 1 else text.decode(errors="replace").strip()


def _end_of_line(block: bytes, at: int, used: int) -> int:
    end = block.find(b"\n", at, used)
    return used if end < 0 else end


def _pass_over(at: int, line: bytes, is_free: bool) -> None:
    """Raises BrokenText if the line holds a damaged operation, or is no line of a log where it is not free to be."""
    unknown = _UNKNOWN_TYPE.search(line)
    if unknown and unknown["type"] not in (b"invoke", b"ok", b"fail", b"info"):
        raise BrokenText(at, f"type must be one of invoke, ok, fail, info, it is :{unknown['type'].decode()}")
    if _WITHOUT_FUNCTION.search(line):
        return
    if _DAMAGED.search(line) or (line.strip() and not is_free and not _LOG.match(line)):
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
