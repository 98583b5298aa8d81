"""Judges stored and foreign histories, one path after the other: what `stormproof check` does."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from checkers.certified import CertifiedHistory, fingerprint
from checkers.history_batches import history_rows
from checkers.linearizable import MODELS, TooLargeToCertify, require_certifiable
from checkers.plan import CheckRequest, Engine
from checkers.run import check_history
from checkers.verdict import CheckerResult, Verdict, accepted, found, judged_as, merge
from harness.cli.check_options import HistoryOptions
from harness.cli.console import Console, remark
from harness.cli.exit_code import ExitCode, combined, exit_code_of
from harness.cli.options import Execution
from harness.cli.outcome_text import say_verdict, standing_of, tell_where, tone_of
from harness.cli.output_file import write
from harness.errors import HarnessError, UsageError
from harness.jepsen import located
from harness.lifetime.scratch import directory as scratch_directory
from harness.progress import Moment
from harness.reading import STANDARD_INPUT
from harness.record.history import MalformedHistory, close_torn
from harness.record.run_directory import require_writable_directory
from harness.session import engines
from harness.session.given_history import OWN_SUFFIXES, Form, GivenHistory, given, is_there
from harness.session.judge import check_line, check_run, checking, vacuity_arguments, versions
from harness.session.judgement import Judgement, converted
from harness.session.resolve import names
from results.report import write_report
from results.verdict_file import ACCEPTED, Checking, VerdictFile, write_verdict

MOST_AT_ONCE = 1_000
"""Verdicts over histories of one name in one second."""
KEPT = "history.parquet"
"""A history beside its verdict; in a scratch folder, a text or a stream that was converted."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What one PATH came to."""

    code: ExitCode
    verdict: Verdict | None = None
    anomalies: Mapping[str, int] | None = None
    reasons: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    """Why the verdict would be vacuous, if that was accepted."""
    directory: Path | None = None
    """Where the report is, if there is one."""
    engine: str = ""
    """On which engine, and why; empty where nothing was checked."""
    standing: Mapping[str, Any] | None = None
    """Of transactions: the models ruled out, and the strongest that remain."""
    error: str = ""

    def to_json(self, path: Path, seconds: float) -> dict[str, Any]:
        told: dict[str, Any] = {
            "path": str(path),
            "verdict": self.verdict.value if self.verdict else None,
            "anomalies": dict(self.anomalies or {}),
            "seconds": round(seconds, 6),
            "exit_code": int(self.code),
            "reasons": list(self.reasons),
        }
        if self.accepted:
            told[ACCEPTED] = list(self.accepted)
        if self.directory is not None:
            told["directory"] = str(self.directory)
        if self.engine:
            told["checked"] = self.engine
        if self.standing is not None:
            told |= self.standing
        if self.error:
            told["error"] = self.error
        return told


def check_all(paths: tuple[Path, ...], options: HistoryOptions, execution: Execution, console: Console) -> ExitCode:
    """Each path by itself; what all came to. Raises UsageError for options that do not fit each other."""
    if paths.count(STANDARD_INPUT) > 1:
        raise UsageError("- is standard input, which can be read only once; name it once")
    judgement = options.judgement(len(paths))
    engines.require_engine(execution.engine, execution.master)
    reports = execution.runs / "checked" if len(paths) == 1 else None
    codes = []
    with scratch_directory() as scratch:
        for number, path in enumerate(paths):
            console.say(f"history   {path}")
            begun = time.monotonic()
            folder = scratch / str(number)
            folder.mkdir()
            checked = _check(path, options, judgement, execution, console, folder, reports)
            shutil.rmtree(folder)
            console.result(checked.to_json(path, time.monotonic() - begun))
            codes.append(checked.code)
    code = combined(codes)
    if len(paths) > 1:
        console.say(f"all       {code.name.replace('_', ' ')}", tone_of(code))
    return code


def _check(
    path: Path,
    options: HistoryOptions,
    judgement: Judgement | None,
    execution: Execution,
    console: Console,
    scratch: Path,
    reports: Path | None,
) -> Checked:
    """`scratch` is a folder for what is kept meanwhile: a stream, or a foreign history as one of ours."""
    history = None
    try:
        if is_there(path) and path.is_dir():
            options.require_no_run(path)
            return _check_directory(path, execution, console)
        if judgement is None:
            raise _no_judgement(path)
        if not is_there(path):
            raise UsageError(f"there is no history {path}")
        history = given(path, scratch)
        if reports is not None:
            require_writable_directory(reports)  # Before hours of work, not after them.
        return _check_history(history, options, judgement, execution, console, scratch, reports)
    except MalformedHistory as error:
        return _failed(ExitCode.WRONG_USAGE, _placed(error, path, history, scratch))
    except (UsageError, TooLargeToCertify) as error:
        return _failed(ExitCode.WRONG_USAGE, error)
    except HarnessError as error:
        return _failed(ExitCode.HARNESS_FAILED, error)


def _placed(error: MalformedHistory, path: Path, history: GivenHistory | None, scratch: Path) -> MalformedHistory:
    """The same with the name that the user gave, and of a text that was converted before, with its line."""
    if history is None:
        path = error.path or path
    elif history.form is Form.TEXT and (scratch / KEPT).exists():
        error = located(history.file, error)
    return error.of(path)


def _no_judgement(path: Path) -> UsageError:
    if not is_there(path) and path.suffix not in OWN_SUFFIXES:
        return UsageError(f"{path} is no run directory and no history; stormproof list shows runs")
    return UsageError(
        f"{path} is a history without its run: say what it is one of with --workload ({', '.join(names('workloads'))}) "
        f"or --model ({', '.join(MODELS)})"
    )


def _failed(code: ExitCode, error: Exception) -> Checked:
    remark(str(error))
    return Checked(code=code, error=str(error))


def _check_directory(path: Path, execution: Execution, console: Console) -> Checked:
    outcome = check_run(
        path,
        engine=execution.engine,
        master=execution.master,
        vacuous=execution.vacuous,
        progress=console.progress,
    )
    say_verdict(outcome.verdict, outcome.reasons, outcome.results, console)
    tell_where(outcome, console)
    return _checked(outcome.verdict, outcome.reasons, outcome.results, outcome.directory, outcome.checked)


def _checked(
    verdict: Verdict,
    reasons: tuple[str, ...],
    results: Mapping[str, CheckerResult],
    directory: Path | None,
    engine: str,
) -> Checked:
    counts: dict[str, int] = {}
    for result in results.values():
        for name, summary in result.anomalies.items():
            if summary.count:
                counts[name] = counts.get(name, 0) + summary.count
    return Checked(
        code=exit_code_of(verdict),
        verdict=verdict,
        anomalies=dict(sorted(counts.items())),
        reasons=(*found(results), *reasons),
        accepted=accepted(results),
        directory=directory,
        engine=engine,
        standing=standing_of(results),
    )


def _check_history(
    given: GivenHistory,
    options: HistoryOptions,
    judgement: Judgement,
    execution: Execution,
    console: Console,
    scratch: Path,
    reports: Path | None,
) -> Checked:
    """A history without its run: nothing is known of faults, so no loss is legal and none is demanded."""
    reasons: list[str] = []
    path, history = given.path, given.file
    if given.form is Form.STREAM:
        recovered = close_torn(given.file, scratch / KEPT)
        reasons += [f"a torn history: {recovered}"] if recovered.dropped_bytes else []
        history = recovered.parquet
    elif given.form is Form.TEXT:
        history = scratch / KEPT
        console.progress(f"reading {path}")
        console.progress(Moment(f"reading {path.name}"))
        judgement = converted(given.file, history, judgement)
    if judgement.certificate is not None:
        require_certifiable(history)  # Before hours of work, not after them.
    chosen = engines.choose(execution.engine, execution.master, rows=history_rows(history), judged=options.judged_by())
    console.progress(f"checking {path} {chosen.words()}")
    request = CheckRequest(history=history, repeats=judgement.repeats)
    console.progress(Moment(f"starting engine {chosen.name}"))
    engine = engines.make_engine(chosen)
    begun = time.monotonic()
    results = check_history(request, judgement.checkers, engine, begins=checking(engine, console.progress))
    results = judged_as(results, execution.vacuous)
    _certify(given, judgement, request, engine, console)
    operations = results["statistics"].statistics.get("operations", {}) if "statistics" in results else {}
    verdict = merge([*(result.verdict for result in results.values()), *(Verdict.UNKNOWN for _ in reasons)])
    for result in results.values():
        reasons += [reason for reason in result.reasons if reason not in reasons]
    console.progress(f"checked in {time.monotonic() - begun:.1f} s")
    say_verdict(verdict, tuple(reasons), results, console)
    console.say(f"checked   {chosen.words()}")
    directory = None if reports is None else _folder_for(given.name, reports)
    if directory is not None:
        again = path if given.file == path else directory / KEPT  # what came out of a pipe cannot be read again
        content = VerdictFile(
            verdict=verdict,
            reasons=tuple(reasons),
            checkers=results,
            operations=operations,
            versions=versions(),
            checking=Checking(
                history=str(again.resolve()),
                judged_as=shlex.join(options.arguments()),
                engine=engine.name,
                engine_because=chosen.because,
                command=check_line(
                    again, *options.arguments(), *vacuity_arguments(execution.vacuous), "--engine", engine.name
                ),
            ),
        )
        _report(history, given, content, directory, console)
    return _checked(verdict, tuple(reasons), results, directory, chosen.words())


def _certify(
    given: GivenHistory, judgement: Judgement, request: CheckRequest, engine: Engine, console: Console
) -> None:
    """If a certificate was asked for."""
    certifier, certificate = judgement.certifier, judgement.certificate
    if certifier is not None and certificate is not None:
        history = CertifiedHistory(name=str(given.path), sha256=fingerprint(given.file))
        proven = certifier.certify(request, engine, partial(write, certificate), history)
        console.say(f"{proven} in {certificate}")


def _report(history: Path, given: GivenHistory, content: VerdictFile, directory: Path, console: Console) -> None:
    """The verdict as data and as a page, beside the history: a link to a file of ours, or what another one became."""
    kept = directory / KEPT
    if history == given.path:
        kept.symlink_to(history.resolve())
    else:
        shutil.move(history, kept)
    write_verdict(directory, content)
    problem = write_report(directory)
    console.say(f"report    {directory / 'report.html'}")
    if problem:
        remark(problem)


def _folder_for(history: str, reports: Path) -> Path:
    """A fresh folder for the verdict. Raises UsageError."""
    try:
        for attempt in range(1, MOST_AT_ONCE):
            name = f"{history}-{datetime.now(UTC):%Y%m%dT%H%M%S}" + (f"-{attempt}" if attempt > 1 else "")
            directory = reports / name
            try:
                directory.mkdir(parents=True)
            except FileExistsError:
                continue
            return directory
    except OSError as error:
        raise UsageError(
            f"cannot write into {reports}: {error.strerror or error}; make it writable, "
            "or choose another place with --runs"
        ) from error
    raise HarnessError(f"{MOST_AT_ONCE} verdicts over histories called {history} were reached in one second")
