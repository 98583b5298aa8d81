"""A scenario is carried out in its environment; what stays is a run directory: record, history, fault log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from harness.abilities import Watched
from harness.client_names import client_names
from harness.environments.environment import Environment
from harness.environments.kind import EnvironmentKind, Setting
from harness.errors import HarnessError
from harness.lifetime.interruption import last_words
from harness.progress import Progress
from harness.record.recorder import DirectoryRecorder
from harness.record.run_directory import RunDirectory
from harness.record.run_record import RunRecord, write_run_record
from harness.record.scenario import Scenario
from harness.run import FactsSoFar, Means, Plan, Record, execute
from harness.seed import Seed
from harness.watch import Watch
from nemesis.nemesis import Nemesis
from nemesis.schedule import Entry, Schedule, Scheduled, quorum
from nemesis.schedule_file import schedule_text
from nemesis.vocabulary import CLIENTS
from stormproof.session.outcome import replay_line, scenario_name, schedule_line, versions
from stormproof.session.registry import Parts


@dataclass(frozen=True, kw_only=True)
class Executed:
    """A run that has ended, one way or another."""

    directory: RunDirectory
    complete: bool
    """Its final reads were done."""
    failure: HarnessError | None
    """What the harness or the environment failed with."""


def execute_scenario(
    scenario: Scenario,
    parts: Parts,
    kind: EnvironmentKind,
    *,
    runs: Path,
    progress: Progress,
    recording: Path | None = None,
) -> Executed:
    """Carry it out in a fresh run directory under `runs`.

    Raises UsageError where none can be made, HarnessError where the record cannot be written.
    """
    directory = RunDirectory.create(runs, scenario_name(scenario), scenario.seed)
    record = RunRecord(scenario=scenario, versions=versions(), replay=replay_line(scenario, directory.path))
    write_run_record(directory, record)
    if entries := entries_of(scenario, parts):
        directory.write_text(directory.schedule, schedule_text(entries, schedule_line(scenario, parts, directory.path)))
    last_words("record", f"what was recorded is kept; for a verdict over it: stormproof check {directory.path}")
    progress(f"run directory {directory.path}")
    failure: HarnessError | None = None
    facts = FactsSoFar()
    try:
        nodes = parts.system.nodes(parts.system_settings, scenario.mutant)
        _, reported = kind.run(
            lambda environment: execute(
                plan_of(scenario, parts),
                environment,
                DirectoryRecorder(directory, parts.workload.value_type),
                facts,
                progress,
            ),
            Setting(
                nodes=nodes,
                seed=Seed(scenario.seed),
                world=scenario.world,
                say=progress,
                recording=recording,
                inventory=scenario.inventory,
                captures=scenario.capture,
                real_clocks=scenario.real_clock,
                faults=frozenset(entry.shape.kind for entry in entries),
            ),
        )
        record = replace(record, environment=reported)
    except (HarnessError, OSError) as error:
        failure = first_failure(error)
        progress(f"harness: {failure}")
        if not facts.complete:
            facts.reasons.append(f"the harness failed: {failure}")
    try:
        write_run_record(directory, replace(record, facts=facts.facts()))
    except HarnessError as error:
        raise failure or error from None
    return Executed(directory=directory, complete=facts.complete, failure=failure)


def first_failure(error: HarnessError | OSError) -> HarnessError:
    """What went wrong first: on a full disk the teardown fails as well, and its error is the one that arrives."""
    first: BaseException = error
    context = error.__context__
    while context is not None:
        if isinstance(context, HarnessError):
            first = context
        context = context.__context__
    if isinstance(first, OSError):
        return HarnessError(f"{first.filename or 'a file of the run'}: {first.strerror or first}")
    return first if isinstance(first, HarnessError) else HarnessError(str(first))


def entries_of(scenario: Scenario, parts: Parts) -> tuple[Entry, ...]:
    """The faults of all packages, without the one that takes nodes down for --liveness."""
    seed = Seed(scenario.seed).child("nemesis")
    storm_s = scenario.time_limit_s - scenario.liveness_s
    chosen = zip(parts.packages, parts.nemesis_settings, strict=True)
    return tuple(entry for package, settings in chosen for entry in package.schedule(seed, settings, storm_s))


def plan_of(scenario: Scenario, parts: Parts) -> Plan:
    """The scenario with one client that carries out the schedules of all packages."""
    entries = entries_of(scenario, parts)
    storm_s = scenario.time_limit_s - scenario.liveness_s
    if scenario.liveness_s:
        entries += (quorum(parts.declaration.spare, from_s=storm_s, until_s=scenario.time_limit_s),)
    due = Schedule(entries, round(storm_s * 1e9)).due()

    def nemesis(environment: Environment, watch: Watch, means: Means, record: Record) -> Nemesis:
        return Nemesis(
            environment=environment,
            groups={**parts.vocabulary.groups, CLIENTS: client_names(scenario.concurrency)},
            machines=parts.vocabulary.machines,
            roles=means.roles,
            roles_now=watch.roles if environment.moments is not None and isinstance(parts.system, Watched) else None,
            membership=means.membership,
            acts=means.acts,
            due=due,
            seed=Seed(scenario.seed).child("nemesis"),
            record=record,
        )

    return Plan(
        scenario=scenario,
        system=parts.system,
        system_settings=parts.system_settings,
        workload=parts.workload,
        workload_settings=parts.workload_settings,
        nemesis=nemesis,
        nemesis_generator=(lambda start_ns: Scheduled(due, start_ns)) if due else None,
    )
