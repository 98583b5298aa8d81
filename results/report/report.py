"""Writes `report.html` from what lies in a run directory, and from nothing else.

Self-contained: Plotly is inside, no network is asked. A part that cannot be drawn says so on the page; a page
that cannot be written says so to the caller. Neither ever touches the verdict, which is on disk before.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import TypeVar

from harness.record.history.named_values import names_of
from harness.record.run_directory import RunDirectory
from results.output import write
from results.report import page
from results.report.anomalies import WITNESSES_SHOWN, ShownRows, anomalies
from results.report.checker_statistics import checkers
from results.report.figure import figure
from results.report.head import head, page_title
from results.report.measure import measure, rows_at
from results.report.recovery import availability
from results.report.run_files import RunFiles, read_run
from results.report.surroundings import rows_wanted

T = TypeVar("T")


def write_report(directory: Path) -> str | None:
    """Write the page; returns what went wrong, in words, or None."""
    problems: list[str] = []
    try:
        write(RunDirectory(directory).report, [render(directory, problems)])
    except Exception as error:  # noqa: BLE001  # whatever a page fails with, the verdict stands without it
        problems.append(f"the report could not be written: {_in_words(error)}")
    return "; ".join(problems) or None


def render(directory: Path, problems: list[str]) -> str:
    """The page as text; what could not be drawn is appended to `problems` and shown on the page."""
    path = RunDirectory(directory).history
    history = path if path.exists() else None
    measured = _attempt(lambda: measure(path), "the history could not be read", problems) if history else None
    run = read_run(directory, measured.duration_s if measured else 0.0, history)
    drawn = (
        _attempt(lambda: figure(measured, run.faults, run.roles, run.nodes), "the chart could not be drawn", problems)
        if measured is not None and measured.rows
        else None
    )
    rows = ShownRows()
    if measured is not None:
        found = _attempt(lambda: rows_at(path, _rows_shown(run)), "the witnesses could not be read", problems)
        names = names_of(path)
        shown = {index: {**row, "value": names.with_names(row.get("value"))} for index, row in (found or {}).items()}
        rows = ShownRows(by_index=shown, timed=measured.timed)
    sections = [
        head(run, measured),
        page.problems(problems),
        page.timeline(drawn, problems[0] if problems else "The history is empty." if measured else ""),
        anomalies(run, rows),
        page.operations(measured),
        availability(run),
        page.faults(run),
        page.points(run),
        checkers(run, timed=rows.timed),
        page.usage(run),
        page.nodes(run),
        page.circumstances(run),
    ]
    return page.document(page_title(run), sections, css=_own("page.css"), scripts=_scripts(drawn is not None))


def _attempt(draw: Callable[[], T], what: str, problems: list[str]) -> T | None:
    try:
        return draw()
    except Exception as error:  # noqa: BLE001  # one part that cannot be drawn must not take the others along
        problems.append(f"{what}: {_in_words(error)}")
        return None


def _rows_shown(run: RunFiles) -> list[int]:
    """Indices of witnesses, and of what surrounds them."""
    if run.verdict is None or run.history is None:
        return []
    return [
        index
        for result in run.verdict.checkers.values()
        for summary in result.anomalies.values()
        for example in summary.examples
        for index in (*example.operations[:WITNESSES_SHOWN], *rows_wanted(example.details))
    ]


def _scripts(charts: bool) -> list[str]:
    if not charts:
        return [_own("page.js")]
    from plotly.offline import get_plotlyjs

    return [get_plotlyjs(), _own("page.js")]


def _own(name: str) -> str:
    return (resources.files("results.report") / name).read_text(encoding="utf-8")


def _in_words(error: Exception) -> str:
    words = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
