"""From a scenario to a verdict: run it, close the history, check it, write what people and machines read.

The analysis happens even where the run was cut short or its teardown failed, and a failure of the harness
never hides a verdict already reached.
"""

from __future__ import annotations

import platform
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from checkers.availability import Availability
from checkers.history_batches import history_rows
from checkers.liveness import Liveness
from checkers.plan import CheckRequest, Engine, RunUnderCheck
from checkers.replication import ClusterChecker
from checkers.run import check_history
from checkers.statistics import Statistics
from checkers.vacuity import Vacuity
from checkers.verdict import CheckerResult, Vacuous, Verdict, accepted, judged_as, merge
from harness import path_name
from harness.bounds import shown
from harness.environments.environment import Environment
from harness.environments.kind import Setting
from harness.errors import HarnessError, UsageError
from harness.lifetime.interruption import last_words
from harness.progress import Moment, Progress, unwatched
from harness.reading import json_kept
from harness.record.facts import RunFacts
from harness.record.fault_log import read_fault_log
from harness.record.history import MalformedHistory, close_torn
from harness.record.node_events import write_node_events
from harness.record.run_directory import RunDirectory, require_writable_directory
from harness.record.scenario import Scenario
from harness.run import FactsSoFar, Plan, Record, Roles, execute
from harness.seed import Seed
from harness.session import engines
from harness.session import resolve as registry
from harness.session.resolve import Parts
from harness.system import NodeSpec
from nemesis.beat import quorum
from nemesis.nemesis import Nemesis
from nemesis.schedule import Scheduled, together
from results.junit import Case, anomalies_in_words, write_junit
from results.report import write_report
from results.verdict_file import ACCEPTED, Checking, VerdictFile, write_verdict

VERSIONED = ("stormproof", "pyspark", "pyarrow", "numpy", "numba", "pandas")
RECORDED: Mapping[str, type] = {
    "versions": dict,
    "replay": str,
    "facts": dict,
    "regime": dict,
    "trace_hash": str,
    "trace_events": int,
    "reached": dict,
    "images": dict,
    "world": object,
}
"""What `scenario.json` holds beside the scenario itself."""
NODE_EVENTS = "node-events.parquet"
EXIT_CODES = {Verdict.VALID: 0, Verdict.INVALID: 1, Verdict.UNKNOWN: 2}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run came to, as far as the caller needs it; the rest is in the directory."""

    directory: Path
    scenario: Scenario
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    """Beside the anomalies, which the results tell."""
    results: Mapping[str, CheckerResult] = field(default_factory=dict)
    operations: Mapping[str, Any] = field(default_factory=dict)
    faults: Mapping[str, Any] = field(default_factory=dict)
    regime: Mapping[str, Any] = field(default_factory=dict)
    """The kind of world that the simulator drew from the seed."""
    checked: str = ""
    """By which engine, and why; empty where there was nothing to check."""
    seconds: float = 0.0
    problems: tuple[str, ...] = ()
    """What went wrong beside the verdict and does not touch it: a file that could not be written."""

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]

    @property
    def accepted(self) -> tuple[str, ...]:
        """Why the verdict would be vacuous, if that was accepted."""
        return accepted(self.results)

    @property
    def report(self) -> Path:
        return self.directory / "report.html"

    def anomalies(self) -> dict[str, int]:
        """Counts of the anomalies that are not legal, by name."""
        return {
            name: summary.count
            for result in self.results.values()
            for name, summary in sorted(result.anomalies.items())
            if summary.count and not summary.legal
        }

    def words(self) -> str:
        return anomalies_in_words(self.reasons, self.results)

    def assert_valid(self) -> None:
        """Raises AssertionError with the anomalies, their witnesses, and the line that replays the run."""
        if self.verdict is not Verdict.VALID:
            raise AssertionError(
                f"{self.verdict.value.upper()}\n{self.words()}\nreport: {self.report}\n"
                f"replay: {replay_line(self.scenario)}"
            )


def run_scenario(
    scenario: Scenario,
    *,
    runs: Path = Path("runs"),
    engine: str = engines.AUTO,
    master: str | None = None,
    vacuous: Vacuous = Vacuous.UNKNOWN,
    progress: Progress = unwatched,
    recording: Path | None = None,
) -> Outcome:
    """Run and judge one scenario.

    Raises UsageError before anything was started, HarnessError where the harness failed before the final reads
    were done and what was recorded until then breaks no promise.
    """
    parts = registry.resolve(scenario)
    world = registry.world(scenario, parts.packages)
    started = time.monotonic()
    expected = engines.choose(
        engine, master, rows=engines.rows_of_storm(scenario), judged=scenario.workload, estimated=True
    )
    progress(f"engine {expected.words()}")
    progress(Moment(f"starting engine {expected.name}"))
    engines.make_engine(expected)  # a Spark that does not start is known before the storm, not after it
    directory = RunDirectory.create(runs, scenario_name(scenario), scenario.seed)
    record: dict[str, Any] = {**scenario.to_json(), "versions": versions(), "replay": replay_line(scenario)}
    directory.write_json("scenario.json", record)
    last_words("record", f"what was recorded is kept; for a verdict over it: stormproof check {directory.path}")
    progress(f"run directory {directory.path}")
    failure: HarnessError | None = None
    facts = FactsSoFar()
    try:
        nodes = parts.system.nodes(parts.system_settings, scenario.mutant)
        _, found = world.run(
            lambda environment: execute(plan_of(scenario, parts), environment, directory, facts, progress),
            Setting(nodes=nodes, seed=Seed(scenario.seed), say=progress, recording=recording),
        )
        record.update(found)
    except (HarnessError, OSError) as error:
        failure = first_failure(error)
        progress(f"harness: {failure}")
        if not facts.complete:
            facts.reasons.append(f"the harness failed: {failure}")
    record["facts"] = facts.facts().to_json()
    try:
        directory.write_json("scenario.json", record)
        outcome = check_run(
            directory.path, engine=engine, master=master, vacuous=vacuous, progress=progress, started=started
        )
    except (HarnessError, UsageError) as error:
        raise failure or error from None
    if failure is None:
        return outcome
    if outcome.verdict is Verdict.INVALID or facts.complete:
        return replace(outcome, problems=(f"the harness failed: {failure}", *outcome.problems))
    raise failure


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


def check_run(
    directory: Path,
    *,
    engine: str = engines.AUTO,
    master: str | None = None,
    vacuous: Vacuous = Vacuous.UNKNOWN,
    progress: Progress = unwatched,
    started: float | None = None,
) -> Outcome:
    """Judge a run directory, also one whose harness was killed: over what was recorded.

    Raises UsageError where the directory is no run, MalformedHistory where its history is broken.
    """
    started = time.monotonic() if started is None else started
    scenario, record = read_scenario(directory)
    parts = registry.resolve(scenario)
    require_writable_directory(directory)
    recorded = recorded_history(directory)
    facts = RunFacts.from_json(record.get("facts", {}))
    reasons = [*facts.reasons]
    if recorded.cut_short or "facts" not in record:
        reasons.insert(0, f"the run was cut short{recorded.cut_short}")
    faults = read_fault_log(directory / "nemesis.jsonl")
    legal = parts.system.legal_loss(parts.system_settings, faults.struck)
    try:
        node_events = write_node_events(directory / "nodes", directory / NODE_EVENTS)
    except ValueError as error:
        raise UsageError(f"the nodes' events in {directory / 'nodes'} cannot be read: {error}") from None
    run = RunUnderCheck(
        facts=facts,
        faults=faults,
        faults_asked=tuple(sorted({kind for package in parts.packages for kind in package.fault.split("+")})),
        required_ok=parts.workload.required_ok,
        required_share=parts.workload.required_share,
        concurrency=scenario.concurrency,
        recovery_limit_s=scenario.max_outage_s or None,
        node_events=node_events,
    )
    results: Mapping[str, CheckerResult] = {}
    source: Checking | None = None
    checked = ""
    if recorded.history is not None:
        legal_here = {name: legal.reason for name in legal.anomalies}
        request = CheckRequest(history=recorded.history, repeats=parts.workload.repeats, legal=legal_here, run=run)
        chosen = engines.choose(engine, master, rows=history_rows(recorded.history), judged=scenario.workload)
        checked = chosen.words()
        progress(f"checking {recorded.history} {checked}")
        progress(Moment(f"starting engine {chosen.name}"))
        used = engines.make_engine(chosen)
        begun = time.monotonic()
        source = Checking(
            history=str(recorded.history.resolve()),
            judged_as="",
            engine=used.name,
            engine_because=chosen.because,
            command=check_line(directory, *vacuity_arguments(vacuous), "--engine", used.name),
        )
        results = check_history(request, checkers_of(scenario, parts), used, begins=checking(used, progress))
        results = judged_as(results, vacuous)
        progress(f"checked in {time.monotonic() - begun:.1f} s")
        progress(Moment("drawing the report"))
    verdict = merge(result.verdict for result in results.values())
    if verdict is Verdict.VALID and reasons:
        verdict = Verdict.UNKNOWN
    for result in results.values():
        reasons += [reason for reason in result.reasons if reason not in reasons]
    outcome = Outcome(
        directory=directory,
        scenario=scenario,
        verdict=verdict,
        reasons=tuple(reasons),
        results=results,
        operations=results["statistics"].statistics.get("operations", {}) if "statistics" in results else {},
        faults=faults.counts,
        checked=checked,
        regime=record.get("regime", {}),
        seconds=time.monotonic() - started,
    )
    problems = write_outcome(outcome, record.get("versions", {}), source)
    for problem in problems:
        progress(problem)
    return replace(outcome, problems=problems)


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """What there is of a run's history."""

    history: Path | None
    """None where nothing was recorded."""
    cut_short: str = ""
    """How the recording ended, where it was cut short."""


def recorded_history(directory: Path) -> Recorded:
    """The closed history of a run; where it was killed, what is whole of the stream, closed now."""
    closed, stream = directory / "history.parquet", directory / "history.arrows"
    if closed.exists():
        return Recorded(history=closed)
    if not stream.exists():
        return Recorded(history=None, cut_short=" before it began")
    try:
        return Recorded(history=closed, cut_short=f": {close_torn(stream)}")
    except MalformedHistory:
        return Recorded(history=None, cut_short=" before anything was recorded")


def plan_of(scenario: Scenario, parts: Parts) -> Plan:
    """The scenario with its nemesis composed: the packages' schedules merged, one client to carry them out."""
    seed = Seed(scenario.seed).child("nemesis")
    storm_s = scenario.time_limit_s - scenario.liveness_s
    schedules = [
        package.schedule(seed, settings, storm_s)
        for package, settings in zip(parts.packages, parts.nemesis_settings, strict=True)
    ]
    if scenario.liveness_s:
        schedules.append(quorum(parts.declaration.spare, from_s=storm_s, until_s=scenario.time_limit_s))
    schedule = together(schedules)

    def nemesis(environment: Environment, nodes: tuple[NodeSpec, ...], roles: Roles, record: Record) -> Nemesis:
        return Nemesis(
            environment=environment,
            groups=parts.vocabulary.groups,
            roles=roles,
            schedule=schedule,
            seed=seed,
            record=record,
        )

    return Plan(
        scenario=scenario,
        system=parts.system,
        system_settings=parts.system_settings,
        workload=parts.workload,
        workload_settings=parts.workload_settings,
        nemesis=nemesis,
        nemesis_generator=(lambda start_ns: Scheduled(schedule, start_ns)) if schedule else None,
    )


def checkers_of(scenario: Scenario, parts: Parts) -> dict[str, Any]:
    checkers = {
        **parts.workload.checkers(parts.workload_settings),
        "statistics": Statistics(),
        "vacuity": Vacuity(subject=f"workload {scenario.workload}", evidence=parts.workload.evidence),
        "availability": Availability(),
        "cluster": ClusterChecker(),
    }
    return {**checkers, "liveness": Liveness()} if scenario.liveness_s else checkers


def write_outcome(outcome: Outcome, versions_: Mapping[str, Any], checking: Checking | None) -> tuple[str, ...]:
    """Write verdict.json first; a page that cannot be drawn never touches it. Returns what failed, in words."""
    content = VerdictFile(
        verdict=outcome.verdict,
        reasons=outcome.reasons,
        checkers=outcome.results,
        operations=outcome.operations,
        faults=outcome.faults,
        versions=versions_,
        checking=checking,
    )
    problems = []
    try:
        write_verdict(outcome.directory, content)
        write_junit(outcome.directory / "junit.xml", scenario_name(outcome.scenario), [case_of(outcome)])
    except OSError as error:
        problems.append(f"the verdict could not be written to {outcome.directory}: {error.strerror or error}")
    problem = write_report(outcome.directory)
    return tuple([*problems, problem] if problem else problems)


def case_of(outcome: Outcome) -> Case:
    scenario = outcome.scenario
    return Case(
        name=f"{scenario_name(scenario)}-{scenario.seed}",
        seconds=outcome.seconds,
        verdict=outcome.verdict,
        words=outcome.words(),
        notes={
            "seed": str(scenario.seed),
            "report": str(outcome.report),
            "replay": replay_line(scenario),
            **vacuity_note(outcome.accepted),
        },
    )


def vacuity_note(reasons: tuple[str, ...]) -> dict[str, str]:
    """What a case of `junit.xml` says where a vacuous pass was accepted."""
    return {ACCEPTED: "; ".join(reasons)} if reasons else {}


def scenario_name(scenario: Scenario) -> str:
    parts = [scenario.system, scenario.workload, *scenario.nemesis, scenario.mutant or ""]
    return path_name.made_of("-".join(part for part in parts if part), otherwise="scenario")


def replay_line(scenario: Scenario) -> str:
    """The command that runs this scenario again."""
    words = ["stormproof", "run", scenario.system, "--environment", scenario.environment]
    words += ["--workload", scenario.workload]
    if scenario.nemesis:
        words += ["--nemesis", ",".join(scenario.nemesis)]
    words += ["--concurrency", str(scenario.concurrency), "--rate", f"{scenario.rate:g}"]
    words += ["--time-limit", f"{scenario.time_limit_s:g}", "--recovery", f"{scenario.recovery_s:g}"]
    if scenario.liveness_s:
        words += ["--liveness", f"{scenario.liveness_s:g}"]
    if scenario.max_outage_s:
        words += ["--max-outage", f"{scenario.max_outage_s:g}"]
    words += ["--seed", str(scenario.seed)]
    if scenario.mutant:
        words += ["--mutant", scenario.mutant]
    for key, value in sorted(scenario.settings.items()):
        words += ["--set", f"{key}={str(value).lower() if isinstance(value, bool) else value}"]
    return shlex.join(words)


def checking(engine: Engine, progress: Progress) -> Callable[[str], None]:
    """Reports which checker is at work."""
    return lambda name: progress(Moment(f"checking: {name} ({engine.name})"))


def check_line(path: Path, *arguments: str) -> str:
    """The command that checks a history or a run again."""
    return shlex.join(["stormproof", "check", str(path), *arguments])


def vacuity_arguments(vacuous: Vacuous) -> tuple[str, ...]:
    return ("--accept-vacuous",) if vacuous is Vacuous.ACCEPTED else ()


def read_scenario(directory: Path) -> tuple[Scenario, dict[str, Any]]:
    """The scenario of a run directory, and the whole record. Raises UsageError."""
    path = directory / "scenario.json"
    try:
        record = json_kept(path)
        if not isinstance(record, dict):
            raise ValueError(f"it must be an object, it is {shown(record)}")
        for name, kind in RECORDED.items():
            if name in record and not isinstance(record[name], kind):
                raise ValueError(f"{name} cannot be {shown(record[name])}")
        if not all(type(value) in (int, float) for value in record.get("regime", {}).values()):
            raise ValueError(f"regime cannot be {shown(record['regime'])}")
        RunFacts.from_json(record.get("facts", {}))
        return Scenario.from_json({key: value for key, value in record.items() if key not in RECORDED}), record
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{directory} is not a run directory: it has no scenario.json") from None
    except (ValueError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} cannot be read: {reason}") from None
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}"}
    for package in VERSIONED:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
