"""`stormproof replay FILE` of a storm file: in memory, as a run with a report, or written as a test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from checkers.api.verdict import merge
from harness.progress import Moment
from harness.record.run_record import read_run_record
from stormproof.cli.console import Console
from stormproof.cli.exit_code import ExitCode, exit_code_of
from stormproof.cli.options import console_of
from stormproof.cli.outcome_text import as_json as outcome_as_json
from stormproof.cli.outcome_text import say_verdict, tell_start, tone_of
from stormproof.cli.run import run_and_print
from stormproof.search.pytest_export import as_test
from stormproof.search.storm import blown_and_judged
from stormproof.search.storm_file import StormFile, load_storm
from stormproof.session import output_file
from stormproof.session.engines import CheckOptions


def carried_out(path: Path, times: int, console: Console) -> int:
    """In memory; returns the exit code."""
    storm, parts = load_storm(path)
    tell_start(storm.scenario, console)
    carried = []
    for number in range(times):
        console.progress(Moment(f"storm {number + 1} of {times}"))
        carried.append(blown_and_judged(storm.scenario, parts))
    verdict = merge(judged.verdict for judged in carried)
    worst = next(judged for judged in carried if judged.verdict is verdict)
    say_verdict(worst, console)
    again = sum(storm.anomaly in judged.anomalies for judged in carried)
    words = (_anomaly_words(storm, again, times), _trace_words(storm, [judged.blown.trace_hash for judged in carried]))
    code = exit_code_of(verdict)
    if len({judged.blown.trace_hash for judged in carried}) > 1:
        code = ExitCode.HARNESS_FAILED
    _tell_replayed(words, code, console)
    console.result(
        {
            "storm": str(path),
            "verdict": verdict.value,
            "exit_code": int(code),
            "anomaly": storm.anomaly,
            "again": again,
            "times": times,
            "anomalies": worst.anomalies,
            "traces": sorted({judged.blown.trace_hash for judged in carried}),
            "same_trace": all(judged.blown.trace_hash == storm.trace for judged in carried),
            "processor_s": round(sum(judged.processor_s for judged in carried), 3),
        }
    )
    return code


def reported(path: Path, runs: Path, check_options: CheckOptions, console: Console) -> int:
    """As a run with a directory and a report; returns the exit code."""
    storm, parts = load_storm(path)
    outcome = run_and_print(storm.scenario, parts, runs, check_options, console)
    trace = read_run_record(outcome.directory).trace_hash
    words = (_anomaly_words(storm, storm.anomaly in outcome.anomalies(), 1), _trace_words(storm, [trace]))
    code = exit_code_of(outcome.verdict)
    _tell_replayed(words, code, console)
    console.result({**outcome_as_json(outcome), "exit_code": int(code), "replayed": "\n".join(words)})
    return code


def written_as_test(path: Path, target: Path, as_json: bool, progress: bool | None) -> int:
    """Raises UsageError, HarnessError where it cannot be written."""
    console = console_of(as_json, progress, file=target)
    storm, parts = load_storm(path)
    output_file.write(target, [as_test(storm, parts)])
    if target != output_file.STANDARD_OUTPUT:
        console.say(f"test      {target}")
    console.result({"storm": str(path), "test": str(target), "exit_code": int(ExitCode.VALID)})
    return ExitCode.VALID


def drawn(path: Path, console: Console) -> int:
    """Raises UsageError, HarnessError where the page cannot be written."""
    from stormproof.search.storm_page import page_beside, storm_page

    storm, parts = load_storm(path)
    target = page_beside(path)
    output_file.require_writable(target)
    tell_start(storm.scenario, console)
    output_file.write(target, [storm_page(storm, parts, file=path)])
    console.say(f"page      {target}")
    console.result({"storm": str(path), "page": str(target), "exit_code": int(ExitCode.VALID)})
    return ExitCode.VALID


def _tell_replayed(words: Sequence[str], code: int, console: Console) -> None:
    first, *rest = words
    console.say(f"replayed  {first}", tone_of(code))
    for line in rest:
        console.say(f"          {line}")


def _anomaly_words(storm: StormFile, again: int, times: int) -> str:
    if times == 1:
        return f"{storm.anomaly} came again" if again else f"{storm.anomaly} did not come again"
    return f"{storm.anomaly} came again {again} of {times} times"


def _trace_words(storm: StormFile, traces: Sequence[str | None]) -> str:
    if len(set(traces)) > 1:
        return f"NOT DETERMINISTIC: {len(set(traces))} different traces"
    if traces[0] == storm.trace:
        return f"the same, event for event (trace {storm.trace})"
    return f"another trace ({traces[0]}, the file has {storm.trace}): the code or its versions changed since"
