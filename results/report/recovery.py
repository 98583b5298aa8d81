"""The section on availability: how long clients were refused, by kind of operation and by fault, and what was lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from results.report.escaped import escape
from results.report.run_files import RunFiles
from results.report.table import duration_words, table

FAULTS_OPEN = 4
"""More faults than these are folded."""

SHOWN_WITH_AVAILABILITY = ("recovery", "faults", "data_at_risk")
"""Statistics of checkers that this section shows."""

_LENGTHS = ("p50_ns", "p90_ns", "max_ns")
_LENGTH_NAMES = ("median", "p90", "worst")


def availability(run: RunFiles) -> str:
    """Nothing where no checker measured it."""
    if run.verdict is None:
        return ""
    measured = run.verdict.checkers.get("availability")
    at_risk = [row for result in run.verdict.checkers.values() for row in result.statistics.get("data_at_risk", ())]
    parts = []
    if measured is not None and measured.statistics.get("recovery"):
        parts.append(_lasting(measured.statistics))
        parts.append(_recovery(measured.statistics["recovery"]))
        parts.append(_by_fault(measured.statistics.get("faults", ())))
    if at_risk:
        parts.append(_data_at_risk(at_risk))
    return f"<section><h2>Availability</h2>{''.join(parts)}</section>" if parts else ""


def _lasting(statistics: Mapping[str, Any]) -> str:
    return (
        '<p class="muted">An outage goes from the first failed operation to the first success that lasts: '
        f"{statistics['lasting_successes']} in a row, and no failure within {statistics['lasting_window_s']:g} s.</p>"
    )


def _recovery(rows: Mapping[str, Mapping[str, Any]]) -> str:
    cells = [
        [
            escape(what),
            f"{row['streams']:,}",
            *_outages(row),
            f"{row['without_service']:.2%}",
            f"{row['worst']:.2%}",
        ]
        for what, row in rows.items()
    ]
    header = ["", "watched", "outages", *_LENGTH_NAMES, "unfinished", "time without service", "of the worst"]
    return table(header, cells, numbers=range(1, len(header)))


def _by_fault(faults: Sequence[Mapping[str, Any]]) -> str:
    cells = [
        [*(_fault(fault) if first else ("", "")), escape(what), *_outages(row)]
        for fault in faults
        for first, (what, row) in zip(
            (True, *[False] * len(fault["recovery"])), fault["recovery"].items(), strict=False
        )
    ]
    if not cells:
        return ""
    header = ["fault", "from", "operations", "outages", *_LENGTH_NAMES, "unfinished"]
    shown = table(header, cells, numbers=(1, *range(3, len(header))))
    if len(faults) <= FAULTS_OPEN:
        return f"<h3>By fault</h3>{shown}"
    return f"<details><summary>By fault ({len(faults)})</summary>{shown}</details>"


def _data_at_risk(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = [
        [
            *_fault(row),
            f"{row['lost']:,}",
            duration_words(row["reach_ns"] / 1e6) if "reach_ns" in row else '<span class="muted">–</span>',
            duration_words(row["span_ns"] / 1e6),
        ]
        for row in rows
    ]
    header = ["fault", "from", "acknowledged and lost", "reaches back", "over"]
    return f"<h3>Data at risk</h3>{table(header, cells, numbers=range(1, len(header)))}"


def _fault(row: Mapping[str, Any]) -> tuple[str, str]:
    start_ns = row.get("start_ns")
    return escape(str(row["fault"])), "" if start_ns is None else f"{start_ns / 1e9:.2f} s"


def _outages(row: Mapping[str, Any]) -> list[str]:
    lengths = [duration_words(row[name] / 1e6) if name in row else '<span class="muted">–</span>' for name in _LENGTHS]
    unfinished = f"{row['unfinished']:,}" if row["unfinished"] else '<span class="muted">–</span>'
    return [f"{row['outages']:,}", *lengths, unfinished]
