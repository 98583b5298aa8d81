"""What a run came to: the verdict with its reasons, its words, the commands that repeat it, and the files written."""

from __future__ import annotations

import dataclasses
import platform
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from checkers.api.verdict import CheckerResult, Vacuous, Verdict, accepted, broken, excused
from harness import path_name
from harness.record.run_directory import RunDirectory
from harness.record.scenario import DRAWN, Scenario
from harness.record.usage_log import Quarters
from results.junit import Case, anomalies_in_words, write_junit
from results.report import write_report
from results.verdict_file import ACCEPTED, EXCUSED, Checking, VerdictFile, write_verdict
from stormproof.session.packets import cut_packets
from stormproof.session.registry import Parts

VERSIONED = ("stormproof", "pyspark", "pyarrow", "numpy", "numba", "pandas")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run came to, as far as the caller needs it; the rest is in the directory."""

    directory: Path
    scenario: Scenario
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    """Those beside the anomalies, which are in the results."""
    results: Mapping[str, CheckerResult] = field(default_factory=dict)
    faults: Mapping[str, Any] = field(default_factory=dict)
    """What `FaultLog.counts` gives."""
    points: Mapping[str, Any] = field(default_factory=dict)
    """What `points_of` gives."""
    usage: Mapping[str, Quarters] = field(default_factory=dict)
    """The usage of each node, if it was measured."""
    regime: Mapping[str, float] = field(default_factory=dict)
    """The kind of world that the simulator drew from the seed."""
    checked: str = ""
    """The engine that checked it, and why; empty if there was nothing to check."""
    seconds: float = 0.0
    problems: tuple[str, ...] = ()
    """What went wrong without affecting the verdict: a file that could not be written."""

    @property
    def accepted(self) -> tuple[str, ...]:
        """Why the verdict would be vacuous, if that was accepted."""
        return accepted(self.results)

    @property
    def excused(self) -> str:
        """What was found and is legal here, with the reasons; empty where nothing was."""
        return excused(self.results)

    @property
    def operations(self) -> Mapping[str, Any]:
        return operations_of(self.results)

    @property
    def report(self) -> Path:
        return RunDirectory(self.directory).report

    def anomalies(self) -> dict[str, int]:
        """Counts of the anomalies that are not legal, by name."""
        return broken(self.results)

    def words(self) -> str:
        return anomalies_in_words(self.reasons, self.results)

    def assert_valid(self) -> None:
        """Raises AssertionError with the anomalies, their witnesses, and the line that replays the run."""
        if self.verdict is not Verdict.VALID:
            raise AssertionError(
                f"{self.verdict.value.upper()}\n{self.words()}\nreport: {self.report}\n"
                f"replay: {replay_line(self.scenario, self.directory)}"
            )


def operations_of(results: Mapping[str, CheckerResult]) -> Mapping[str, Any]:
    """What clients did, counted, where the statistics were asked for it."""
    statistics = results["statistics"].statistics if "statistics" in results else {}
    counted: Mapping[str, Any] = statistics.get("operations", {})
    return counted


def write_outcome(outcome: Outcome, versions_: Mapping[str, Any], checking: Checking | None) -> tuple[str, ...]:
    """Write verdict.json first; a page that cannot be drawn never touches it. Returns what failed, in words."""
    content = VerdictFile(
        verdict=outcome.verdict,
        reasons=outcome.reasons,
        checkers=outcome.results,
        operations=outcome.operations,
        faults=outcome.faults,
        points=outcome.points,
        usage={node: quarters.to_json() for node, quarters in outcome.usage.items()},
        versions=versions_,
        checking=checking,
    )
    problems = []
    try:
        write_verdict(outcome.directory, content)
        junit = RunDirectory(outcome.directory).junit
        write_junit(junit, scenario_name(outcome.scenario), [case_of(outcome)])
    except OSError as error:
        problems.append(f"the verdict could not be written to {outcome.directory}: {error.strerror or error}")
    drawn = write_report(outcome.directory)
    cut = cut_packets(RunDirectory(outcome.directory), outcome.results)
    return tuple(filter(None, (*problems, drawn, cut)))


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
            "replay": replay_line(scenario, outcome.directory),
            **vacuity_note(outcome.accepted),
            **({EXCUSED: outcome.excused} if outcome.excused else {}),
        },
    )


def vacuity_note(reasons: tuple[str, ...]) -> dict[str, str]:
    """What a case of `junit.xml` says where a vacuous pass was accepted."""
    return {ACCEPTED: "; ".join(reasons)} if reasons else {}


def scenario_name(scenario: Scenario) -> str:
    parts = [scenario.system, scenario.workload, *scenario.nemesis, scenario.mutant or ""]
    if scenario.schedule:
        parts.insert(2, "schedule")
    return path_name.made_of("-".join(part for part in parts if part), otherwise="scenario")


def replay_line(scenario: Scenario, directory: Path = Path()) -> str:
    """The command that runs this scenario again; a schedule is read from the file in the run's directory."""
    if scenario.schedule:
        return _run_line(scenario, ("--schedule", str(RunDirectory(directory).schedule)))
    return _run_line(scenario, ("--nemesis", ",".join(scenario.nemesis)) if scenario.nemesis else ())


def schedule_line(scenario: Scenario, parts: Parts, directory: Path) -> str:
    """The command that runs what lies in the run's directory as a schedule, which needs no settings of a nemesis."""
    types = (parts.system.settings_type, parts.workload.settings_type)
    known = {field.name for type_ in types for field in dataclasses.fields(type_)}
    settings = {name: value for name, value in scenario.settings.items() if name in known}
    scheduled = dataclasses.replace(scenario, settings=settings)
    return _run_line(scheduled, ("--schedule", str(RunDirectory(directory).schedule)))


def _run_line(scenario: Scenario, faults: Sequence[str]) -> str:
    words = ["stormproof", "run", scenario.system, "--environment", scenario.environment]
    if scenario.inventory:
        words += ["--inventory", scenario.inventory]
    if scenario.real_clock:
        words += ["--real-clock"]
    if scenario.capture:
        words += ["--capture"]
    if scenario.world != DRAWN:
        words += ["--world", scenario.world]
    words += ["--workload", scenario.workload, *faults]
    words += ["--concurrency", str(scenario.concurrency), "--rate", f"{scenario.rate:g}"]
    if scenario.operations:
        words += ["--operations", scenario.operations]
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


def check_line(path: Path, *arguments: str) -> str:
    """The command that checks a history or a run again."""
    return shlex.join(["stormproof", "check", str(path), *arguments])


def vacuity_arguments(vacuous: Vacuous) -> tuple[str, ...]:
    return ("--accept-vacuous",) if vacuous is Vacuous.ACCEPTED else ()


def versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}"}
    for package in VERSIONED:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
