"""`stormproof replay`: the same storm again, and whether everything happened again as it did."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.arrow import start_arrow
from harness.errors import HarnessError, UsageError
from harness.lifetime import scratch, supervised
from harness.record.run_directory import SCENARIO
from harness.record.run_record import read_run_record
from harness.trace import Difference, first_difference
from stormproof.cli.candidates import one_or_a_file, run_directories
from stormproof.cli.console import Console
from stormproof.cli.exit_code import ExitCode, exit_code_of
from stormproof.cli.options import checking_options, console_of, example, output_options
from stormproof.cli.run import run_and_print
from stormproof.session import registry
from stormproof.session.engines import CheckOptions
from stormproof.session.output_file import STANDARD_OUTPUT

if TYPE_CHECKING:
    from stormproof.session.outcome import Outcome

STORM_SUFFIX = ".toml"
HASH_SEEDS = ("1", "2")
MOST_SECONDS = 3600

EXAMPLES = """
stormproof replay runs/latest
stormproof replay runs/latest --engine inprocess
stormproof replay lost.storm.toml --times 20
stormproof replay lost.storm.toml --as-test -o test_lost.py
stormproof replay lost.storm.toml --page
"""


@click.command("replay", epilog=example(EXAMPLES))
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path), shell_complete=one_or_a_file(run_directories))
@click.option(
    "--times",
    type=click.IntRange(1, 100_000),
    default=1,
    show_default=True,
    metavar="N",
    help="Of a storm file: how often it is carried out.",
)
@click.option("--report", is_flag=True, help="Of a storm file: carry it out as a run, with a directory and a report.")
@click.option("--as-test", is_flag=True, help="Print a storm file as a test for pytest, and carry nothing out.")
@click.option("--page", is_flag=True, help="Of a storm file: draw what happened, as FILE.html beside it.")
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, allow_dash=True), metavar="FILE", help="Where --as-test writes."
)
@checking_options
@output_options
def command(
    path: Path,
    times: int,
    report: bool,
    as_test: bool,
    page: bool,
    output: Path | None,
    runs: Path,
    check_options: CheckOptions,
    as_json: bool,
    progress: bool | None,
) -> int:
    """Run the scenario of the run directory PATH again and compare, in the simulator event for event. Or carry out the
    storm of a storm file, in memory: does it show its anomaly again?

    The exit code is the verdict. Where the traces of a run differ, two fresh processes show what is not deterministic
    (named with the first differing event and its source line, exit code 255) from code that has changed since.
    """
    start_arrow()
    if path.suffix == STORM_SUFFIX:
        from stormproof.cli import replay_storm

        if as_test:
            return replay_storm.written_as_test(path, output or STANDARD_OUTPUT, as_json, progress)
        _refuse(output is not None, "--output says where --as-test writes; leave it out, or add --as-test")
        if page:
            _refuse(
                report or times > 1, "--page draws a storm that is carried out once; leave --report and --times out"
            )
            return replay_storm.drawn(path, console_of(as_json, progress))
        _refuse(report and times > 1, "--report carries a storm out once; leave it or --times out")
        if not report:
            return replay_storm.carried_out(path, times, console_of(as_json, progress))
        return replay_storm.reported(path, runs, check_options, console_of(as_json, progress))
    given = times > 1 or report or as_test or page or output is not None
    _refuse(
        given, f"--times, --report, --as-test, --page and --output are for storm files (…{STORM_SUFFIX}), got {path}"
    )
    return _replayed_run(path, runs, check_options, console_of(as_json, progress))


def _refuse(is_wrong: bool, words: str) -> None:
    """Raises UsageError."""
    if is_wrong:
        raise UsageError(words)


def _replayed_run(path: Path, runs: Path, check_options: CheckOptions, console: Console) -> int:
    # Not before: help and completion need nothing of what runs and judges.
    from stormproof.cli.outcome_text import as_json as outcome_as_json

    directory = path.parent if path.name == SCENARIO else path
    record = read_run_record(directory)
    scenario = record.scenario
    parts = registry.resolve(scenario)
    registry.environment_of(scenario, parts)
    outcome = run_and_print(scenario, parts, runs, check_options, console)
    again = read_run_record(outcome.directory)
    words, code = _compared(record.trace_hash, again.trace_hash, outcome, directory, console)
    first, *rest = words
    console.say(f"replayed  {first}")
    for line in rest:
        console.say(f"          {line}")
    console.result({**outcome_as_json(outcome), "exit_code": int(code), "replayed": "\n".join(words)})
    return code


def _compared(
    before: str | None, now: str | None, outcome: Outcome, directory: Path, console: Console
) -> tuple[tuple[str, ...], int]:
    """What the comparison says, line by line, and the exit code."""
    if now is None:
        words = f"environment {outcome.scenario.environment} keeps no trace: only verdicts can be compared"
    elif before is None:
        words = "the first run was cut short before it kept its trace: nothing to compare"
    elif before == now:
        words = f"the same, event for event (trace {now})"
    else:
        console.say(f"replayed  traces differ ({before} before, {now} now): recording two fresh runs to find where")
        difference = recorded_difference(directory)
        if difference is not None:
            words = "NOT DETERMINISTIC; the first difference between two fresh runs:"
            return (words, *str(difference).split("\n")), ExitCode.HARNESS_FAILED
        words = "two fresh runs agree with each other: the code or its versions changed since the first"
    return (words,), exit_code_of(outcome.verdict)


def recorded_difference(directory: Path) -> Difference | None:
    """Where two fresh processes with different hash seeds first part. Raises HarnessError if one of them fails."""
    with scratch.directory() as place:
        recordings = []
        for hash_seed in HASH_SEEDS:
            recording = place / f"trace-{hash_seed}.jsonl"
            recordings.append(recording)
            runs = f"{place}/runs-{hash_seed}"
            command = [sys.executable, "-m", "stormproof.session.record_trace", str(directory), runs]
            try:
                ran = supervised.run(
                    [*command, str(recording)],
                    environment={**os.environ, "PYTHONHASHSEED": hash_seed},
                    timeout_s=MOST_SECONDS,
                )
            except subprocess.TimeoutExpired:
                raise HarnessError(
                    f"the recorded run took longer than {MOST_SECONDS} s; shorten --time-limit"
                ) from None
            if ran.returncode:
                raise HarnessError(f"a recorded run failed: {ran.stderr.strip().rpartition(chr(10))[2]}")
        return first_difference(recordings[0], recordings[1])
