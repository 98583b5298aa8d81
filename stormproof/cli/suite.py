"""`stormproof suite`: many scenarios, one verdict each and one for all, and one `junit.xml`."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from harness.environments.kind import EnvironmentKind
from harness.errors import HarnessError, UsageError
from harness.lifetime.interruption import last_words
from harness.progress import Moment, Progress, Remark
from harness.record.run_directory import JUNIT, require_writable_directory
from results.junit import junit_xml
from stormproof.cli import suite_jobs
from stormproof.cli.candidates import one_or_a_file, suites
from stormproof.cli.console import Console, remark, remarks_alone
from stormproof.cli.exit_code import ExitCode, combined
from stormproof.cli.options import (
    capture_option,
    checking_options,
    console_of,
    example,
    output_options,
    vacuity_option,
)
from stormproof.cli.outcome_text import title, tone_of
from stormproof.cli.suite_result import Result
from stormproof.session import registry
from stormproof.session.engines import CheckOptions, require_engine
from stormproof.session.output_file import require_folder, require_writable, write
from stormproof.session.run import run_scenario
from stormproof.session.suite_file import Row, Suite, load_suite

EXAMPLES = """
stormproof suite smoke
stormproof suite nightly --jobs 4 --engine inprocess
stormproof suite my-suite.toml --junit build/junit.xml
stormproof suite real --runs runs/real
"""


@click.command("suite", epilog=example(EXAMPLES))
@click.argument("file", metavar="FILE.toml", shell_complete=one_or_a_file(suites))
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, metavar="J", help="How many at once.")
@click.option(
    "--junit",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Where junit.xml is written; - is standard output.  [default: under --runs]",
)
@click.option(
    "--inventory",
    type=click.Path(),
    default="",
    metavar="FILE",
    help="The machines that nodes run on, a TOML file; for scenarios whose environment is ssh.",
)
@capture_option
@vacuity_option
@checking_options
@output_options
def command(
    file: str,
    jobs: int,
    junit: Path | None,
    inventory: str,
    capture: bool,
    runs: Path,
    check_options: CheckOptions,
    as_json: bool,
    progress: bool | None,
) -> int:
    """Run the scenarios of FILE.toml, or of a shipped suite by its name: smoke, nightly, soak, real; - is standard
    input.

    Invalid outranks all, then a failed harness, then unknown. A scenario that comes out as its suite expects counts as
    valid; one that passes where it was expected not to counts as unknown.
    """
    suite = load_suite(file)
    try:
        suite = _on_machines(suite, inventory, jobs)
        suite = _capturing(suite) if capture else suite
        _refuse_wrong(suite)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None
    require_writable_directory(runs)
    console = console_of(as_json, progress, file=junit)
    console.say(f"suite     {suite.name}: {len(suite.rows)} scenarios")
    require_engine(check_options.engine, check_options.master)
    report = junit or runs / "suites" / f"{suite.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}" / JUNIT
    require_folder(report)
    require_writable(report)
    work = partial(run_one, runs=runs, check_options=check_options)
    results = run_suite(suite, work, jobs, console)
    try:
        write(report, [junit_xml(suite.name, [result.case() for result in results])])
    except (HarnessError, UsageError) as error:
        remark(str(error))
        return combined([_tell(suite, results, None, console), ExitCode.HARNESS_FAILED])
    return _tell(suite, results, report, console)


def run_suite(suite: Suite, work: Callable[..., Result], jobs: int, console: Console) -> list[Result]:
    """All results, in the suite's order; a scenario whose harness fails does not stop the others."""
    results = []
    total = len(suite.rows)
    if jobs == 1:
        for position, row in enumerate(suite.rows, 1):
            console.progress(f"[{position}/{total}] {title(row.scenario)}")
            results.append(work(row, progress=_moments(console)))
            results[-1].tell(console)
            last_words("suite", f"{position} of {total} scenarios had ended")
        return results
    futures = suite_jobs.each(work, suite.rows, jobs)
    for row, future in zip(suite.rows, futures, strict=True):
        results.append(_awaited(row, future))
        results[-1].tell(console)
        last_words("suite", f"{len(results)} of {total} scenarios had ended")
    return results


def run_one(row: Row, runs: Path, check_options: CheckOptions, progress: Progress = remarks_alone) -> Result:
    """One scenario; a failure of the harness becomes a result."""
    started = time.monotonic()
    try:
        outcome = run_scenario(row.scenario, runs=runs, options=check_options, progress=progress)
    except Exception as error:  # noqa: BLE001  # one scenario's failure, named in the results, spares the others
        return Result.of_failure(row, f"{type(error).__name__}: {error}", time.monotonic() - started)
    return Result.of(row, outcome, time.monotonic() - started)


def _on_machines(suite: Suite, inventory: str, jobs: int) -> Suite:
    """The suite with this inventory for its scenarios that run on machines. Raises UsageError."""
    if not inventory:
        return suite
    rows = _rows_where(suite, lambda kind: kind.takes_inventory, inventory=inventory)
    if not any(row.scenario.inventory for row in rows):
        raise UsageError("no scenario runs on machines, which --inventory names; leave it out")
    if jobs > 1:
        raise UsageError(f"machines are used by one run at a time, got --jobs {jobs}; leave it out with --inventory")
    return replace(suite, rows=rows)


def _capturing(suite: Suite) -> Suite:
    """The suite with packets captured in all scenarios that have packets. Raises UsageError."""
    rows = _rows_where(suite, lambda kind: kind.has_packets, capture=True)
    if not any(row.scenario.capture for row in rows):
        raise UsageError("no scenario runs where packets can be captured; leave --capture out")
    return replace(suite, rows=rows)


def _rows_where(suite: Suite, fits: Callable[[EnvironmentKind], bool], **changes: Any) -> tuple[Row, ...]:
    """All rows, those with these changes of their scenarios whose kind of environment fits."""
    return tuple(
        replace(row, scenario=replace(row.scenario, **changes))
        if fits(registry.environment(row.scenario.environment))
        else row
        for row in suite.rows
    )


def _refuse_wrong(suite: Suite) -> None:
    for scenario in suite.scenarios:
        registry.environment_of(scenario, registry.resolve(scenario))


def _awaited(row: Row, future: Future[Result]) -> Result:
    try:
        return future.result()
    except (BrokenExecutor, HarnessError) as error:
        return Result.of_failure(row, f"its process died: {error}")


def _tell(suite: Suite, results: list[Result], report: Path | None, console: Console) -> int:
    """`report` is None where it could not be written."""
    code = combined(result.exit_code for result in results)
    counts: dict[str, int] = {}
    for result in results:
        counts[result.kind] = counts.get(result.kind, 0) + 1
    console.say(
        f"verdict   {code.name.replace('_', ' ')}: " + ", ".join(f"{n} {name}" for name, n in counts.items()),
        tone_of(code),
    )
    if report is not None:
        console.say(f"junit     {report}")
    console.result(
        {
            "suite": suite.name,
            "verdict": code.name.lower(),
            "exit_code": int(code),
            "counts": counts,
            "junit": None if report is None else str(report),
            "scenarios": [result.to_json() for result in results],
        }
    )
    return code


def _moments(console: Console) -> Progress:
    """How far one scenario of a suite is; its lines would hide its result line."""
    return lambda news: console.progress(news) if isinstance(news, Moment | Remark) else None
