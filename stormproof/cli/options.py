"""Options that several commands share, worded once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from checkers.api.verdict import Vacuous
from checkers.search_budget import USUAL, Effort, Searches
from harness.errors import UsageError
from stormproof.cli.console import Console, Output, Watching
from stormproof.cli.usage import OneOf, SparkMaster
from stormproof.session.engines import CheckOptions
from stormproof.session.output_file import STANDARD_OUTPUT

F = TypeVar("F", bound=Callable[..., Any])

SEEDS = click.IntRange(0, 2**63 - 1)


def vacuity_option(command: F) -> F:
    """--accept-vacuous, as a Vacuous called `vacuous`."""
    return click.option(
        "--accept-vacuous",
        "vacuous",
        is_flag=True,
        flag_value=Vacuous.ACCEPTED,
        type=click.UNPROCESSED,
        default=Vacuous.UNKNOWN,
        help="Take a pass that nothing could have contradicted for VALID, and say so; it is unknown otherwise.",
    )(command)


LONGEST_S = 1_000_000
"""Eleven days."""


def search_options(command: F) -> F:
    """--give-up-after and --all-findings, as an Effort called `effort`."""

    @functools.wraps(command)
    def with_effort(*, give_up_after: float | None, searches: Searches, **others: Any) -> Any:
        return command(effort=Effort(give_up_after_s=give_up_after, searches=searches), **others)

    of_searches = click.option(
        "--all-findings",
        "searches",
        is_flag=True,
        flag_value=Searches.ALL,
        type=click.UNPROCESSED,
        default=Searches.UNTIL_INVALID,
        help="Search every object that has to be searched; otherwise no search begins once one object was found not to "
        "be linearizable, and those that were left are named.",
    )(with_effort)
    of_both = click.option(
        "--give-up-after",
        metavar="SECONDS",
        type=float,
        callback=_seconds,
        help="End searches for an order of operations after so long; what is undecided by then is UNKNOWN, and how far "
        "each came is printed. What takes time in proportion to the history is given up soon after it as well. By "
        "default only steps and memory bound searches.",
    )(of_searches)
    return cast(F, of_both)


def _seconds(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 < value <= LONGEST_S:
        raise click.BadParameter(f"it takes seconds, more than 0 and at most {LONGEST_S}, got {value:g}")
    return value


def capture_option(command: F) -> F:
    """--capture, as `capture`."""
    return click.option(
        "--capture",
        is_flag=True,
        help="Keep the packets of each node, the newest 64 MB, as nodes/<node>/packets.pcap, and those of the minute "
        "before an anomaly apart, as anomaly.pcap; in containers and over SSH.",
    )(command)


def checking_options(command: F) -> F:
    """--runs as `runs`; --engine and --master, with the Vacuous and the Effort of options before them, as CheckOptions
    called `check_options`."""

    @functools.wraps(command)
    def with_check_options(
        *, engine: str, master: str | None, vacuous: Vacuous = Vacuous.UNKNOWN, effort: Effort = USUAL, **others: Any
    ) -> Any:
        options = CheckOptions(engine=engine, master=master, vacuous=vacuous, effort=effort)
        return command(check_options=options, **others)

    decorated = cast(F, with_check_options)
    for option in reversed(
        [
            click.option(
                "--runs",
                type=click.Path(path_type=Path, file_okay=False),
                default=Path("runs"),
                show_default=True,
                metavar="DIR",
                help="Where run directories are made.",
            ),
            engine_option(),
            click.option(
                "--master",
                type=SparkMaster(),
                metavar="URL",
                help="Check on Spark with this master: local[2], spark://host:7077, yarn, k8s://…  "
                "[default: local[*], where Spark is chosen]",
            ),
        ]
    ):
        decorated = option(decorated)
    return decorated


def engine_option() -> Callable[[F], F]:
    return click.option(
        "--engine",
        type=OneOf("engine", ["auto", "spark", "inprocess"]),
        default="auto",
        show_default=True,
        help="Where checkers run: on Spark, or the same kernels in this process; auto takes what is faster for so many "
        "rows and has the memory, and says why.",
    )


def output_options(command: F) -> F:
    """--json and --progress/--quiet; `console_of` makes a Console of them."""
    command = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on standard output.")(command)
    return click.option(
        "--progress/--quiet",
        "progress",
        default=None,
        help="Show progress on standard error, or nothing at all.  [default: on a terminal; elsewhere what takes long "
        "says every ten seconds how far it is]",
    )(command)


def console_of(as_json: bool, progress: bool | None, *, file: Path | None = None) -> Console:
    """`file` is one that the command writes, perhaps to standard output. Raises UsageError if two things go there."""
    if file != STANDARD_OUTPUT:
        return Console(output=Output.JSON if as_json else Output.TEXT, watching=Watching.when(progress))
    if as_json:
        raise UsageError("standard output holds what --json prints or the file -, not both; name a file")
    return Console(output=Output.FILE, watching=Watching.when(progress))


def example(text: str) -> str:
    """An epilog that shows commands as they are typed."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in text.strip().splitlines())
