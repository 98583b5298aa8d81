"""What surrounds an operation that fits nowhere, as tables, from the details of its anomaly: what was open meanwhile,
what could have explained it and why it did not, and how far an order of the operations before it comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from results.report.escaped import escape
from results.report.table import table

PREFIXES_SHOWN = 3
UNBROKEN = 40
"""Longer words go over several lines."""
OPERATIONS_SHOWN = 60
"""The most operations in one table. Checkers give fewer."""

Reported = Mapping[str, Any]
Rows = Mapping[int, Mapping[str, Any]]


def rows_wanted(details: Mapping[str, Any]) -> Iterator[int]:
    """Indices of the rows of the history that the tables take times and processes from."""
    operations = [
        details.get("failing"),
        *_operations(details.get("concurrent")),
        *_operations(details.get("candidates")),
    ]
    operations += [one for prefix in _prefixes(details) for one in _operations(prefix)]
    for one in operations:
        if isinstance(one, Mapping):
            yield from (one[end] for end in ("operation", "completed") if isinstance(one.get(end), int))


def surroundings(details: Mapping[str, Any], rows: Rows, *, timed: bool, opened: bool) -> str:
    """The section; empty if the anomaly is of another kind."""
    failing = details.get("failing")
    if not isinstance(failing, Mapping):
        return ""
    parts = [
        (f"Open at the same time ({_count(details.get('concurrent'))})", _concurrent(details, rows, timed)),
        ("What could have explained it, and why it did not", _candidates(details, rows, timed)),
        ("The longest order of what came before it", _orders(details, rows, timed)),
    ]
    attribute = " open" if opened else ""
    return "".join(
        f"<details{attribute}><summary>{escape(title)}</summary>{inner}</details>" for title, inner in parts if inner
    )


def _concurrent(details: Mapping[str, Any], rows: Rows, timed: bool) -> str:
    concurrent = details.get("concurrent")
    if not _count(concurrent):
        return '<p class="muted">Nothing else on this object.</p>'
    return _table(_operations(concurrent), rows, timed, {}) + _beyond(concurrent, "began earlier")


def _candidates(details: Mapping[str, Any], rows: Rows, timed: bool) -> str:
    candidates = details.get("candidates")
    if not isinstance(candidates, Mapping):
        return ""
    if not _count(candidates):
        return '<p class="muted">Nothing that may have happened: nobody gave this object such a value.</p>'
    reasons = {"why it did not": [escape(str(one.get("why_not", ""))) for one in _operations(candidates)]}
    return _table(_operations(candidates), rows, timed, reasons) + _beyond(candidates, "are not shown")


def _orders(details: Mapping[str, Any], rows: Rows, timed: bool) -> str:
    shown = []
    for prefix in _prefixes(details):
        steps = _operations(prefix)
        left_out = prefix.get("left_out")
        before = (
            f'<p class="muted small">{left_out:,} came before.</p>' if isinstance(left_out, int) and left_out else ""
        )
        states = {"state behind it": [f"<code>{escape(str(one.get('state') or '…'))}</code>" for one in steps]}
        ordered = _table(steps, rows, timed, states) if steps else '<p class="muted">Nothing came before it.</p>'
        shown.append(f'{before}{ordered}<p class="because">{_stuck(prefix)}</p>')
    more = len(_sequence(details.get("longest_prefixes"))) - len(shown)
    rest = f'<p class="muted small">{more} more orders are in verdict.json.</p>' if more > 0 else ""
    return "".join(shown) + rest


def _stuck(prefix: Mapping[str, Any]) -> str:
    would = " or ".join(f"<code>{escape(str(answer))}</code>" for answer in _sequence(prefix.get("would_have_told")))
    instead = f"would have had to return {would}" if would else "is impossible"
    return f"Here <code>{escape(str(prefix.get('stuck', '')))}</code> {instead}."


def _table(operations: Sequence[Reported], rows: Rows, timed: bool, more: Mapping[str, Sequence[str]]) -> str:
    header = ["operation", "what", *more, *(["from", "to"] if timed else []), "process"]
    cells = []
    for number, one in enumerate(operations[:OPERATIONS_SHOWN]):
        begun, ended = (rows.get(one[end], {}) if isinstance(one.get(end), int) else {} for end in _ENDS)
        times = [_time(begun), _time(ended)] if timed else []
        process = escape(str(begun.get("process", "")))
        cells.append([_span(one), _what(one), *(column[number] for column in more.values()), *times, process])
    return table(header, cells, numbers=(0, *range(2 + len(more), len(header))))


_ENDS = ("operation", "completed")


def _what(one: Reported) -> str:
    what = str(one.get("what", ""))
    unbroken = " class=nowrap" if len(what) <= UNBROKEN else ""
    return f"<code{unbroken}>{escape(what)}</code>"


def _span(one: Reported) -> str:
    """From which row to which, e.g. `7 – 10`; `9 – unknown`."""
    begun, ended = (one.get(end) for end in _ENDS)
    if not isinstance(begun, int):
        return ""
    return f"{begun:,} – {ended:,}" if isinstance(ended, int) else f'{begun:,} – <span class="muted">unknown</span>'


def _time(row: Mapping[str, Any]) -> str:
    return f"{row['time'] / 1e9:.6f} s" if "time" in row else ""


def _beyond(listed: Any, what: str) -> str:
    more = _count(listed) - len(_operations(listed))
    return f'<p class="muted small">{more:,} more {what}.</p>' if more > 0 else ""


def _count(listed: Any) -> int:
    count = listed.get("count") if isinstance(listed, Mapping) else None
    return count if isinstance(count, int) else 0


def _operations(listed: Any) -> list[Reported]:
    operations = listed.get("operations") if isinstance(listed, Mapping) else None
    return [one for one in _sequence(operations) if isinstance(one, Mapping)]


def _prefixes(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    prefixes = [one for one in _sequence(details.get("longest_prefixes")) if isinstance(one, Mapping)]
    return prefixes[:PREFIXES_SHOWN]


def _sequence(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []
