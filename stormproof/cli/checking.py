"""What `stormproof check` prints of runs and histories, one path after the other; they are judged by the session."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from checkers.api.verdict import CheckerResult, Verdict, accepted, found
from checkers.linearizable import MODELS, TooLargeToCertify
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
from stormproof.cli.checking_paths import Target, targets
from stormproof.cli.compared import compared
from stormproof.cli.console import Console, Output, Watching, remark, remarks_alone
from stormproof.cli.exit_code import ExitCode, combined, exit_code_of
from stormproof.cli.options import Execution
from stormproof.cli.outcome_text import say_verdict, standing_of, tell_where, tone_of
from stormproof.cli.prefetch import EarlyVerdict, Prefetch
from stormproof.session import engines
from stormproof.session.check_spec import REGISTERS
from stormproof.session.decide import CheckOptions
from stormproof.session.early_findings import EarlyFindings
from stormproof.session.foreign_history import (
    OWN_SUFFIXES,
    Form,
    GivenHistory,
    given_directory,
    is_there,
    locate_history,
)
from stormproof.session.judge import check_run
from stormproof.session.judge_history import JudgedHistory, judge_history, keep_verdict, placed
from stormproof.session.null_reads import NullReads
from stormproof.session.output_file import require_writable, write
from stormproof.session.registry import names

NOT_JUDGED = "not judged"


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
    judged_as: str = ""
    """What the history showed itself to be one of, as options; empty where that was said."""
    jepsen: Mapping[str, Any] | None = None
    """What Jepsen found, where it left a test."""
    passed_over: tuple[str, ...] = ()
    """What the history holds that was not judged."""
    error: str = ""

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
        if self.accepted:
            data[ACCEPTED] = list(self.accepted)
        if self.directory is not None:
            data["directory"] = str(self.directory)
        if self.engine:
            data["checked"] = self.engine
        if self.standing is not None:
            data |= self.standing
        if self.judged_as:
            data["judged_as"] = self.judged_as
        if self.jepsen is not None:
            data["jepsen"] = self.jepsen
        if self.passed_over:
            data["passed_over"] = list(self.passed_over)
        if self.error:
            data["error"] = self.error
        return data


def check_all(
    paths: tuple[Path, ...],
    options: HistoryOptions,
    execution: Execution,
    console: Console,
    junit: Path | None = None,
) -> ExitCode:
    """Each path by itself; what all came to. Raises UsageError for options that do not fit each other."""
    if paths.count(STANDARD_INPUT) > 1:
        raise UsageError("- is standard input, which can be read only once; name it once")
    options.spec(len(paths))  # Before anything is read.
    if junit is not None:
        require_writable(junit)
    check_options = CheckOptions(
        engine=execution.engine,
        master=execution.master,
        vacuous=execution.vacuous,
        effort=execution.effort,
    )
    engines.require_engine(execution.engine, execution.master)
    done: list[tuple[Target, Checked, float]] = []
    with scratch_directory() as scratch, scratch_directory() as unpacked:
        found = targets(paths, unpacked)
        options.spec(len(found))
        reports = execution.runs / "checked" if len(paths) == len(found) == 1 and not found[0].is_within else None
        ahead = Prefetch([target.at for target in found], options, check_options, scratch, console.progress)
        for number, target in enumerate(found):
            early = ahead.take(number)
            begun = time.monotonic() - (early.seconds if early else 0.0)
            checked = _check_target(target, early, options, check_options, console, scratch, reports)
            seconds = time.monotonic() - begun
            for kept in scratch.iterdir():
                kept.unlink()
            console.result(checked.to_json(target.named, seconds))
            done.append((target, checked, seconds))
            if checked.verdict is Verdict.VALID:
                ahead.was_valid()
            interpreted.foresee(ahead.reached / len(found))
    code = combined([checked.code for _, checked, _ in done])
    if len(found) > 1:
        counted = f": {_counted(done)}" if any(target.is_within for target, _, _ in done) else ""
        console.say(f"all       {code.name.replace('_', ' ')}{counted}", tone_of(code))
    if junit is not None:
        write(junit, [junit_xml("check", [checked.case(target.named, seconds) for target, checked, seconds in done])])
    return code


def _check_target(
    target: Target,
    early: EarlyVerdict | None,
    options: HistoryOptions,
    check_options: CheckOptions,
    console: Console,
    scratch: Path,
    reports: Path | None,
) -> Checked:
    """One of many within a directory gets a line; any other is told of at length."""
    at_length = replace(console, says=not target.is_within)
    at_length.say(f"history   {target.named}")
    if early:
        checked = _report_early(early, options, at_length)
    else:
        checked = _check(target.at, options, check_options, at_length, scratch, reports)
    if target.at != target.named:
        checked = replace(checked, error=checked.error.replace(str(target.at), str(target.named)))
    if checked.error and (not target.is_within or console.output is Output.JSON):
        remark(checked.error)
    if target.is_within:
        console.say(f"{checked.word():<9} {target.named}{checked.in_few_words()}", tone_of(checked.code))
    return checked


def _counted(done: Sequence[tuple[Target, Checked, float]]) -> str:
    """`3 valid, 1 invalid, 2 not judged`."""
    words = Counter(checked.word().lower() for _, checked, _ in done)
    return ", ".join(f"{words[word]} {word}" for word in ("valid", "invalid", "unknown", NOT_JUDGED) if words[word])


def _check(
    path: Path,
    options: HistoryOptions,
    check_options: CheckOptions,
    console: Console,
    scratch: Path,
    reports: Path | None,
) -> Checked:
    """`scratch` is a folder for what is kept meanwhile: a stream, or a foreign history as one of ours."""
    history = test = None
    try:
        if is_there(path) and path.is_dir():
            options.require_no_run(path)
            history = given_directory(path, scratch)
            if history is None and not is_test_directory(path):
                return _check_directory(path, check_options, console)
        if history is None and path.is_dir():
            test = JepsenTest.of(path)
            console.say(f"test      {test.name}" + (f", workload {test.workload}" if test.workload else ""))
        if test is None and not is_there(path):
            raise UsageError(_not_there(path, options))
        history = history or locate_history(
            path if test is None else test.history,
            scratch,
            meanwhile=_early_findings(path, options, check_options, console),
        )
        if reports is not None:
            require_writable_directory(reports)  # Before hours of work, not after them.
        return _check_history(history, test, options, check_options, console, scratch, reports)
    except NothingHappened as error:
        console.say("verdict   UNKNOWN", tone_of(ExitCode.UNKNOWN))
        console.say(f"          {error}")
        return Checked(code=ExitCode.UNKNOWN, verdict=Verdict.UNKNOWN, reasons=(str(error),))
    except MalformedHistory as error:
        return _failed(ExitCode.WRONG_USAGE, placed(error, path, history))
    except (UsageError, TooLargeToCertify) as error:
        return _failed(ExitCode.WRONG_USAGE, error)
    except HarnessError as error:
        return _failed(ExitCode.HARNESS_FAILED, error)


def _early_findings(
    path: Path, options: HistoryOptions, check_options: CheckOptions, console: Console
) -> EarlyFindings | None:
    """What tells of a history that comes through a pipe what is certain before its end; None where nothing does."""
    if console.watching is Watching.NO or not options.subject() or options.order is not None:
        return None
    return EarlyFindings(
        path=path,
        spec_of=lambda prefix: options.as_recorded(prefix).spec(1),
        subject=options.subject(),
        check_options=check_options,
        progress=console.progress,
    )


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


def _failed(code: ExitCode, error: Exception) -> Checked:
    return Checked(code=code, error=shortened(str(error)))


def _check_directory(path: Path, check_options: CheckOptions, console: Console) -> Checked:
    if not is_there(RunDirectory(path).scenario):
        raise UsageError(
            f"{path} is not a run directory: it has no {RunDirectory(path).scenario.name}; nor a test of Jepsen's, "
            f"with {HISTORIES[0]}; name one of these, or the file of a history"
        )
    outcome = check_run(
        path,
        engine=check_options.engine,
        master=check_options.master,
        vacuous=check_options.vacuous,
        effort=check_options.effort,
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
    source: GivenHistory,
    test: JepsenTest | None,
    options: HistoryOptions,
    check_options: CheckOptions,
    console: Console,
    scratch: Path,
    reports: Path | None,
) -> Checked:
    asked = options
    options = asked.as_recorded(source, test)
    spec = options.spec(1)
    if spec is None:
        raise _no_judgement(source.path)
    recognised = _say_recognised(asked, options, console)
    if reports is None and source.form is Form.TEXT:
        # What clients did there is of few kinds, or it is refused: figures of it are never too many.
        spec = spec.without_figures()
    judged = judge_history(
        source, spec, check_options, subject=options.subject(), scratch=scratch, progress=console.progress
    )
    if judged.certified:
        console.say(f"{judged.certified} in {spec.certificate}")
    checked = _report_history(judged, console)
    if reports is not None:
        kept, problem = keep_verdict(judged, check_options, reports, judged_as=options.arguments())
        checked = replace(checked, directory=kept.path)
        console.say(f"report    {kept.report}")
        if problem:
            remark(problem)
    comparison = None if test is None else compared(test, judged.verdict, judged.results)
    if comparison is not None and comparison.may_rest_on_null_reads and options.null_reads is None:
        comparison = comparison.resting_on_null_reads(
            _is_valid_without_null_reads(source, options, check_options, scratch)
        )
    for line in () if comparison is None else comparison.lines():
        console.say(line)
    return replace(checked, judged_as=recognised, jepsen=None if comparison is None else comparison.to_json())


def _is_valid_without_null_reads(
    source: GivenHistory, options: HistoryOptions, check_options: CheckOptions, scratch: Path
) -> bool:
    """Whether the history is valid once its reads of null say nothing."""
    if options.model not in REGISTERS:
        return False
    spec = replace(options, null_reads=NullReads.UNKNOWN.value, certify=None).spec(1)
    if spec is None:
        return False
    again = judge_history(
        source,
        spec.without_figures(),
        check_options,
        subject=options.subject(),
        scratch=scratch,
        progress=remarks_alone,
    )
    return again.verdict is Verdict.VALID


def _report_early(early: EarlyVerdict, asked: HistoryOptions, console: Console) -> Checked:
    """Of a history that was judged before its turn."""
    recognised = _say_recognised(asked, early.options, console)
    return replace(_report_history(early.history, console), judged_as=recognised)


def _say_recognised(asked: HistoryOptions, options: HistoryOptions, console: Console) -> str:
    """What the history showed itself to be one of, as options; empty where that was said."""
    if options.arguments() == asked.arguments():
        return ""
    recognised = " ".join(options.arguments())
    console.say(f"judged as {recognised}")
    return recognised


def _report_history(outcome: JudgedHistory, console: Console) -> Checked:
    say_verdict(outcome.verdict, outcome.reasons, outcome.results, console)
    checked = outcome.decided.chosen.words()
    console.say(f"checked   {checked}")
    passed_over = outcome.passed_over
    if passed_over:
        console.say(f"passed over: {', '.join(passed_over)}")
    return replace(_checked(outcome.verdict, outcome.reasons, outcome.results, None, checked), passed_over=passed_over)
