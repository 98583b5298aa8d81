"""The head of the page: the verdict with its reasons, the figures that matter, the commands that repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from checkers.api.verdict import CheckerResult, Verdict, accepted
from harness.record.scenario import Scenario
from results.report.escaped import escape
from results.report.measure import Measurements
from results.report.run_files import RunFiles
from results.report.table import duration_words
from results.verdict_file import as_accepted

_NO_VERDICT = "No verdict was reached."


def page_title(run: RunFiles) -> str:
    verdict = run.verdict.verdict.value if run.verdict else "no verdict"
    return f"{verdict}: {_title(run)}"


def _title(run: RunFiles) -> str:
    """The scenario of a run, or the history that was checked."""
    checking = run.verdict.checking if run.verdict else None
    history = Path(checking.history).name if checking else ""
    return scenario_title(run.record.scenario) if run.record else history or run.directory.name


def scenario_title(scenario: Scenario) -> str:
    parts = [f"{scenario.system} · {scenario.workload}", scenario.faults_in_words(" + ")]
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
        + _passed_over(run)
        + _facts(run, measured)
        + _commands(run)
        + "</header>"
    )


def _found(results: Mapping[str, CheckerResult]) -> list[str]:
    """The anomalies with what they mean, broken promises first."""
    broken, legal = [], []
    for result in results.values():
        for name, summary in result.found():
            counted = f"{name} × {summary.count:,}"
            if summary.legal:
                legal.append(f"{counted}, legal here: {summary.legal}")
            else:
                broken.append(f"{counted}: {summary.meaning.says}" if summary.meaning else counted)
    return [*broken, *legal]


def _passed_over(run: RunFiles) -> str:
    parts = run.verdict.passed_over if run.verdict else ()
    return f'<p class="muted small">Passed over: {escape(", ".join(parts))}.</p>' if parts else ""


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
