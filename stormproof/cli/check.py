"""`stormproof check`: stored or foreign histories judged again, also those of runs that were killed.

What is said on the command line; the work is in `stormproof.cli.checking`.
"""

from __future__ import annotations

from pathlib import Path

import click

from checkers.names import ASSUMPTIONS, MODELS
from harness.arrow import start_arrow
from harness.errors import UsageError
from results.output import STANDARD_OUTPUT
from stormproof.cli.candidates import (
    consistency_models,
    named,
    one_of,
    one_or_a_file,
    run_directories,
    settings_of_check,
)
from stormproof.cli.options import (
    checking_options,
    console_of,
    example,
    output_options,
    search_options,
    vacuity_option,
)
from stormproof.cli.usage import ModelName, OneOf
from stormproof.session.engines import CheckOptions
from stormproof.session.registry import names

EXAMPLES = """
stormproof check runs/latest
stormproof check runs/latest --engine inprocess --json
stormproof check store/latest
stormproof check store --junit junit.xml
stormproof check my-history.parquet --workload register
stormproof check queue.edn --workload queue --set delivery=exactly-once
stormproof check append.edn --workload list-append --consistency-model serializable --json
stormproof check one.edn two.json jepsen.log --model cas-register --initial 0 --engine inprocess
"""


@click.command("check", epilog=example(EXAMPLES))
@click.argument(
    "paths",
    metavar="PATH…",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    shell_complete=one_or_a_file(run_directories),
)
@click.option(
    "--workload",
    metavar="W",
    help=f"What a history without its run is a history of: {', '.join(names('workloads'))}.",
    shell_complete=one_of(named("workloads")),
)
@click.option(
    "--model",
    type=ModelName(MODELS),
    metavar="MODEL",
    help=f"The object that it is a history of: {', '.join(MODELS)}; or module:NAME of a model of one's own.",
)
@click.option("--initial", metavar="JSON", help="What that object begins with; null, empty or 0 by default.")
@click.option(
    "--failed-cas",
    type=OneOf("meaning of a failed cas", ["ignored", "answer"]),
    help="Whether a failed cas without an error proves nothing (the default), or that it found another value.",
)
@click.option(
    "--null-reads",
    type=OneOf("meaning of a read of null", ["empty", "unknown"]),
    help="Whether an ok read of null found the register empty (the default), or says nothing, as Knossos takes it.",
)
@click.option(
    "--consistency-model",
    metavar="NAME",
    help="What transactions must keep to, e.g. snapshot-isolation (stormproof list models); strict-serializable "
    "by default.",
    shell_complete=one_of(consistency_models),
)
@click.option(
    "--assume",
    multiple=True,
    type=OneOf("assumption", ASSUMPTIONS),
    help="What orders the versions of a register: each session, that transactions write after what they read, or "
    "realtime. Nothing by default.",
)
@click.option(
    "--certify",
    metavar="FILE",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write an order for each object that has one, as --model sees it; of transactions the order or the proof, "
    "which names what it assumes. - is standard output.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of that workload.",
    shell_complete=one_of(settings_of_check),
)
@click.option(
    "--function",
    "functions",
    multiple=True,
    metavar="NAME=FUNCTION",
    help="What clients call otherwise: broadcast=add; debit=-add, where one takes what the other adds. Also in a file "
    "beside the history, HISTORY.toml, in its table functions.",
)
@click.option(
    "--order",
    type=OneOf("order", ["time"]),
    help="time: the rows of the history are not written in the order in which they happened, and their times say it.",
)
@click.option(
    "--junit",
    metavar="FILE",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Write the verdicts as JUnit's XML, a case for each history; - is standard output.",
)
@search_options
@vacuity_option
@checking_options
@output_options
def command(
    paths: tuple[Path, ...],
    workload: str | None,
    model: str | None,
    initial: str | None,
    failed_cas: str | None,
    null_reads: str | None,
    consistency_model: str | None,
    assume: tuple[str, ...],
    certify: Path | None,
    settings: tuple[str, ...],
    functions: tuple[str, ...],
    order: str | None,
    junit: Path | None,
    runs: Path,
    check_options: CheckOptions,
    as_json: bool,
    progress: bool | None,
) -> int:
    """Check each PATH again: a run directory, also of a run that was killed, or a history with --workload or --model.

    Histories are ours (.parquet, .arrows), or Jepsen's: EDN or JSON (a vector, a list, an array, or one map a
    line; keys as :key or lifted into values, [k v]), or lines of its log; in UTF-8, plain, gzip or zstd, of any length.
    Which it is is seen from its bytes, and what it is a history of from its operations, unless --workload or --model
    say it. PATH may be a pipe, such as <(xz -dc h.edn.xz), or - for standard input; or a directory of a test of
    Jepsen's (store/latest), whose results.edn is compared with our verdict. A directory of tests or runs (store), or a
    tar archive of tests, stands for all that lie in it: each gets a line.
    A run directory is judged as its scenario says: options that say what a history is one of are refused for it.

    --json prints one object a line for each PATH, in that order: path, verdict (null if there is none), anomalies,
    seconds, exit_code, reasons, and for bad input error; of transactions also model, and of all models ruled_out,
    strongest and undecided. Only a history that is checked alone gets a report.
    Exit codes: 0 valid, 1 invalid, 2 unknown, 254 wrong usage or a malformed history, 255 the harness failed. Over
    several: invalid outranks all, then a failed harness, then bad input, then unknown.
    """
    _require_apart(certify, junit)
    start_arrow()
    # Not before: help, completion and a misspelt option need nothing of what reads and judges.
    from stormproof.cli.check_options import HistoryOptions
    from stormproof.cli.checking import check_all

    options = HistoryOptions(
        workload=workload,
        model=model,
        initial=initial,
        failed_cas=failed_cas,
        null_reads=null_reads,
        consistency_model=consistency_model,
        assume=assume,
        certify=certify,
        settings=settings,
        functions=functions,
        order=order,
    )
    return check_all(paths, options, runs, check_options, console_of(as_json, progress, file=certify or junit), junit)


def _require_apart(certify: Path | None, junit: Path | None) -> None:
    """Raises UsageError for two files that would both be standard output."""
    if STANDARD_OUTPUT in (certify, junit) and certify == junit:
        raise UsageError("--certify and --junit cannot both be written to standard output")
