"""The sections of anomalies: what broke, with the operations that show it, and what was legal in this configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import AnomalySummary
from results.report.cycle import cycle_drawing
from results.report.escaped import escape
from results.report.run_files import RunFiles
from results.report.surroundings import surroundings
from results.report.table import table
from results.report.witness import numbers_in, outcome_mark, value_words

EXAMPLES_OPEN = 3
"""Examples of each anomaly that are shown at once; the others are folded."""
WITNESSES_SHOWN = 24


@dataclass(frozen=True, kw_only=True)
class ShownRows:
    """What the page shows of the history row by row."""

    by_index: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    timed: bool = True
    """Whether their times mean anything."""


def anomalies(run: RunFiles, rows: ShownRows) -> str:
    """What broke, with the operations that witness it; what was legal here stands apart."""
    if run.verdict is None:
        return ""
    broken: list[tuple[str, str, AnomalySummary]] = []
    legal: list[tuple[str, str, AnomalySummary]] = []
    for checker, result in run.verdict.checkers.items():
        for name, summary in result.found():
            (legal if summary.legal else broken).append((checker, name, summary))
    parts = [_anomaly(checker, name, summary, rows) for checker, name, summary in broken]
    section = f"<section><h2>Broken promises</h2>{''.join(parts)}</section>" if parts else ""
    if legal:
        html = "".join(_legal(checker, name, summary, rows) for checker, name, summary in legal)
        section += f"<section><h2>Legal losses</h2>{html}</section>"
    return section


def _anomaly(checker: str, name: str, summary: AnomalySummary, rows: ShownRows) -> str:
    meaning = summary.meaning
    what = f'<p class="muted">{escape(meaning.says)} Usually: {escape(meaning.usually)}</p>' if meaning else ""
    shown = _examples(summary.examples[:EXAMPLES_OPEN], rows)
    return f"{_anomaly_title(checker, name, summary)}{what}{shown}{_more(summary, EXAMPLES_OPEN, rows)}"


def _anomaly_title(checker: str, name: str, summary: AnomalySummary) -> str:
    return f"<h3>{escape(name)} × {summary.count:,} <span class=muted>({escape(checker)})</span></h3>"


def _examples(examples: Iterable[Anomaly], rows: ShownRows) -> str:
    return "".join(_example(example, rows, first=number == 0) for number, example in enumerate(examples))


def _more(summary: AnomalySummary, opened: int, rows: ShownRows) -> str:
    """The examples that are not shown at once, folded, and how many there are beside them."""
    folded = summary.examples[opened:]
    beyond = summary.count - len(summary.examples)
    rest = f'<p class="muted small">{beyond:,} more of the kind.</p>' if beyond > 0 and summary.examples else ""
    if not folded:
        return rest
    counted = "1 example" if len(folded) == 1 else f"{len(folded)} examples"
    title = f"{counted} more" if opened else counted
    return f"<details><summary>{title}</summary>{_examples(folded, rows)}{rest}</details>"


def _example(example: Anomaly, rows: ShownRows, *, first: bool) -> str:
    key = f"<b>{escape(example.key)}</b> " if example.key and example.key not in example.because else ""
    about = numbers_in(example.details)
    witnesses = [_witness(index, rows, about) for index in example.operations[:WITNESSES_SHOWN]]
    steps = example.details.get("steps")
    lines = [str(step) for step in steps] if isinstance(steps, list) and steps else [example.because]
    html = f'<p class="because">{key}{"<br>".join(map(escape, lines))}</p>{_drawing(example)}'
    if witnesses:
        at = ["at"] if rows.timed else []
        header = ["operation", *at, "process", "what", "value", "node"]
        html += table(header, witnesses, numbers=range(2 + len(at)))
    return html + surroundings(example.details, rows.by_index, timed=rows.timed, opened=first)


def _drawing(example: Anomaly) -> str:
    drawing, case = cycle_drawing(example.details), example.details.get("case")
    return f'<p class="muted small">Of these, case {escape(str(case))}:</p>{drawing}' if drawing and case else drawing


def _witness(index: int, rows: ShownRows, about: frozenset[int]) -> list[str]:
    row = rows.by_index.get(index)
    empty = [""] if rows.timed else []
    if row is None:
        return [str(index), *empty, "", '<span class="muted">not in the history</span>', "", ""]
    what = f'<span class="nowrap">{escape(str(row["f"]))} &nbsp;{outcome_mark(str(row["type"]))}</span>'
    if row.get("error"):
        what += f' <span class="muted">({escape(str(row["error"]))})</span>'
    place = ", ".join(escape(str(row[name])) for name in ("node", "key") if row.get(name)).replace(" ", "&nbsp;")
    value = f"<code>{escape(value_words(row.get('value'), about, completed=row['type'] == 'ok'))}</code>"
    at = [f"{row['time'] / 1e9:.6f} s"] if rows.timed else []
    return [f"{index:,}", *at, str(row["process"]), what, value, place]


def _legal(checker: str, name: str, summary: AnomalySummary, rows: ShownRows) -> str:
    return f"{_anomaly_title(checker, name, summary)}<p>{escape(summary.legal)}</p>{_more(summary, 0, rows)}"
