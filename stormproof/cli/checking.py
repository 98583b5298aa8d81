"""What `stormproof check` prints of runs and histories, one path after the other; they are judged by the session."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from checkers.api.verdict import Verdict, accepted, found
from checkers.linearizable.checker import TooLargeToCertify
from checkers.linearizable.objects import MODELS
from harness.compiled import interpreted
from harness.errors import HarnessError, UsageError
from harness.jepsen.test_directory import HISTORIES, JepsenTest, is_test_directory
from harness.lifetime.scratch import directory as scratch_directory
from harness.reading import STANDARD_INPUT
from harness.record.history import MalformedHistory
from harness.record.history.message import shortened
from harness.record.run_directory import RunDirectory, require_writable_directory
from results.junit import Case, junit_xml
from results.verdict_file import ACCEPTED
from stormproof.cli.check_options import HistoryOptions, NothingHappened
from stormproof.cli.compared import compared
from stormproof.cli.console import Console, Output, Watching, remark, remarks_alone
from stormproof.cli.exit_code import ExitCode, combined, exit_code_of
from stormproof.cli.outcome_text import say_verdict, standing_of, tell_where, tone_of
from stormproof.session.check_spec import REGISTERS, CheckSpec
from stormproof.session.decide import CheckOutcome
from stormproof.session.early_findings import EarlyFindings
from stormproof.session.engines import CheckOptions, require_engine
from stormproof.session.foreign_history import (
    OWN_SUFFIXES,
    Form,
    HistoryFile,
    Target,
    history_in_directory,
    is_there,
    locate_history,
    targets,
)
from stormproof.session.judge import check_run
from stormproof.session.judge_history import HistoryOutcome, judge_history, keep_verdict, placed
from stormproof.session.outcome import Outcome
from stormproof.session.output_file import require_writable, write
from stormproof.session.registry import names

NOT_JUDGED = "not judged"


@dataclass(frozen=True, kw_only=True)
class PathOutcome:
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
    """The engine that checked it, and why; empty if nothing was checked."""
    standing: Mapping[str, Any] | None = None
    """The models ruled out, and the strongest that remain, where the history is of transactions."""
    judged_as: str = ""
    """What the history showed itself to be one of, as options; empty where that was said."""
    jepsen: Mapping[str, Any] | None = None
    """What Jepsen found, where it left a test."""
    passed_over: tuple[str, ...] = ()
    """What the history holds that was not judged."""
    error: str = ""

    @classmethod
    def of(cls, outcome: CheckOutcome | Outcome) -> PathOutcome:
        counts: Counter[str] = Counter()
        for result in outcome.results.values():
            counts.update({name: summary.count for name, summary in result.anomalies.items() if summary.count})
        return cls(
            code=exit_code_of(outcome.verdict),
            verdict=outcome.verdict,
            anomalies=dict(sorted(counts.items())),
            reasons=(*found(outcome.results), *outcome.reasons),
            accepted=accepted(outcome.results),
            engine=outcome.checked,
            standing=standing_of(outcome.results),
        )

    def word(self) -> str:
        return NOT_JUDGED if self.verdict is None else self.verdict.value.upper()

    def in_few_words(self) -> str:
        """What stands behind the verdict in a table: as what it was judged, what was found, where Jepsen differs."""
        found = ", ".join(f"{name} × {count}" for name, count in (self.anomalies or {}).items())
        unsure = "; ".join(self.reasons) if self.verdict is Verdict.UNKNOWN else ""
        differs = "; ".join((self.jepsen or {}).get("differences", ()))
        parts = (self.judged_as, found, unsure, f"differs: {differs}" if differs else "", self.error)
        return "".join(f"  {part}" for part in parts if part)

    def case(self, path: Path, seconds: float) -> Case:
        notes = {"judged as": self.judged_as, "report": str(self.directory or "")}
        return Case(
            name=str(path),
            classname="stormproof.check",
            seconds=seconds,
            verdict=self.verdict,
            words=self.error or "\n".join(self.reasons),
            notes={name: words for name, words in notes.items() if words},
        )

    def to_json(self, path: Path, seconds: float) -> dict[str, Any]:
        data: dict[str, Any] = {
            "path": str(path),
            "verdict": self.verdict.value if self.verdict else None,
            "anomalies": dict(self.anomalies or {}),
            "seconds": round(seconds, 6),
            "exit_code": int(self.code),
            "reasons": list(self.reasons),
        }
        first = {ACCEPTED: list(self.accepted), "directory": str(self.directory or ""), "checked": self.engine}
        last = {
            "judged_as": self.judged_as,
            "jepsen": self.jepsen,
            "passed_over": list(self.passed_over),
            "error": self.error,
        }
        return {**data, **_without_empty(first), **(self.standing or {}), **_without_empty(last)}


def _without_empty(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if value}


def check_all(
    paths: tuple[Path, ...],
    asked: HistoryOptions,
    runs: Path,
    options: CheckOptions,
    console: Console,
    junit: Path | None = None,
) -> ExitCode:
    """Each path by itself; what all came to. Raises UsageError for options that do not fit each other."""
    if paths.count(STANDARD_INPUT) > 1:
        raise UsageError("- is standard input, which can be read only once; name it once")
    asked.spec(len(paths))  # Before anything is read.
    if junit is not None:
        require_writable(junit)
    require_engine(options.engine, options.master)
    done: list[tuple[Target, PathOutcome, float]] = []
    with scratch_directory() as scratch, scratch_directory() as unpacked:
        found = targets(paths, unpacked)
        asked.spec(len(found))
        reports = runs / "checked" if len(paths) == len(found) == 1 and not found[0].is_within else None
        check = _PathCheck(asked=asked, options=options, console=console, scratch=scratch, reports=reports)
        for number, target in enumerate(found, 1):
            begun = time.monotonic()
            checked = check.target(target)
            seconds = time.monotonic() - begun
            for kept in scratch.iterdir():
                kept.unlink()
            console.result(checked.to_json(target.named, seconds))
            done.append((target, checked, seconds))
            interpreted.foresee(number / len(found))
    code = combined([checked.code for _, checked, _ in done])
    if len(found) > 1:
        counted = f": {_counted(done)}" if any(target.is_within for target, _, _ in done) else ""
        console.say(f"all       {code.name.replace('_', ' ')}{counted}", tone_of(code))
    if junit is not None:
        write(junit, [junit_xml("check", [checked.case(target.named, seconds) for target, checked, seconds in done])])
    return code


def _counted(done: Sequence[tuple[Target, PathOutcome, float]]) -> str:
    """`3 valid, 1 invalid, 2 not judged`."""
    words = Counter(checked.word().lower() for _, checked, _ in done)
    return ", ".join(f"{words[word]} {word}" for word in ("valid", "invalid", "unknown", NOT_JUDGED) if words[word])


@dataclass(frozen=True, kw_only=True)
class _PathCheck:
    """The check of any PATH of one call."""

    asked: HistoryOptions
    options: CheckOptions
    console: Console
    scratch: Path
    """A folder for what is kept meanwhile: a stream, or a foreign history as one of ours."""
    reports: Path | None
    """Where the verdict is kept, of a single history."""

    def target(self, target: Target) -> PathOutcome:
        """Prints a line for one of many within a directory, and for any other all that came of it."""
        at_length = replace(self, console=replace(self.console, says=not target.is_within))
        at_length.console.say(f"history   {target.named}")
        checked = at_length._path(target.at)
        if target.at != target.named:
            checked = replace(checked, error=checked.error.replace(str(target.at), str(target.named)))
        if checked.error and (not target.is_within or self.console.output is Output.JSON):
            remark(checked.error)
        if target.is_within:
            line = f"{checked.word():<9} {target.named}{checked.in_few_words()}"
            self.console.say(line, tone_of(checked.code))
        return checked

    def _path(self, path: Path) -> PathOutcome:
        history = test = None
        try:
            if is_there(path) and path.is_dir():
                self.asked.require_no_run(path)
                history = history_in_directory(path, self.scratch)
                if history is None and not is_test_directory(path):
                    return self._run(path)
            if history is None and path.is_dir():
                test = JepsenTest.of(path)
                self.console.say(f"test      {test.name}" + (f", workload {test.workload}" if test.workload else ""))
            if test is None and not is_there(path):
                raise UsageError(_not_there(path, self.asked))
            named = path if test is None else test.history
            history = history or locate_history(named, self.scratch, meanwhile=self._early_findings(path))
            if self.reports is not None:
                require_writable_directory(self.reports)  # Before hours of work, not after them.
            return self._history(history, test)
        except NothingHappened as error:
            self.console.say("verdict   UNKNOWN", tone_of(ExitCode.UNKNOWN))
            self.console.say(f"          {error}")
            return PathOutcome(code=ExitCode.UNKNOWN, verdict=Verdict.UNKNOWN, reasons=(str(error),))
        except MalformedHistory as error:
            return _failed(ExitCode.WRONG_USAGE, placed(error, path, history))
        except (UsageError, TooLargeToCertify) as error:
            return _failed(ExitCode.WRONG_USAGE, error)
        except HarnessError as error:
            return _failed(ExitCode.HARNESS_FAILED, error)

    def _early_findings(self, path: Path) -> EarlyFindings | None:
        """Reports what is certain of a history in a pipe before its end; None if nothing is to be reported."""
        if self.console.watching is Watching.NO or not self.asked.subject() or self.asked.order is not None:
            return None
        return EarlyFindings(
            path=path,
            spec_of=lambda prefix: self.asked.as_recorded(prefix).spec(1),
            check_options=self.options,
            progress=self.console.progress,
        )

    def _run(self, path: Path) -> PathOutcome:
        if not is_there(RunDirectory(path).scenario):
            raise UsageError(
                f"{path} is not a run directory: it has no {RunDirectory(path).scenario.name}; nor a test of Jepsen's, "
                f"with {HISTORIES[0]}; name one of these, or the file of a history"
            )
        outcome = check_run(path, options=self.options, progress=self.console.progress)
        say_verdict(outcome, self.console)
        tell_where(outcome, self.console)
        return replace(PathOutcome.of(outcome), directory=outcome.directory)

    def _history(self, source: HistoryFile, test: JepsenTest | None) -> PathOutcome:
        options = self.asked.as_recorded(source, test)
        spec = options.spec(1)
        if spec is None:
            raise _no_judgement(source.path)
        recognised = "" if spec.arguments == self.asked.arguments() else " ".join(spec.arguments)
        if recognised:
            self.console.say(f"judged as {recognised}")
        if self.reports is None and source.form is Form.TEXT:
            # What clients did there is of few kinds, or it is refused: figures of it are never too many.
            spec = spec.without_figures()
        judged = judge_history(source, spec, self.options, scratch=self.scratch, progress=self.console.progress)
        if judged.certified:
            self.console.say(f"{judged.certified} in {spec.certificate}")
        checked = replace(PathOutcome.of(judged.outcome), judged_as=recognised, passed_over=judged.passed_over)
        say_verdict(judged.outcome, self.console)
        self.console.say(f"checked   {checked.engine}")
        if checked.passed_over:
            self.console.say(f"passed over: {', '.join(checked.passed_over)}")
        if self.reports is not None:
            checked = replace(checked, directory=self._keep(judged, self.reports))
        if test is None:
            return checked
        comparison = compared(test, judged.outcome.verdict, judged.outcome.results)
        if comparison.may_rest_on_null_reads and options.null_reads is None and options.model in REGISTERS:
            comparison = comparison.resting_on_null_reads(self._is_valid_without_null_reads(source, spec))
        for line in comparison.lines():
            self.console.say(line)
        return replace(checked, jepsen=comparison.to_json())

    def _keep(self, history: HistoryOutcome, reports: Path) -> Path:
        """The directory of its report."""
        kept, problem = keep_verdict(history, self.options, reports)
        self.console.say(f"report    {kept.report}")
        if problem:
            remark(problem)
        return kept.path

    def _is_valid_without_null_reads(self, source: HistoryFile, spec: CheckSpec) -> bool:
        """Whether the history is valid once its reads of null say nothing."""
        spec = spec.without_null_reads().without_figures()
        again = judge_history(source, spec, self.options, scratch=self.scratch, progress=remarks_alone)
        return again.outcome.verdict is Verdict.VALID


def _not_there(path: Path, options: HistoryOptions) -> str:
    if path.is_symlink():
        return f"{path} is a link to {path.readlink()}, which is not there"
    if options.subject() or path.suffix in OWN_SUFFIXES:
        return f"there is no history {path}"
    return f"{path} is no run directory and no history; stormproof list shows runs"


def _no_judgement(path: Path) -> UsageError:
    return UsageError(
        f"{path} is a history without its run: say what it is one of with --workload ({', '.join(names('workloads'))}) "
        f"or --model ({', '.join(MODELS)})"
    )


def _failed(code: ExitCode, error: Exception) -> PathOutcome:
    return PathOutcome(code=code, error=shortened(str(error)))
