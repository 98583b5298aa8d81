"""The page and its smaller sections: HTML, each from data alone. Everything that comes from outside is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.printable import printable_data
from harness.record.run_directory import EVENTS, FAULTS, NODE_LOG, NODE_LOGS, USAGE, RunDirectory
from results.report.checker_statistics import LATENCIES_OF_OK, definitions
from results.report.escaped import escape
from results.report.figure import fault_colour
from results.report.measure import Measurements
from results.report.run_files import RunFiles
from results.report.table import duration_words, table
from results.report.witness import outcome_mark

FAULTS_SHOWN = 200
EVIDENCE_OPEN = 76
"""Longer words of evidence are folded."""
ERRORS_SHOWN = 60

NO_TIMES = "Times are absent or all the same, so nothing is said about latencies and rates."

_FIGURE_TAG = '<script type="application/json" id="figure">'


def document(title: str, sections: Iterable[str], *, css: str, scripts: Iterable[str]) -> str:
    """One HTML file that needs nothing from anywhere else."""
    body = "\n".join(section for section in sections if section)
    code = "\n".join(f"<script>{script}</script>" for script in scripts)
    return (
        "<!doctype html>\n"
        '<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{css}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{code}\n</body>\n</html>\n"
    )


def timeline(figure: Mapping[str, Any] | None, problem: str) -> str:
    """The chart, or why there is none."""
    if figure is None:
        words = escape(problem or "There is no history to draw.")
        return f'<section><h2>What happened when</h2><p class="muted">{words}</p></section>'
    data = json.dumps(printable_data(figure), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return (
        "<section><h2>What happened when</h2>"
        '<noscript><p class="muted">The chart needs JavaScript; the tables below do not.</p></noscript>'
        f'<div id="timeline"></div>{_FIGURE_TAG}{data}</script></section>'
    )


def operations(measured: Measurements | None) -> str:
    """Counts by kind and outcome, latencies of what succeeded, and which errors came."""
    if measured is None or not measured.counts:
        return ""
    rows = []
    for f, counts in measured.counts.items():
        latency = measured.latencies.get(f)
        figures = [counts.get(type_, 0) for type_ in ("ok", "fail", "info")]
        times = [duration_words(time) for time in (latency.median, latency.p99, latency.worst)] if latency else [""] * 3
        counted = [f"{count:,}" if count else '<span class="muted">–</span>' for count in figures]
        rows.append([escape(f), *counted, *(times if measured.timed else [])])
    latencies = ["median of ok", "p99 of ok", "worst of ok"] if measured.timed else []
    header = ["operation", "ok", "failed", "unknown", *latencies]
    errors = [
        [escape(f), outcome_mark(type_), escape(error), f"{count:,}"]
        for (f, type_, error), count in sorted(measured.errors.items(), key=lambda item: -item[1])[:ERRORS_SHOWN]
    ]
    html = table(header, rows, numbers=range(1, len(header)))
    html += f'<p class="muted small">{LATENCIES_OF_OK if measured.timed else NO_TIMES}</p>'
    if errors:
        inner = table(["operation", "outcome", "error", "count"], errors, numbers=(3,))
        html += f"<details><summary>Errors by kind</summary>{inner}</details>"
    return f"<section><h2>Operations</h2>{html}</section>"


def faults(run: RunFiles) -> str:
    """Every fault with what it did, read back from the world."""
    if not run.faults:
        return ""
    rows = []
    for fault in run.faults[:FAULTS_SHOWN]:
        stop = f"{fault.stop_ns / 1e9:.2f} s" if fault.is_stopped else '<span class="muted">never</span>'
        effect = _folded(fault.evidence) if fault.happened else f"<b>no effect</b> {_folded(fault.evidence)}"
        healing = f'<div class="muted">{_folded(fault.healing)}</div>' if fault.healing else ""
        dot = f'<span class="dot" style="--dot: var({fault_colour(fault.kind)})"></span>'
        kind = f'<span class="nowrap">{dot}{escape(fault.kind)}</span>'
        what = "<br>".join(escape(words) for words in (fault.shape, ", ".join(fault.aimed_at)) if words)
        rows.append([kind, what, f"{fault.start_ns / 1e9:.2f} s", stop, effect + healing])
    more = len(run.faults) - FAULTS_SHOWN
    rest = f'<p class="muted small">{more} more are in {FAULTS}.</p>' if more > 0 else ""
    header = ["fault", "what", "from", "to", "effect and healing"]
    return f"<section><h2>Faults</h2>{table(header, rows, numbers=(2, 3))}{rest}</section>"


def points(run: RunFiles) -> str:
    """Which of the moments that the system names were reached, and which faults struck there."""
    found = run.verdict.points if run.verdict else {}
    if not found:
        return ""
    never = [point for point, seen in found.items() if not seen["reached"]]
    reached = {point: seen for point, seen in found.items() if seen["reached"]}
    struck = [point for point, seen in reached.items() if seen["struck_by"]]
    rows = [
        [escape(point), f"{reached[point]['reached']:,}", escape("; ".join(reached[point]["struck_by"]))]
        for point in (*struck, *(point for point in reached if point not in struck))
    ]
    summary = f"{len(reached)} of {len(found)} points were reached, faults struck at {len(struck)} of them"
    shown = table(["point", "times", "struck by"], rows, numbers=(1,))
    html = f"<details><summary>{summary}</summary>{shown}</details>"
    if never:
        html += f'<p class="muted">Never reached: {escape(", ".join(never))}.</p>'
    return f"<section><h2>Points</h2>{html}</section>"


def usage(run: RunFiles) -> str:
    """What nodes' programs held of their machines, in the beginning and in the end."""
    found = run.verdict.usage if run.verdict else {}
    rows = [
        [
            escape(node),
            *(f"{bytes_ / 2**20:.1f}" for bytes_ in held["memory_bytes"]),
            *(f"{count:,}" for count in held["handles"]),
            f"{held['samples']:,}",
        ]
        for node, held in found.items()
    ]
    if not rows:
        return ""
    header = ["node", "MiB, first quarter", "MiB, last quarter", "open files, first", "open files, last", "samples"]
    words = f'<p class="muted small">Medians of quarters of the run; all samples are in {USAGE}.</p>'
    return f"<section><h2>Usage</h2>{table(header, rows, numbers=range(1, 6))}{words}</section>"


def nodes(run: RunFiles) -> str:
    """The nodes, with their logs where they lie beside the page."""
    if not run.nodes:
        return ""
    rows = []
    for node in run.nodes:
        folder = RunDirectory(run.directory).nodes / node
        logs = [name for name in (NODE_LOG, EVENTS, NODE_LOGS) if (folder / name).exists()]
        links = ", ".join(f'<a href="nodes/{escape(node)}/{name}">{name}</a>' for name in logs)
        rows.append([escape(node), links or '<span class="muted">no logs came home</span>'])
    return f"<section><h2>Nodes</h2>{table(['node', 'logs'], rows, numbers=())}</section>"


def circumstances(run: RunFiles) -> str:
    """The scenario, what the simulator drew for it, and the versions."""
    versions = run.verdict.versions if run.verdict else {}
    groups = [("Versions", versions or (run.record.versions if run.record else {}))]
    if run.record is not None:
        reported = {key: value for key, value in run.record.environment.items() if key not in ("regime", "reached")}
        scenario = {**run.record.scenario.to_json(), **reported}
        groups = [("Scenario", scenario), ("Drawn from the seed", run.record.regime), *groups]
    parts = [f"<details><summary>{title}</summary>{definitions(data)}</details>" for title, data in groups if data]
    return f"<section><h2>Scenario and versions</h2>{''.join(parts)}</section>" if parts else ""


def problems(words: Sequence[str]) -> str:
    """What could not be drawn."""
    return "".join(f'<section><p class="muted">{escape(line)}</p></section>' for line in words)


def _folded(words: str) -> str:
    if len(words) <= EVIDENCE_OPEN:
        return escape(words)
    cut = words[:EVIDENCE_OPEN].rpartition(" ")[0]
    return f"<details><summary>{escape(cut)} …</summary>{escape(words)}</details>"
