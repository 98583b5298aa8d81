"""`stormproof explore`: storms that nobody wrote, until one shows something."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.arrow import start_arrow
from harness.errors import UsageError
from harness.lifetime.interruption import last_words
from harness.progress import Moment
from harness.record.scenario import NONE, SIMULATED
from stormproof.cli.candidates import mutants, named, one_of, settings_of_run
from stormproof.cli.console import Console, Tone
from stormproof.cli.exit_code import ExitCode
from stormproof.cli.options import SEEDS, console_of, example, output_options
from stormproof.cli.run import settings_of
from stormproof.cli.usage import SparkMaster
from stormproof.session import engines, registry

if TYPE_CHECKING:
    from stormproof.search.compare import Compared
    from stormproof.search.search import Search, Tally, Trier
    from stormproof.search.spark_runner import OnSpark

EXAMPLES = """
stormproof explore rocketmq --for 10m
stormproof explore rocketmq --seeds 0..999 --workload log --nemesis kill,partition --set time_scale=0.1
stormproof explore rocketmq --mutant flush-lie --for 2m
stormproof explore rocketmq --environment docker --set release=5.4.0 --for 2h
stormproof explore rocketmq --mutant all --compare random --roots 5 --for 1m
"""
USUAL_S = 60.0
UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}
ALL = "all"
RANDOM = "random"
MOST_STORMS = 10_000_000


class Length(click.ParamType[float]):
    """90s, 10m, 1.5h; seconds without a unit."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        read = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([smh]?)", str(value).strip())
        seconds = float(read[1]) * UNITS_S[read[2] or "s"] if read else 0.0
        if seconds <= 0:
            raise click.UsageError(f"--for takes a time greater than 0 such as 90s, 10m or 2h, got {value!r}", ctx)
        return seconds


class Numbers(click.ParamType[range]):
    """`A..B`, both included."""

    name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> range:
        read = re.fullmatch(r"(\d{1,9})\.\.(\d{1,9})", str(value).strip())
        numbers = range(int(read[1]), int(read[2]) + 1) if read else range(0)
        if not numbers or len(numbers) > MOST_STORMS:
            raise click.UsageError(
                f"--seeds takes the first and the last of at most {MOST_STORMS:,} storms, as in 0..999, got {value!r}",
                ctx,
            )
        return numbers


@click.command("explore", epilog=example(EXAMPLES))
@click.argument("system", shell_complete=one_of(named("systems")))
@click.option("--seeds", "numbers", type=Numbers(), metavar="A..B", help="The storms with these numbers.")
@click.option(
    "--for", "seconds", type=Length(), metavar="TIME", help="As many storms as fit: 90s, 10m, 2h.  [default: 60s]"
)
@click.option("--seed", "root", type=SEEDS, metavar="X", help="Decides all storms.  [default: drawn, and printed]")
@click.option(
    "--workload",
    metavar="W",
    help="What clients do.  [default: drawn for each storm]",
    shell_complete=one_of(named("workloads")),
)
@click.option(
    "--mutant",
    metavar="M",
    help="Plant this bug in the system, or all of them one after the other, or none; ends once it is caught.",
    shell_complete=one_of(lambda context: (*mutants(context), ALL)),
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting that is the same in every storm; may be repeated.",
    shell_complete=one_of(settings_of_run),
)
@click.option(
    "--nemesis",
    metavar="N[,N…]",
    help="Make storms of these packages of faults, by comma (stormproof list nemeses).  [default: all]",
    shell_complete=one_of(named("nemeses")),
)
@click.option(
    "--environment",
    default=SIMULATED,
    show_default=True,
    metavar="E",
    help="Where storms blow. In another than the simulator they take real time and are drawn at random: one after the "
    "other; the next cluster starts while the last is in its calm.",
    shell_complete=one_of(named("environments")),
)
@click.option("--random", "at_random", is_flag=True, help="Do not be guided by what storms led to.")
@click.option(
    "--shrink/--no-shrink", default=True, show_default=True, help="Make the storms that were found small, as files."
)
@click.option("--first", is_flag=True, help="End with the first finding.")
@click.option(
    "--compare",
    type=click.Choice([RANDOM]),
    help="Search guided and at random, from several root seeds, and say which was sooner; --for is then of processor "
    "time, for each search.",
)
@click.option(
    "--roots", type=click.IntRange(1, 1000), default=5, show_default=True, metavar="N", help="How many, to compare."
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Where the rows are kept; a search that was ended goes on there.  [default: explored/…, by what is searched]",
)
@click.option(
    "--master", type=SparkMaster(), default=engines.LOCAL_MASTER, show_default=True, metavar="URL", help="Spark's."
)
@output_options
def command(
    system: str,
    numbers: range | None,
    seconds: float | None,
    root: int | None,
    workload: str | None,
    mutant: str | None,
    settings: tuple[str, ...],
    nemesis: str | None,
    environment: str,
    at_random: bool,
    shrink: bool,
    first: bool,
    compare: str | None,
    roots: int,
    into: Path | None,
    master: str,
    as_json: bool,
    progress: bool | None,
) -> int:
    """Search for storms that SYSTEM does not withstand: many, in the simulator, on Spark, each drawn at random or
    changed from one that led to something new; or, with --environment, one after the other in real time.

    The exit code is 1 where a promise was broken, 0 where none was, 2 where nothing could be judged.
    """
    if numbers is not None and seconds is not None:
        raise UsageError("--seeds and --for both say how much is tried; leave one of them out")
    if compare is not None and (at_random or into is not None):
        raise UsageError("--compare makes searches of its own; leave --random and --into out")
    registry.require_known("systems", system)
    registry.require_known("environments", environment)
    is_live = environment != SIMULATED
    if is_live and compare is not None:
        raise UsageError("--compare counts storms in the simulator; leave --environment or --compare out")
    if workload is not None:
        registry.require_known("workloads", workload)
    if not is_live:
        engines.require_engine(engines.SPARK, master)
    start_arrow()
    from stormproof.search.search import Search
    from stormproof.search.space import Space

    console = console_of(as_json, progress)
    root = secrets.randbits(31) if root is None else root
    given, packages = settings_of(system, settings, None), _packages(nemesis)
    spaces = [
        Space(system=system, workload=workload, mutant=name, settings=given, nemesis=packages, environment=environment)
        for name in _planted(system, mutant)
    ]
    searches = [Search(space=one, root=root, numbers=numbers, is_guided=not (at_random or is_live)) for one in spaces]
    _require_possible(searches)
    bound = seconds if seconds is not None or numbers is not None else USUAL_S
    bounds = _Bounds(bound, first or mutant not in (None, NONE), shrink)
    if is_live:
        return _worst(_searched_live(search, into, bounds, console) for search in searches)
    spark = _on_spark(master, console)
    if compare is not None:
        return _compared(searches, roots, bound, spark, console)
    return _worst(_searched(search, into, bounds, spark, console) for search in searches)


def _worst(codes: Iterable[ExitCode]) -> ExitCode:
    return max(codes, key=[ExitCode.VALID, ExitCode.UNKNOWN, ExitCode.INVALID].index)


def _require_possible(searches: Sequence[Search]) -> None:
    """Raises UsageError for a search that has no storms, or none with a fault."""
    from stormproof.search.sampling import require_faults

    for search in searches:
        search.space.require_possible()
        require_faults(search.space)


def _packages(nemesis: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in (nemesis or "").split(",") if name.strip()))


def _planted(system: str, mutant: str | None) -> list[str | None]:
    """Raises UsageError."""
    known = sorted(registry.system(system).mutants)
    if mutant == ALL:
        if not known:
            raise UsageError(f"{system} has no planted bugs; leave --mutant out")
        return list(known)
    return [None if mutant == NONE else mutant]


def _on_spark(master: str, console: Console) -> OnSpark:
    from checkers.spark.session import spark_session
    from stormproof.search.spark_runner import OnSpark

    console.progress(Moment(f"starting Spark on {master}"))
    return OnSpark(spark_session(master))


@dataclass(frozen=True)
class _Bounds:
    """How long one search goes on, and whether what it found is shrunk."""

    seconds: float | None
    first: bool
    shrink: bool


def _searched(search: Search, into: Path | None, bounds: _Bounds, spark: OnSpark, console: Console) -> ExitCode:
    directory = _directory(search, into)
    with spark.trying() as trier:
        tally = _tried(search, directory, bounds, trier, console)
    files = _shrunk(tally, directory, spark, console) if tally is not None and tally.causes and bounds.shrink else []
    code = _verdict(tally)
    _tell_end(search, tally, files, code, console)
    return code


def _searched_live(search: Search, into: Path | None, bounds: _Bounds, console: Console) -> ExitCode:
    """Nothing is shrunk: the same storm meets the nodes at other moments each time."""
    from stormproof.search import live

    directory = _directory(search, into)
    runs = directory / "runs"
    with live.trying(runs, console.progress) as trier:
        tally = _tried(search, directory, bounds, trier, console)
    for number in sorted(tally.invalid) if tally is not None else ():
        if (line := live.again(runs, number)) is not None:
            console.say(f"again     {line}")
    code = _verdict(tally)
    _tell_end(search, tally, [], code, console)
    return code


def _directory(search: Search, into: Path | None) -> Path:
    if into is not None and search.space.mutant is not None:
        return into / search.name
    return into or Path("explored") / search.name


def _tried(search: Search, directory: Path, bounds: _Bounds, trier: Trier, console: Console) -> Tally | None:
    from stormproof.search.search import bounded, searched
    from stormproof.search.store import Store

    store = Store(directory, search.to_json())
    console.say(f"search    {search.words()}")
    console.say(f"rows      {directory}")
    tally = None
    for tally, findings in searched(search, store, trier, goes_on=bounded(bounds.seconds, first=bounds.first)):
        for row in findings:
            _tell_finding(row, console)
        last_words("search", f"{tally.storms} storms are kept in {directory}; the same command goes on")
        console.progress(Moment(tally.words()))
    return tally


def _tell_finding(row: Mapping[str, Any], console: Console) -> None:
    console.say(f"found     storm {row['number']}: {', '.join(row['anomalies'])}", Tone.BAD)
    for line in row["words"].split("; ")[:3]:
        console.say(f"          {line}")


def _shrunk(tally: Tally, directory: Path, spark: OnSpark, console: Console) -> list[Path]:
    """Tell the causes, and keep a storm file of each."""
    from stormproof.search.findings import causes_of, keep, to_shrink

    findings = to_shrink(tally)
    console.progress(Moment(f"shrinking {len(findings)} storms"))
    causes = causes_of(spark.shrunk(findings))
    files = keep(causes, directory, lambda line: console.say(f"          {line}"))
    for cause, file in zip((cause for cause in causes if cause.smallest["trace"]), files, strict=True):
        console.say(f"cause     {cause.words()}")
        console.say(f"          stormproof replay {file}")
    return files


def _verdict(tally: Tally | None) -> ExitCode:
    if tally is None:
        return ExitCode.UNKNOWN
    if tally.causes:
        return ExitCode.INVALID
    return ExitCode.VALID if tally.verdicts.get("valid") else ExitCode.UNKNOWN


def _tell_end(search: Search, tally: Tally | None, files: list[Path], code: ExitCode, console: Console) -> None:
    if tally is not None:
        console.say(f"storms    {tally.words()}")
        for anomalies, numbers in sorted(tally.causes.items()):
            listed = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
            console.say(f"anomaly   {', '.join(anomalies)}: in {len(numbers)} storms ({listed})")
        if missed := tally.never_reached():
            console.say(f"points    never reached: {', '.join(missed)}")
    tone = {ExitCode.VALID: Tone.GOOD, ExitCode.INVALID: Tone.BAD}.get(code, Tone.DOUBT)
    console.say(f"verdict   {code.name}", tone)
    console.result(
        {
            "search": search.to_json(),
            "verdict": code.name.lower(),
            "exit_code": int(code),
            "files": [str(file) for file in files],
            **({} if tally is None else tally.to_json()),
        }
    )


def _compared(searches: list[Search], roots: int, seconds: float | None, spark: OnSpark, console: Console) -> ExitCode:
    from stormproof.search.compare import compared

    results: list[Compared] = []
    for search in searches:
        results.append(compared(search, roots, seconds, spark.as_done, console.progress))
        for line in results[-1].lines():
            console.say(line)
    console.result({"compared": [result.to_json() for result in results]})
    return ExitCode.VALID
