"""`stormproof check`: stored or foreign histories judged again, also those of runs that were killed."""

from __future__ import annotations

import dataclasses
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from checkers.plan import CheckRequest
from checkers.run import check_history
from checkers.statistics import Statistics
from checkers.verdict import Verdict, found, merge
from harness.cli import registry
from harness.cli.console import Console
from harness.cli.exit_code import ExitCode, combined, exit_code_of
from harness.cli.java import require_java
from harness.cli.options import Execution, console_of, example, execution_options, output_options
from harness.cli.outcome_text import as_json as outcome_as_json
from harness.cli.outcome_text import tell_where, verdict_lines
from harness.cli.pipeline import check_run, make_engine, versions
from harness.errors import HarnessError, UsageError
from harness.history import MalformedHistory, close_torn
from harness.scenario import SettingValue
from results.report import write_report
from results.verdict_file import VerdictFile, write_verdict

MOST_AT_ONCE = 1_000
"""Verdicts over histories of one name in one second."""
HISTORY_SUFFIXES = (".parquet", ".arrows")

EXAMPLES = """
stormproof check runs/latest
stormproof check runs/latest --engine inprocess --json
stormproof check my-history.parquet --workload register
"""


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """How a history that came without its run is to be judged."""

    workload: str | None
    settings: dict[str, SettingValue]


@click.command("check", epilog=example(EXAMPLES))
@click.argument("paths", metavar="PATH…", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--workload", metavar="W", help="What a foreign history (.parquet, .arrows) is a history of.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="A setting of that workload.")
@execution_options
@output_options
def command(
    paths: tuple[Path, ...],
    workload: str | None,
    settings: tuple[str, ...],
    runs: Path,
    engine: str,
    master: str,
    as_json: bool,
    progress: bool | None,
) -> int:
    """Check each PATH again: a run directory, also of a run that was killed, or a history with --workload.

    Over several: invalid outranks all, then a failed harness, then unknown.
    """
    console = console_of(as_json, progress)
    execution = Execution(runs=runs, engine=engine, master=master)
    foreign = Foreign(workload=workload, settings=dict(registry.parse_setting(text) for text in settings))
    require_java(engine)
    checked = [_check(path, foreign, execution, console) for path in paths]
    code = combined(entry["exit_code"] for entry in checked)
    if len(paths) > 1:
        console.say(f"all       {code.name.replace('_', ' ')}")
    console.result(checked[0] if len(paths) == 1 else {"exit_code": int(code), "checks": checked})
    return code


def _check(path: Path, foreign: Foreign, execution: Execution, console: Console) -> dict[str, Any]:
    console.say(f"history   {path}")
    try:
        if path.suffix in HISTORY_SUFFIXES and not path.is_dir():
            return _check_history(path, foreign, execution, console)
        return _check_directory(path, execution, console)
    except (MalformedHistory, UsageError) as error:
        return _failed(path, ExitCode.WRONG_USAGE, error)
    except HarnessError as error:
        return _failed(path, ExitCode.HARNESS_FAILED, error)


def _failed(path: Path, code: ExitCode, error: Exception) -> dict[str, Any]:
    print(f"stormproof: {error}", file=sys.stderr, flush=True)
    return {"path": str(path), "exit_code": int(code), "error": str(error)}


def _check_directory(path: Path, execution: Execution, console: Console) -> dict[str, Any]:
    if not path.is_dir():
        raise UsageError(f"{path} is no run directory and no history (.parquet, .arrows); stormproof list shows runs")
    outcome = check_run(path, engine=execution.engine, master=execution.master, progress=console.progress)
    for line in verdict_lines(outcome.verdict, outcome.reasons, outcome.results):
        console.say(line)
    tell_where(outcome, console)
    return {"path": str(path), **outcome_as_json(outcome)}


def _check_history(path: Path, foreign: Foreign, execution: Execution, console: Console) -> dict[str, Any]:
    """A history without its run: nothing is known of faults, so no loss is legal and none is demanded."""
    if foreign.workload is None:
        known = ", ".join(registry.names("workloads"))
        raise UsageError(f"{path} is a history without its run: say what it is one of with --workload ({known})")
    workload = registry.workload(foreign.workload)
    unknown = sorted(set(foreign.settings) - {field.name for field in dataclasses.fields(workload.settings_type)})
    if unknown:
        raise UsageError(
            f"workload {foreign.workload} has no setting {unknown[0]!r}; stormproof list shows its settings"
        )
    checkers = {
        **workload.checkers(registry.typed_settings(workload.settings_type, foreign.settings)),
        "statistics": Statistics(),
    }
    if not path.exists():
        raise UsageError(f"there is no history {path}")
    reasons: list[str] = []
    if path.suffix == ".arrows":
        recovered = close_torn(path)
        reasons += [f"a torn history: {recovered}"] if recovered.dropped_bytes else []
        path = recovered.parquet
    console.progress(f"checking {path} ({execution.engine})")
    request = CheckRequest(history=path)
    results = check_history(request, checkers, make_engine(execution.engine, execution.master))
    operations = results["statistics"].statistics.get("operations", {})
    if not any(operations.get(f, {}).get("ok") for f in workload.required_ok):
        asked = " or ".join(sorted(workload.required_ok))
        reasons.append(f"too little happened: no {asked} succeeded; is this a history of {foreign.workload}?")
    verdict = merge([*(result.verdict for result in results.values()), *(Verdict.UNKNOWN for _ in reasons)])
    for result in results.values():
        reasons += [reason for reason in result.reasons if reason not in reasons]
    directory = _folder_for(path, execution.runs)
    content = VerdictFile(
        verdict=verdict, reasons=tuple(reasons), checkers=results, operations=operations, versions=versions()
    )
    write_verdict(directory, content)
    problem = write_report(directory)
    for line in verdict_lines(verdict, tuple(reasons), results):
        console.say(line)
    console.say(f"report    {directory / 'report.html'}")
    if problem:
        print(f"stormproof: {problem}", file=sys.stderr, flush=True)
    return {
        "path": str(path),
        "verdict": verdict.value,
        "exit_code": int(exit_code_of(verdict)),
        "reasons": [*found(results), *reasons],
        "directory": str(directory),
        "anomalies": {
            checker: {name: summary.count for name, summary in sorted(result.anomalies.items())}
            for checker, result in sorted(results.items())
        },
    }


def _folder_for(history: Path, runs: Path) -> Path:
    """A fresh folder for the verdict, with a link to the history. Raises UsageError."""
    try:
        for attempt in range(1, MOST_AT_ONCE):
            name = f"{history.stem}-{datetime.now(UTC):%Y%m%dT%H%M%S}" + (f"-{attempt}" if attempt > 1 else "")
            directory = runs / "checked" / name
            try:
                directory.mkdir(parents=True)
            except FileExistsError:
                continue
            (directory / "history.parquet").symlink_to(history.resolve())
            return directory
    except OSError as error:
        raise UsageError(
            f"cannot write into {runs}: {error.strerror or error}; make it writable, "
            "or choose another place with --runs"
        ) from error
    raise HarnessError(f"{MOST_AT_ONCE} verdicts over histories called {history.stem} were reached in one second")
