"""The page: sections of HTML, each from data alone. Everything that comes from outside is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from checkers.anomaly import Anomaly
from checkers.verdict import AnomalySummary, CheckerResult, Verdict, accepted
from harness.printable import printable_data
from harness.record.run_directory import EVENTS, NODE_LOG, RunDirectory
from harness.record.scenario import Scenario
from results.report.cycle import cycle_drawing
from results.report.escaped import escape
from results.report.figure import fault_colour
from results.report.measure import Measurements
from results.report.recovery import TOLD_HERE
from results.report.run_files import RunFiles
from results.report.surroundings import surroundings
from results.report.table import duration_words, table
from results.report.witness import happened, numbers_in, value_words
from results.verdict_file import as_accepted


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What the page shows of the history row by row."""

    rows: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """By index."""
    timed: bool = True
    """Whether their times mean anything."""


EXAMPLES_OPEN = 3
"""Examples of each anomaly that are shown at once; the others are folded."""
FAULTS_SHOWN = 200
EVIDENCE_OPEN = 76
"""Longer words of evidence are folded."""
WITNESSES_SHOWN = 24
STATISTICS_SHOWN = 60
ERRORS_SHOWN = 60
ITEMS_SHOWN = 30
"""Of a list among the statistics."""

LATENCIES_OF_OK = "Latencies are those of ok operations; failed ones and those of unknown outcome are not among them."
NO_TIMES = "Times are absent or all the same, so nothing is said about latencies and rates."

_OUTCOMES = ("invoke", "ok", "fail", "info")
_NO_VERDICT = "No verdict was reached."
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


def page_title(run: RunFiles) -> str:
    verdict = run.verdict.verdict.value if run.verdict else "no verdict"
    return f"{verdict}: {_title(run)}"


def _title(run: RunFiles) -> str:
    """The scenario of a run, or the history that was checked."""
    checking = run.verdict.checking if run.verdict else None
    history = Path(checking.history).name if checking else ""
    return scenario_title(run.record.scenario) if run.record else history or run.directory.name


def scenario_title(scenario: Scenario) -> str:
    parts = [f"{scenario.system} · {scenario.workload}", " + ".join(scenario.nemesis) or "no faults"]
    if scenario.mutant:
        parts.append(f"mutant {scenario.mutant}")
    return " · ".join(parts)


def head(run: RunFiles, measured: Measurements | None) -> str:
    """The verdict with its reasons, the figures that matter, the line that replays it."""
    verdict = run.verdict.verdict if run.verdict else Verdict.UNKNOWN
    word = run.verdict.verdict.value.upper() if run.verdict else "NO VERDICT"
    reasons = [*_found(run.verdict.checkers), *run.verdict.reasons] if run.verdict else [_NO_VERDICT]
    reasons += map(as_accepted, accepted(run.verdict.checkers)) if run.verdict else ()
    listed = "".join(f"<li>{escape(reason)}</li>" for reason in reasons)
    return (
        f'<header class="{verdict.value}">'
        f'<div class="verdict"><span class="badge">{word}</span>'
        f"<h1>{escape(_title(run))}</h1></div>"
        f'<div class="muted small">{escape(_circumstances(run))}</div>'
        + (f'<ul class="reasons">{listed}</ul>' if listed else "")
        + _facts(run, measured)
        + _commands(run)
        + "</header>"
    )


def anomalies(run: RunFiles, recorded: Recorded) -> str:
    """What broke, with the operations that witness it; what was legal here stands apart."""
    if run.verdict is None:
        return ""
    broken: list[tuple[str, str, AnomalySummary]] = []
    legal: list[tuple[str, str, AnomalySummary]] = []
    for checker, result in run.verdict.checkers.items():
        for name, summary in result.anomalies.items():
            if summary.count:
                (legal if summary.legal else broken).append((checker, name, summary))
    parts = [_anomaly(checker, name, summary, recorded) for checker, name, summary in broken]
    section = f"<section><h2>Broken promises</h2>{''.join(parts)}</section>" if parts else ""
    if legal:
        told = "".join(_legal(checker, name, summary, recorded) for checker, name, summary in legal)
        section += f"<section><h2>Legal losses</h2>{told}</section>"
    return section


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
        [escape(f), _type(type_), escape(error), f"{count:,}"]
        for (f, type_, error), count in sorted(measured.errors.items(), key=lambda item: -item[1])[:ERRORS_SHOWN]
    ]
    told = table(header, rows, numbers=range(1, len(header)))
    told += f'<p class="muted small">{LATENCIES_OF_OK if measured.timed else NO_TIMES}</p>'
    if errors:
        inner = table(["operation", "outcome", "error", "count"], errors, numbers=(3,))
        told += f"<details><summary>Errors by kind</summary>{inner}</details>"
    return f"<section><h2>Operations</h2>{told}</section>"


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
    rest = f'<p class="muted small">{more} more are in nemesis.jsonl.</p>' if more > 0 else ""
    header = ["fault", "what", "from", "to", "effect and healing"]
    return f"<section><h2>Faults</h2>{table(header, rows, numbers=(2, 3))}{rest}</section>"


def checkers(run: RunFiles, recorded: Recorded) -> str:
    if run.verdict is None or not run.verdict.checkers:
        return ""
    parts = [_checker(name, result, recorded.timed) for name, result in run.verdict.checkers.items()]
    return f"<section><h2>Checkers</h2>{''.join(parts)}</section>"


def nodes(run: RunFiles) -> str:
    """The nodes, with their logs where they lie beside the page."""
    if not run.nodes:
        return ""
    rows = []
    for node in run.nodes:
        logs = [name for name in (NODE_LOG, EVENTS) if (RunDirectory(run.directory).nodes / node / name).exists()]
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
    parts = [f"<details><summary>{title}</summary>{_definitions(data)}</details>" for title, data in groups if data]
    return f"<section><h2>Scenario and versions</h2>{''.join(parts)}</section>" if parts else ""


def problems(words: Sequence[str]) -> str:
    """What could not be drawn."""
    return "".join(f'<section><p class="muted">{escape(line)}</p></section>' for line in words)


def _found(results: Mapping[str, CheckerResult]) -> list[str]:
    """The anomalies with what they mean, broken promises first."""
    broken, legal = [], []
    for result in results.values():
        for name, summary in result.anomalies.items():
            told = f"{name} × {summary.count:,}"
            if summary.count and summary.legal:
                legal.append(f"{told}, legal here: {summary.legal}")
            elif summary.count:
                broken.append(f"{told}: {summary.meaning.says}" if summary.meaning else told)
    return [*broken, *legal]


def _circumstances(run: RunFiles) -> str:
    scenario = run.record.scenario if run.record else None
    parts = [scenario.environment, f"seed {scenario.seed}"] if scenario else []
    checking = run.verdict.checking if run.verdict else None
    if checking and checking.judged_as:
        parts += [checking.judged_as, checking.history]
    if checking:
        parts.append(f"checked by engine {checking.engine}")
    return " · ".join([*parts, run.directory.resolve().name])


def _facts(run: RunFiles, measured: Measurements | None) -> str:
    facts: list[tuple[str, str]] = []
    if measured is not None:
        done = {kind: sum(c.get(kind, 0) for c in measured.counts.values()) for kind in ("ok", "fail", "info")}
        facts += [("operations", f"{sum(done.values()):,}"), ("ok", f"{done['ok']:,}")]
        facts += [("failed", f"{done['fail']:,}"), ("unknown", f"{done['info']:,}")]
        facts.append(("recorded", _recorded(measured)))
    if run.faults:
        effective = sum(fault.happened for fault in run.faults)
        facts.append(("faults with effect", f"{effective} of {len(run.faults)}"))
    listed = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    return f'<dl class="facts">{listed}</dl>' if listed else ""


def _recorded(measured: Measurements) -> str:
    if not measured.timed:
        return f"{measured.rows:,} events, no times"
    return f"{measured.duration_s:,.1f} s" if measured.duration_s >= 1 else duration_words(measured.duration_s * 1000)


def _commands(run: RunFiles) -> str:
    """What runs it again, and what checks it again."""
    checking = run.verdict.checking if run.verdict else None
    lines = [run.record.replay] if run.record and run.record.replay else []
    lines += [checking.command] if checking else []
    return "".join(
        f'<div class="replay"><code>{escape(line)}</code><button data-copy="{escape(line)}">Copy</button></div>'
        for line in lines
    )


def _anomaly(checker: str, name: str, summary: AnomalySummary, recorded: Recorded) -> str:
    meaning = summary.meaning
    what = f'<p class="muted">{escape(meaning.says)} Usually: {escape(meaning.usually)}</p>' if meaning else ""
    shown = _examples(summary.examples[:EXAMPLES_OPEN], recorded)
    return f"{_anomaly_title(checker, name, summary)}{what}{shown}{_more(summary, EXAMPLES_OPEN, recorded)}"


def _anomaly_title(checker: str, name: str, summary: AnomalySummary) -> str:
    return f"<h3>{escape(name)} × {summary.count:,} <span class=muted>({escape(checker)})</span></h3>"


def _examples(examples: Iterable[Anomaly], recorded: Recorded) -> str:
    return "".join(_example(example, recorded, first=number == 0) for number, example in enumerate(examples))


def _more(summary: AnomalySummary, opened: int, recorded: Recorded) -> str:
    """The examples that are not shown at once, folded, and how many there are beside them."""
    folded = summary.examples[opened:]
    beyond = summary.count - len(summary.examples)
    rest = f'<p class="muted small">{beyond:,} more of the kind.</p>' if beyond > 0 and summary.examples else ""
    if not folded:
        return rest
    counted = "1 example" if len(folded) == 1 else f"{len(folded)} examples"
    title = f"{counted} more" if opened else counted
    return f"<details><summary>{title}</summary>{_examples(folded, recorded)}{rest}</details>"


def _example(example: Anomaly, recorded: Recorded, *, first: bool) -> str:
    key = f"<b>{escape(example.key)}</b> " if example.key and example.key not in example.because else ""
    about = numbers_in(example.details)
    witnesses = [_witness(index, recorded, about) for index in example.operations[:WITNESSES_SHOWN]]
    steps = example.details.get("steps")
    lines = [str(step) for step in steps] if isinstance(steps, list) and steps else [example.because]
    told = f'<p class="because">{key}{"<br>".join(map(escape, lines))}</p>{_drawing(example)}'
    if witnesses:
        at = ["at"] if recorded.timed else []
        header = ["operation", *at, "process", "what", "value", "node"]
        told += table(header, witnesses, numbers=range(2 + len(at)))
    return told + surroundings(example.details, recorded.rows, timed=recorded.timed, opened=first)


def _drawing(example: Anomaly) -> str:
    drawing, case = cycle_drawing(example.details), example.details.get("case")
    return f'<p class="muted small">Of these, case {escape(str(case))}:</p>{drawing}' if drawing and case else drawing


def _witness(index: int, recorded: Recorded, about: frozenset[int]) -> list[str]:
    row = recorded.rows.get(index)
    empty = [""] if recorded.timed else []
    if row is None:
        return [str(index), *empty, "", '<span class="muted">not in the history</span>', "", ""]
    what = f'<span class="nowrap">{escape(str(row["f"]))} &nbsp;{_type(str(row["type"]))}</span>'
    if row.get("error"):
        what += f' <span class="muted">({escape(str(row["error"]))})</span>'
    place = ", ".join(escape(str(row[name])) for name in ("node", "key") if row.get(name)).replace(" ", "&nbsp;")
    value = f"<code>{escape(value_words(row.get('value'), about, completed=row['type'] == 'ok'))}</code>"
    at = [f"{row['time'] / 1e9:.6f} s"] if recorded.timed else []
    return [f"{index:,}", *at, str(row["process"]), what, value, place]


def _legal(checker: str, name: str, summary: AnomalySummary, recorded: Recorded) -> str:
    return f"{_anomaly_title(checker, name, summary)}<p>{escape(summary.legal)}</p>{_more(summary, 0, recorded)}"


def _checker(name: str, result: CheckerResult, timed: bool) -> str:
    verdict = result.verdict.value
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in result.reasons)
    told = f'<h3 class="{verdict}">{escape(name)} <span class="badge plain">{verdict}</span></h3>'
    if reasons:
        told += f'<ul class="reasons {verdict}">{reasons}</ul>'
    statistics = {key: value for key, value in result.statistics.items() if key not in TOLD_HERE}
    tables = {key: value for key, value in statistics.items() if _is_table(value)}
    rest = {key: value for key, value in statistics.items() if key not in tables}
    return told + (_definitions(rest) if rest else "") + (_figures(tables.values(), timed) if tables else "")


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping) and bool(value) and all(isinstance(row, Mapping) for row in value.values())


def _figures(tables: Iterable[Mapping[str, Mapping[str, Any]]], timed: bool) -> str:
    """Tables with the same kind of rows, side by side as one; nanoseconds are told as times."""
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


def _definitions(data: Mapping[str, Any]) -> str:
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


def _folded(words: str) -> str:
    if len(words) <= EVIDENCE_OPEN:
        return escape(words)
    cut = words[:EVIDENCE_OPEN].rpartition(" ")[0]
    return f"<details><summary>{escape(cut)} …</summary>{escape(words)}</details>"


def _type(type_: str) -> str:
    return f'<span class="nowrap"><span class="dot t-{escape(type_)}"></span>{escape(happened(type_))}</span>'
