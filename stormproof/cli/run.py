"""`stormproof run`: one scenario, one verdict."""

from __future__ import annotations

import dataclasses
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.arrow import start_arrow
from harness.errors import UsageError
from harness.record.run_directory import require_writable_directory
from harness.record.scenario import BOUNDS, DRAWN, NONE, SIMULATED, WORLDS, Scenario, SettingValue, nemesis_names
from stormproof.cli.candidates import mutants, named, nemeses, one_of, settings_of_run
from stormproof.cli.console import Console
from stormproof.cli.exit_code import exit_code_of
from stormproof.cli.options import (
    SEEDS,
    capture_option,
    checking_options,
    console_of,
    example,
    output_options,
    search_options,
    vacuity_option,
)
from stormproof.session import registry
from stormproof.session.engines import CheckOptions, require_engine

if TYPE_CHECKING:
    from stormproof.session.outcome import Outcome

EXAMPLES = """
stormproof run rocketmq --nemesis partition,kill,clock --time-limit 60
stormproof run rocketmq --workload register --rate 200 --seed 1729
stormproof run rocketmq --nemesis 'isolate primary every 12 for 6' --mutant dispatch-to-max --rate 200
stormproof run rocketmq --environment docker --nemesis partition,pause --set brokers=3 --set flush=async
"""


@click.command("run", epilog=example(EXAMPLES))
@click.argument("system", shell_complete=one_of(named("systems")))
@click.option(
    "--environment",
    default=SIMULATED,
    show_default=True,
    metavar="E",
    help="Where nodes run and faults are applied: simulated, docker, ssh, …",
    shell_complete=one_of(named("environments")),
)
@click.option(
    "--inventory",
    type=click.Path(),
    default="",
    metavar="FILE",
    help="The machines that nodes run on, a TOML file; for the environment ssh.",
)
@click.option(
    "--world",
    default=DRAWN,
    show_default=True,
    metavar="W",
    help="Of the simulator: drawn from the seed; near, drawn with hosts milliseconds apart; or calm, a quiet rack.",
    shell_complete=one_of(lambda context: WORLDS),
)
@click.option(
    "--workload",
    metavar="W",
    help="What clients do and what must hold.  [default: log, or the first that the system serves]",
    shell_complete=one_of(named("workloads")),
)
@click.option(
    "--nemesis",
    metavar="N[,N…]",
    help="Packages of faults or sentences, by comma; or none (stormproof list nemeses).  [default: none]",
    shell_complete=nemeses,
)
@click.option(
    "--schedule",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Run exactly the faults of this file, such as the schedule.txt of a run, instead of --nemesis.",
)
@click.option("--nodes", type=int, metavar="K", help="How many nodes, or nodes of the group that matters most.")
@click.option(
    "--concurrency",
    type=int,
    default=10,
    show_default=True,
    metavar="C",
    help=f"Clients at once, {BOUNDS['concurrency']}.",
)
@click.option(
    "--rate",
    type=float,
    default=100.0,
    show_default=True,
    metavar="R",
    help=f"Operations a second, {BOUNDS['rate']}; 0: no limit.",
)
@click.option(
    "--operations",
    default="",
    metavar="N[,N-M…]",
    help="Only these of the storm's operations, by number from 0, such as 3,17-20.  [default: all]",
)
@click.option(
    "--time-limit",
    type=float,
    default=60.0,
    show_default=True,
    metavar="S",
    help=f"Seconds the storm lasts, {BOUNDS['time_limit_s']}.",
)
@click.option(
    "--recovery",
    type=float,
    default=20.0,
    show_default=True,
    metavar="S",
    help=f"Seconds of calm before final reads, {BOUNDS['recovery_s']}.",
)
@click.option(
    "--liveness",
    type=float,
    default=0.0,
    show_default=True,
    metavar="S",
    help="Demand progress in the last S seconds, with a quorum healed and the rest down, at most the time limit; "
    "0: no such demand.",
)
@click.option(
    "--max-outage",
    type=float,
    default=0.0,
    show_default=True,
    metavar="S",
    help="Demand that no client is refused for longer than S seconds until served again for good, "
    f"{BOUNDS['max_outage_s']}; 0: no such demand.",
)
@click.option("--seed", type=SEEDS, metavar="X", help="Decides every choice.  [default: drawn, and printed]")
@click.option(
    "--mutant",
    metavar="M",
    help="Plant this bug in the system, or none (stormproof list mutants).",
    shell_complete=one_of(mutants),
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting; may be repeated.",
    shell_complete=one_of(settings_of_run),
)
@click.option(
    "--real-clock",
    is_flag=True,
    help="Let wrong clocks be those of whole machines, which the inventory lends by real_clock = true; for the "
    "environment ssh.",
)
@capture_option
@search_options
@vacuity_option
@checking_options
@output_options
def command(
    system: str,
    environment: str,
    inventory: str,
    world: str,
    workload: str | None,
    nemesis: str | None,
    schedule: Path | None,
    nodes: int | None,
    concurrency: int,
    rate: float,
    operations: str,
    time_limit: float,
    recovery: float,
    liveness: float,
    max_outage: float,
    seed: int | None,
    mutant: str | None,
    settings: tuple[str, ...],
    real_clock: bool,
    capture: bool,
    runs: Path,
    check_options: CheckOptions,
    as_json: bool,
    progress: bool | None,
) -> int:
    """Put SYSTEM through a storm and decide whether it kept its promises.

    The exit code is the verdict: 0 valid, 1 invalid, 2 unknown; 254 wrong usage, 255 the harness failed.
    """
    if nemesis is not None and schedule is not None:
        raise UsageError("--schedule says itself which faults strike; leave it or --nemesis out")
    scenario = Scenario(
        system=system,
        workload=registry.USUAL if workload is None else workload,
        nemesis=nemesis_names(NONE if nemesis is None else nemesis),
        schedule=() if schedule is None else schedule_lines(schedule),
        environment=environment,
        inventory=inventory,
        real_clock=real_clock,
        capture=capture,
        world=world,
        settings=settings_of(system, settings, nodes),
        mutant=None if mutant == NONE else mutant,
        concurrency=concurrency,
        rate=rate,
        operations=operations,
        time_limit_s=time_limit,
        recovery_s=recovery,
        liveness_s=liveness,
        max_outage_s=max_outage,
        seed=secrets.randbits(31) if seed is None else seed,
    )
    if workload is None:
        scenario = with_usual_workload(scenario)
    return run_one(scenario, runs, check_options, console_of(as_json, progress))


def schedule_lines(path: Path) -> tuple[str, ...]:
    """The lines of a schedule file, a fault or a comment each. Raises UsageError for one that is empty."""
    from nemesis.schedule_file import lines_of

    lines = lines_of(path)
    if not any(lines):
        raise UsageError(f"schedule file {path} is empty; for a run without faults say --nemesis none")
    return lines


def with_usual_workload(scenario: Scenario) -> Scenario:
    """The same, with what its system is put on trial with where nobody says otherwise. Raises UsageError."""
    registry.require_names(scenario)
    registry.require_known("environments", scenario.environment)
    start_arrow()
    return dataclasses.replace(scenario, workload=registry.usual_workload(scenario.system))


def run_one(scenario: Scenario, runs: Path, check_options: CheckOptions, console: Console) -> int:
    """Run it, print the outcome; returns the exit code."""
    registry.require_names(scenario)
    registry.require_known("environments", scenario.environment)
    # Not before: help and misspelt names need nothing of what runs and judges, which takes a second to import.
    start_arrow()
    parts = registry.resolve(scenario)
    registry.environment_of(scenario, parts)
    return exit_code_of(run_and_print(scenario, parts, runs, check_options, console).verdict)


def run_and_print(
    scenario: Scenario, parts: registry.Parts, runs: Path, check_options: CheckOptions, console: Console
) -> Outcome:
    """Run it, and print how it begins and what it came to. Raises UsageError, HarnessError."""
    require_writable_directory(runs)
    from stormproof.cli.outcome_text import tell_outcome, tell_start
    from stormproof.session.run import run_scenario

    tell_start(scenario, console)
    require_engine(check_options.engine, check_options.master)
    outcome = run_scenario(scenario, parts=parts, runs=runs, options=check_options, progress=console.progress)
    tell_outcome(outcome, console)
    return outcome


def settings_of(system: str, options: tuple[str, ...], nodes: int | None) -> dict[str, SettingValue]:
    """`--set` and `--nodes` as settings. Raises UsageError for a key given twice."""
    settings: dict[str, SettingValue] = {}
    pairs = [registry.parse_setting(text) for text in options]
    if nodes is not None:
        pairs.append((_node_count(system), nodes))
    for key, value in pairs:
        if key in settings:
            raise UsageError(f"the setting {key} is given twice: {settings[key]} and {value}; give it once")
        settings[key] = value
    return settings


def _node_count(system: str) -> str:
    """The setting that `--nodes` sets: `nodes`, or that of the system's most important group, if named as the group.

    Raises UsageError where there is none of these.
    """
    found, settings = registry.configured_system(system, {})
    known = {field.name for field in dataclasses.fields(found.settings_type)}
    for name in ("nodes", *found.cluster(settings).groups[:1]):
        if name in known:
            return name
    raise UsageError(f"{system} has no single number of nodes; use --set with one of: {', '.join(sorted(known))}")
