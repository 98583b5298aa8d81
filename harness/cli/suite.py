"""`stormproof suite`: many scenarios, one verdict each and one for all, and one `junit.xml`."""

from __future__ import annotations

import time
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from checkers.verdict import Vacuous, Verdict
from harness.cli import suite_jobs
from harness.cli.candidates import one_or_a_file, suites
from harness.cli.console import Console, remark, remarks_alone
from harness.cli.exit_code import ExitCode, combined, exit_code_of
from harness.cli.options import Execution, console_of, example, execution_options, output_options, vacuity_option
from harness.cli.outcome_text import title, tone_of
from harness.errors import HarnessError, UsageError
from harness.lifetime.interruption import last_words
from harness.printable import printable
from harness.progress import Moment, Progress, Remark
from harness.record.run_directory import JUNIT, require_writable_directory
from harness.record.scenario import Scenario
from harness.session import engines
from harness.session import resolve as registry
from harness.session.outcome import replay_line, scenario_name, vacuity_note
from harness.session.output_file import require_folder, require_writable, write
from harness.session.run import run_scenario
from harness.session.suite_file import Suite, load_suite
from results.junit import Case, junit_xml
from results.verdict_file import ACCEPTED, as_accepted

EXAMPLES = """
stormproof suite smoke
stormproof suite nightly --jobs 4 --engine inprocess
stormproof suite my-suite.toml --junit build/junit.xml
"""


@dataclass(frozen=True, kw_only=True)
class Result:
    """How one scenario of a suite ended."""

    scenario: Scenario
    verdict: Verdict | None
    """None where the harness failed before one was reached."""
    words: str
    """Printable, but for its line breaks."""
    directory: Path | None
    seconds: float
    accepted: tuple[str, ...] = ()
    """Why the verdict would be vacuous, if that was accepted."""

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.HARNESS_FAILED if self.verdict is None else exit_code_of(self.verdict)

    @property
    def name(self) -> str:
        return "harness failed" if self.verdict is None else self.verdict.value

    def case(self) -> Case:
        notes = {"seed": str(self.scenario.seed), "replay": replay_line(self.scenario), **vacuity_note(self.accepted)}
        if self.directory is not None:
            notes["directory"] = str(self.directory)
        return Case(
            name=title(self.scenario),
            classname=f"stormproof.{scenario_name(self.scenario)}",
            seconds=self.seconds,
            verdict=self.verdict,
            words=self.words,
            notes=notes,
        )


@click.command("suite", epilog=example(EXAMPLES))
@click.argument("file", metavar="FILE.toml", shell_complete=one_or_a_file(suites))
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, metavar="J", help="How many at once.")
@click.option(
    "--junit",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Where junit.xml is written; - is standard output.  [default: under --runs]",
)
@vacuity_option
@execution_options
@output_options
def command(
    file: str,
    jobs: int,
    junit: Path | None,
    vacuous: Vacuous,
    runs: Path,
    engine: str,
    master: str | None,
    as_json: bool,
    progress: bool | None,
) -> int:
    """Run the scenarios of FILE.toml, or of a shipped suite by its name: smoke, nightly; - is standard input.

    Invalid outranks all, then a failed harness, then unknown.
    """
    suite = load_suite(file)
    for scenario in suite.scenarios:
        _refuse_wrong(scenario, file)
    require_writable_directory(runs)
    console = console_of(as_json, progress, file=junit)
    console.say(f"suite     {suite.name}: {len(suite.scenarios)} scenarios")
    engines.require_engine(engine, master)
    report = junit or runs / "suites" / f"{suite.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}" / JUNIT
    require_folder(report)
    require_writable(report)
    execution = Execution(runs=runs, engine=engine, master=master, vacuous=vacuous)
    results = run_suite(suite, execution, jobs, console)
    try:
        write(report, [junit_xml(suite.name, [result.case() for result in results])])
    except (HarnessError, UsageError) as error:
        remark(str(error))
        return combined([_tell(suite, results, None, console), ExitCode.HARNESS_FAILED])
    return _tell(suite, results, report, console)


def run_suite(suite: Suite, execution: Execution, jobs: int, console: Console) -> list[Result]:
    """All results, in the suite's order; a scenario whose harness fails does not stop the others."""
    results = []
    if jobs == 1:
        for position, scenario in enumerate(suite.scenarios, 1):
            console.progress(f"[{position}/{len(suite.scenarios)}] {title(scenario)}")
            results.append(run_one(scenario, execution, _moments(console)))
            _tell_one(results[-1], console)
            last_words("suite", f"{position} of {len(suite.scenarios)} scenarios had ended")
        return results
    futures = suite_jobs.each(partial(run_one, execution=execution), suite.scenarios, jobs)
    for scenario, future in zip(suite.scenarios, futures, strict=True):
        results.append(_awaited(scenario, future))
        _tell_one(results[-1], console)
        last_words("suite", f"{len(results)} of {len(suite.scenarios)} scenarios had ended")
    return results


def run_one(scenario: Scenario, execution: Execution, progress: Progress = remarks_alone) -> Result:
    """One scenario; a failure of the harness becomes a result."""
    started = time.monotonic()
    try:
        outcome = run_scenario(
            scenario,
            runs=execution.runs,
            engine=execution.engine,
            master=execution.master,
            vacuous=execution.vacuous,
            progress=progress,
        )
    except Exception as error:  # noqa: BLE001  # one scenario's failure, named in the results, spares the others
        words = printable(f"{type(error).__name__}: {error}")
        seconds = time.monotonic() - started
        return Result(scenario=scenario, verdict=None, words=words, directory=None, seconds=seconds)
    return Result(
        scenario=scenario,
        verdict=outcome.verdict,
        words=outcome.words(),
        directory=outcome.directory,
        accepted=outcome.accepted,
        seconds=time.monotonic() - started,
    )


def _refuse_wrong(scenario: Scenario, file: str) -> None:
    try:
        registry.environment_of(scenario, registry.resolve(scenario))
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None


def _awaited(scenario: Scenario, future: Future[Result]) -> Result:
    try:
        return future.result()
    except (BrokenExecutor, HarnessError) as error:
        return Result(
            scenario=scenario, verdict=None, words=printable(f"its process died: {error}"), directory=None, seconds=0.0
        )


def _tell_one(result: Result, console: Console) -> None:
    console.say(f"{result.name:<14}  {result.seconds:6.1f} s  {title(result.scenario)}", tone_of(result.exit_code))
    for reason in result.accepted:
        console.say(f"{'':14}  {as_accepted(reason)}")
    if result.verdict is not Verdict.VALID:
        for line in result.words.split("\n")[:5]:
            console.say(f"{'':14}  {line}")
        if result.directory is not None:
            console.say(f"{'':14}  {result.directory}")
        console.say(f"{'':14}  replay: {replay_line(result.scenario)}")


def _tell(suite: Suite, results: list[Result], report: Path | None, console: Console) -> int:
    """`report` is None where it could not be written."""
    code = combined(result.exit_code for result in results)
    counts: dict[str, int] = {}
    for result in results:
        counts[result.name] = counts.get(result.name, 0) + 1
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
            "scenarios": [
                {
                    "scenario": result.scenario.to_json(),
                    "verdict": None if result.verdict is None else result.verdict.value,
                    "exit_code": int(result.exit_code),
                    "words": result.words,
                    ACCEPTED: list(result.accepted),
                    "directory": None if result.directory is None else str(result.directory),
                    "seconds": round(result.seconds, 3),
                    "replay": replay_line(result.scenario),
                }
                for result in results
            ],
        }
    )
    return code


def _moments(console: Console) -> Progress:
    """How far one scenario of a suite is; its lines would hide its result line."""
    return lambda news: console.progress(news) if isinstance(news, Moment | Remark) else None
