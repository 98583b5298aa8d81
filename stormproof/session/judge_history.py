"""A history that came without its run is judged: nothing is known of faults, so no loss is legal."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa

from checkers.api.plan import CheckRequest, Engine
from checkers.asked import in_full
from checkers.certified import CertifiedHistory, fingerprint
from checkers.history_batches import Source
from checkers.linearizable.checker import require_certifiable
from checkers.search_budget import TimeIsUp
from harness.errors import HarnessError, UsageError
from harness.jepsen import Beside, located
from harness.jepsen.nemesis_faults import fault_rows
from harness.progress import Moment, Progress
from harness.record.fault_log import FaultLog
from harness.record.history import MalformedHistory, close_torn
from harness.record.history.parquet import parquet_file
from harness.record.history.passed_over import passed_over
from harness.record.run_directory import HISTORY, RunDirectory
from results.report import write_report
from results.verdict_file import VerdictFile, write_verdict
from stormproof.session.check_spec import CheckSpec, read
from stormproof.session.decide import CheckOutcome, decide
from stormproof.session.engines import CheckOptions
from stormproof.session.foreign_history import Form, HistoryFile
from stormproof.session.null_reads import NullReads, taken_for_nothing
from stormproof.session.outcome import operations_of, versions
from stormproof.session.output_file import write

MOST_AT_ONCE = 1_000
"""Verdicts over histories of one name in one second."""


@dataclass(frozen=True, kw_only=True)
class HistoryOutcome:
    """What a history came to."""

    source: HistoryFile
    spec: CheckSpec
    """What was asked for."""
    history: Source
    """What was checked: the file itself, or the rows that were read of it."""
    outcome: CheckOutcome
    beside: Beside = field(default_factory=Beside)
    certified: str = ""
    """What was proven, in few words; empty where no certificate was asked for."""

    @property
    def passed_over(self) -> tuple[str, ...]:
        """What of the history decides nothing, or was not read, each in few words."""
        return (*passed_over(self.history).words(), *self.beside.passed_over)


def judge_history(
    source: HistoryFile,
    spec: CheckSpec,
    check_options: CheckOptions,
    *,
    scratch: Path,
    progress: Progress,
) -> HistoryOutcome:
    """`scratch` is a folder for what is kept meanwhile.

    Raises MalformedHistory, TooLargeToCertify, UsageError, HarnessError.
    """
    asked = spec
    history, spec, doubts, beside = _rows(source, spec, scratch, progress)
    if source.form is not Form.TEXT:
        spec.require_values(history)
    if spec.null_reads is NullReads.UNKNOWN:
        history = taken_for_nothing(history, scratch / f"null-reads-{HISTORY}")
    if spec.certificate is not None:
        require_certifiable(history)  # Before hours of work, not after them.
    request = CheckRequest(history=history, repeats=spec.repeats)
    try:
        outcome = decide(
            request,
            spec.checkers,
            check_options,
            subject=spec.subject,
            named=str(source.path),
            progress=progress,
            doubts=doubts,
        )
    except MalformedHistory as error:
        if spec.shape.by_time and error.position is not None:
            # Rows in another order than the text's have no lines in it.
            raise MalformedHistory(
                None, f"operation {error.position} by time: {error.reason}", path=error.path
            ) from None
        raise
    return HistoryOutcome(
        source=source,
        spec=asked,
        history=history,
        outcome=outcome,
        certified=_certified(source, spec, request, outcome.engine),
        beside=beside,
    )


def _rows(
    source: HistoryFile, spec: CheckSpec, scratch: Path, progress: Progress
) -> tuple[Source, CheckSpec, tuple[str, ...], Beside]:
    """The history, what it turned out to be judged by, why a verdict of VALID could not be trusted, and what else the
    history holds."""
    kept = scratch / HISTORY
    if source.form is Form.STREAM:
        recovered = close_torn(source.file, kept)
        doubts = (f"a torn history: {recovered}",) if recovered.dropped_bytes else ()
        return recovered.parquet, spec, doubts, Beside()
    if source.form is Form.TEXT:
        progress(f"reading {source.path}")
        progress(Moment(f"reading {source.path.name}"))
        rows, spec, beside = read(source.file, kept, spec)
        return rows, spec, (), beside
    return source.file, spec, (), Beside()


def _certified(source: HistoryFile, spec: CheckSpec, request: CheckRequest, engine: Engine | None) -> str:
    """If a certificate was asked for."""
    certifier, certificate = spec.certifier, spec.certificate
    if certifier is None or certificate is None or engine is None:
        return ""
    history = CertifiedHistory(
        name=str(source.path),
        sha256=fingerprint(source.file),
        functions=dict(spec.shape.renamed),
        by_time=spec.shape.by_time,
    )
    try:
        with in_full(request.history, request.repeats) as rows:
            asked = replace(request, history=rows)
            return certifier.certify(asked, engine, partial(write, certificate), history)
    except TimeIsUp:
        return "no proof  the time of --give-up-after was up, nothing"


def placed(error: MalformedHistory, path: Path, source: HistoryFile | None) -> MalformedHistory:
    """The same with the name that the user gave, and of a text with its line."""
    if source is None:
        path = error.path or path
    elif source.form is Form.TEXT and error.line is None:
        error = located(source.file, error)
    return error.of(path)


def keep_verdict(checked: HistoryOutcome, options: CheckOptions, reports: Path) -> tuple[RunDirectory, str | None]:
    """The verdict as data and as a page, in a fresh folder under `reports`, and what of the page failed, in words.

    Beside them lies the history: a link to a file of ours, or what another one became; and what its nemesis did.
    Raises UsageError, HarnessError, OSError.
    """
    source, outcome = checked.source, checked.outcome
    directory = _folder_for(source.name, reports)
    faults = fault_rows(checked.beside.acts)
    again = source.path if source.file == source.path else directory.history  # a pipe cannot be read again
    content = VerdictFile(
        verdict=outcome.verdict,
        reasons=outcome.reasons,
        checkers=outcome.results,
        operations=operations_of(outcome.results),
        faults=FaultLog.of(faults).counts,
        versions=versions(),
        passed_over=checked.passed_over,
        checking=outcome.checking(again, options, history=again, arguments=checked.spec.arguments),
    )
    if isinstance(checked.history, pa.Table):
        with parquet_file(directory.history, checked.history.schema) as writer:
            writer.write_table(checked.history)
    elif checked.history == source.path:
        directory.history.symlink_to(checked.history.resolve())
    else:
        shutil.move(checked.history, directory.history)
    if faults:
        write(directory.faults, (f"{json.dumps(row.to_json())}\n" for row in faults))
    write_verdict(directory.path, content)
    return directory, write_report(directory.path)


def _folder_for(history: str, reports: Path) -> RunDirectory:
    """A fresh folder for the verdict. Raises UsageError."""
    try:
        for attempt in range(1, MOST_AT_ONCE):
            name = f"{history}-{datetime.now(UTC):%Y%m%dT%H%M%S}" + (f"-{attempt}" if attempt > 1 else "")
            directory = reports / name
            try:
                directory.mkdir(parents=True)
            except FileExistsError:
                continue
            return RunDirectory(directory)
    except OSError as error:
        raise UsageError(
            f"cannot write into {reports}: {error.strerror or error}; make it writable, "
            "or choose another place with --runs"
        ) from error
    raise HarnessError(f"{MOST_AT_ONCE} verdicts over histories called {history} were reached in one second")
