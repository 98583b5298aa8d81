"""The section of checkers: the verdict, reasons and statistics of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from checkers.api.verdict import CheckerResult
from results.report.escaped import escape
from results.report.recovery import SHOWN_WITH_AVAILABILITY
from results.report.run_files import RunFiles
from results.report.table import duration_words, table

STATISTICS_SHOWN = 60
ITEMS_SHOWN = 30
"""The most items of a list among the statistics that are shown."""

LATENCIES_OF_OK = "Latencies are those of ok operations; failed ones and those of unknown outcome are not among them."

_OUTCOMES = ("invoke", "ok", "fail", "info")


def checkers(run: RunFiles, *, timed: bool) -> str:
    if run.verdict is None or not run.verdict.checkers:
        return ""
    parts = [_checker(name, result, timed) for name, result in run.verdict.checkers.items()]
    return f"<section><h2>Checkers</h2>{''.join(parts)}</section>"


def _checker(name: str, result: CheckerResult, timed: bool) -> str:
    verdict = result.verdict.value
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in result.reasons)
    html = f'<h3 class="{verdict}">{escape(name)} <span class="badge plain">{verdict}</span></h3>'
    if reasons:
        html += f'<ul class="reasons {verdict}">{reasons}</ul>'
    statistics = {key: value for key, value in result.statistics.items() if key not in SHOWN_WITH_AVAILABILITY}
    tables = {key: value for key, value in statistics.items() if _is_table(value)}
    rest = {key: value for key, value in statistics.items() if key not in tables}
    return html + (definitions(rest) if rest else "") + (_figures(tables.values(), timed) if tables else "")


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping) and bool(value) and all(isinstance(row, Mapping) for row in value.values())


def _figures(tables: Iterable[Mapping[str, Mapping[str, Any]]], timed: bool) -> str:
    """Tables with the same kind of rows, side by side as one; nanoseconds become times."""
    rows: dict[str, dict[str, Any]] = {}
    columns: dict[str, None] = {}
    for part in tables:
        for name, row in part.items():
            rows.setdefault(name, {}).update(row)
            columns |= dict.fromkeys(name for name in row if timed or not name.endswith("_ns"))
    ordered = sorted(columns, key=lambda name: _OUTCOMES.index(name) if name in _OUTCOMES else len(_OUTCOMES))
    header = ["", *(name.removesuffix("_ns").replace("_", " ") for name in ordered)]
    cells = [[escape(name), *(_figure(column, row.get(column)) for column in ordered)] for name, row in rows.items()]
    note = f'<p class="muted small">{LATENCIES_OF_OK}</p>' if any(name.endswith("_ns") for name in columns) else ""
    return table(header, cells, numbers=range(1, len(header))) + note


def _figure(column: str, value: object) -> str:
    if value is None:
        return '<span class="muted">–</span>'
    if isinstance(value, (int, float)):
        return duration_words(value / 1e6) if column.endswith("_ns") else f"{value:,}"
    return escape(str(value))


def definitions(data: Mapping[str, Any]) -> str:
    flat = list(_flat(data))[:STATISTICS_SHOWN]
    listed = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in flat)
    return f'<dl class="facts plain">{listed}</dl>'


def _flat(data: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    for key, value in data.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name} › ")
        elif isinstance(value, (list, tuple)):
            yield name, _listed(value)
        elif isinstance(value, bool) or value is None:
            yield name, {True: "yes", False: "no", None: "–"}[value]
        elif isinstance(value, (int, float)):
            yield name, f"{value:,}" if isinstance(value, int) and "seed" not in name else f"{value:g}"
        else:
            yield name, str(value)


def _listed(items: Sequence[object]) -> str:
    more = len(items) - ITEMS_SHOWN
    shown = [str(item) for item in items[:ITEMS_SHOWN]] + ([f"… {more:,} more"] if more > 0 else [])
    return ", ".join(shown) or "none"
