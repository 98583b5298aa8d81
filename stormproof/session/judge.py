"""A run is judged by what it left: in its directory, also where the harness was killed, or in memory."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from checkers.api.plan import CheckRequest, RunUnderCheck
from checkers.api.verdict import with_nothing_promised
from checkers.availability import Availability
from checkers.history_batches import Source
from checkers.invariants import Invariants
from checkers.liveness import Liveness
from checkers.progress import Progress as ProgressChecker
from checkers.recovery import Recovery
from checkers.replication import ReplicationChecker
from checkers.search_budget import Searches
from checkers.statistics import Statistics
from checkers.vacuity import Vacuity
from harness.abilities import Quorate
from harness.errors import UsageError
from harness.progress import Moment, Progress, unwatched
from harness.record.excuse import ANY, Excuse
from harness.record.facts import RunFacts
from harness.record.fault_log import FaultLog, read_fault_log
from harness.record.history import MalformedHistory, close_torn
from harness.record.node_events import TableOfReports, write_node_events
from harness.record.points import points_of
from harness.record.run_directory import RunDirectory, require_writable_directory
from harness.record.run_record import RunRecord, read_run_record
from harness.record.scenario import Scenario
from harness.record.steady_spans import SteadySpan, steady_spans
from harness.record.usage_log import quarters_of, read_usage
from harness.system import LegalLoss
from harness.workload import Workload
from stormproof.session import registry
from stormproof.session.decide import CheckOutcome, decide
from stormproof.session.engines import BY_DEFAULT, CheckOptions
from stormproof.session.outcome import Outcome, write_outcome
from stormproof.session.registry import Parts


class Shows(Enum):
    """What a judgement is for."""

    EVERYTHING = "everything"
    VERDICT = "verdict"
    """Nothing is measured that is not judged."""


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """What a run left, for its judgement."""

    scenario: Scenario
    parts: Parts
    facts: RunFacts
    faults: FaultLog
    node_events: Source | None
    history: Source | None
    """The history; None if nothing was recorded."""
    doubts: tuple[str, ...] = ()
    """Why a verdict of VALID could not be trusted."""


def check_run(
    directory: Path,
    *,
    parts: Parts | None = None,
    options: CheckOptions = BY_DEFAULT,
    progress: Progress = unwatched,
    started: float | None = None,
) -> Outcome:
    """Judge a run directory; `parts` are what its scenario's names stand for, where they were resolved before.

    Raises UsageError where the directory is no run, MalformedHistory where its history is broken.
    """
    started = time.monotonic() if started is None else started
    record = read_run_record(directory)
    run = stored_run(RunDirectory(directory), record, parts)
    judged = judge_run(run, options, progress)
    outcome = Outcome(
        directory=directory,
        scenario=run.scenario,
        verdict=judged.verdict,
        reasons=judged.reasons,
        results=judged.results,
        faults=run.faults.counts,
        checked=judged.checked,
        points=_points(run, record),
        usage=quarters_of(read_usage(RunDirectory(directory).usage)),
        regime=record.regime,
        seconds=time.monotonic() - started,
    )
    progress(Moment("drawing the report"))
    history = run.history
    checking = judged.checking(directory, options, history=history) if isinstance(history, Path) else None
    problems = write_outcome(outcome, record.versions, checking)
    for problem in problems:
        progress(problem)
    return replace(outcome, problems=problems)


def judge_run(
    run: RecordedRun, check_options: CheckOptions, progress: Progress = unwatched, shows: Shows = Shows.EVERYTHING
) -> CheckOutcome:
    """Raises MalformedHistory, UsageError, HarnessError."""
    if run.history is None:
        return CheckOutcome(doubts=run.doubts)
    return _decided(run, run.history, check_options, progress, shows)


def stored_run(directory: RunDirectory, record: RunRecord, parts: Parts | None = None) -> RecordedRun:
    """What lies in a run directory. Raises UsageError."""
    parts = parts or registry.resolve(record.scenario)
    require_writable_directory(directory.path)
    history, cut_short = _history(directory)
    facts = record.facts or RunFacts()
    is_cut_short = bool(cut_short) or record.facts is None
    return RecordedRun(
        scenario=record.scenario,
        parts=parts,
        facts=facts,
        faults=read_fault_log(directory.faults),
        node_events=_node_events(directory, voters_of(parts)),
        history=history,
        doubts=(*([f"the run was cut short{cut_short}"] if is_cut_short else []), *facts.reasons),
    )


def voters_of(parts: Parts) -> dict[str, str]:
    """Node -> the group in which it votes."""
    return {node: group for group in parts.declaration.voters for node in parts.vocabulary.groups[group]}


def _points(run: RecordedRun, record: RunRecord) -> dict[str, Any]:
    """As `points_of`; empty where the environment did not count them."""
    reached = record.environment.get("reached")
    return {} if reached is None else points_of(run.parts.declaration.points, reached, run.faults.windows)


def _history(directory: RunDirectory) -> tuple[Path | None, str]:
    """The closed history, and how its recording ended where it was cut short: what is whole of it is closed now."""
    if directory.history.exists():
        return directory.history, ""
    if not directory.history_stream.exists():
        return None, " before it began"
    try:
        return directory.history, f": {close_torn(directory.history_stream)}"
    except MalformedHistory:
        return None, " before anything was recorded"


def _node_events(directory: RunDirectory, voters: Mapping[str, str]) -> Path | None:
    """Raises UsageError."""
    try:
        return write_node_events(directory.nodes, directory.node_events, voters)
    except ValueError as error:
        raise UsageError(f"the nodes' events in {directory.nodes} cannot be read: {error}") from None


def _decided(
    run: RecordedRun, history: Source, check_options: CheckOptions, progress: Progress, shows: Shows
) -> CheckOutcome:
    scenario, parts = run.scenario, run.parts
    legal = parts.system.legal_loss(parts.system_settings, run.faults.struck, TableOfReports(run.node_events))
    request = CheckRequest(
        history=history,
        repeats=parts.workload.repeats,
        legal={name: legal.reason for name in (*legal.anomalies, *_legal_in(parts.workload, legal))},
        excuses=(*legal.excuses, *_from_then_on(legal)),
        # Where everything is legal, no finding makes the verdict certain.
        searches=Searches.ALL if legal.anything else Searches.UNTIL_INVALID,
        run=RunUnderCheck(
            facts=run.facts,
            faults=run.faults,
            faults_asked=tuple(sorted({kind for package in parts.packages for kind in package.fault.split("+")})),
            required_ok=parts.workload.required_ok,
            required_share=parts.workload.required_share,
            concurrency=scenario.concurrency,
            recovery_limit_s=scenario.max_outage_s or None,
            recovers_within_s=parts.declaration.recovers_within_s,
            demanded=_demanded(run),
            serves_within_s=parts.declaration.serves_within_s,
            may_panic=parts.declaration.may_panic,
            contagious=parts.declaration.contagious,
            lasting_damage=parts.declaration.lasting_damage,
            node_events=run.node_events,
        ),
    )
    checkers = checkers_of(scenario, parts, shows)
    named = str(history) if isinstance(history, Path) else f"the history of seed {scenario.seed}"
    outcome = decide(
        request,
        checkers,
        check_options,
        subject=scenario.workload,
        named=named,
        progress=progress,
        doubts=run.doubts,
    )
    if not legal.anything:
        return outcome
    results = {name: result for name, result in outcome.results.items() if name not in PLACED_BY_TIME}
    return replace(outcome, results={**outcome.results, **with_nothing_promised(results, legal.anything)})


def _demanded(run: RecordedRun) -> tuple[SteadySpan, ...]:
    """The spans in which the system has to serve although faults last. There are none if something was not healed or a
    node ended by itself, because then it is unknown which nodes were healthy."""
    parts, facts, faults = run.parts, run.facts, run.faults
    within_s, system = parts.declaration.serves_within_s, parts.system
    if within_s is None or not isinstance(system, Quorate) or facts.storm_from_ns is None or facts.healed_ns is None:
        return ()
    if faults.unhealed or faults.left_to_the_end or facts.panics:
        return ()
    nodes = parts.vocabulary.groups["all"]
    spans = steady_spans(faults.struck, nodes, facts.storm_from_ns, facts.healed_ns, round(within_s * 1e9))
    reports = TableOfReports(run.node_events)
    return tuple(
        span for span in spans if system.must_serve(parts.system_settings, run.scenario.workload, span, reports)
    )


def _from_then_on(legal: LegalLoss) -> tuple[Excuse, ...]:
    """What was seen at some moment is legal from when nothing was promised any more."""
    if not legal.anything:
        return ()
    return (
        Excuse(
            anomalies=(ANY,), reason=legal.anything, from_ns=0, until_ns=1 << 62, seen_from_ns=legal.anything_from_ns
        ),
    )


PLACED_BY_TIME = ("cluster", "invariants")
"""Checkers of what was seen in the run at some moment."""


def _legal_in(workload: Workload, legal: LegalLoss) -> tuple[str, ...]:
    """What is legal in this workload alone; in several side by side, with the strand before it."""
    if not workload.strands:
        return legal.in_workloads.get(workload.name, ())
    return tuple(f"{name}/{anomaly}" for name in workload.names for anomaly in legal.in_workloads.get(name, ()))


def checkers_of(scenario: Scenario, parts: Parts, shows: Shows = Shows.EVERYTHING) -> dict[str, Any]:
    checkers: dict[str, Any] = {
        **parts.workload.checkers(parts.workload_settings),
        **({"statistics": Statistics()} if shows is Shows.EVERYTHING else {}),
        "vacuity": Vacuity(subject=f"workload {scenario.workload}", evidence=parts.workload.evidence),
        **({"availability": Availability()} if shows is Shows.EVERYTHING or scenario.max_outage_s else {}),
        "cluster": ReplicationChecker(),
        "recovery": Recovery(parts.declaration.restores),
        "progress": ProgressChecker(),
        "invariants": Invariants(parts.declaration.invariants),
    }
    return {**checkers, "liveness": Liveness(scenario.liveness_s)} if scenario.liveness_s else checkers
