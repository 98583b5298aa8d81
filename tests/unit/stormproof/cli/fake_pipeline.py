"""A pipeline without a system: returns the given outcomes, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import AnomalySummary, CheckerResult, Verdict
from checkers.search_budget import Effort
from harness.record.run_directory import RunDirectory
from harness.record.run_record import RunRecord, write_run_record
from harness.record.scenario import Scenario
from stormproof.session.engines import CheckOptions
from stormproof.session.outcome import Outcome
from stormproof.session.registry import Parts


def outcome(scenario: Scenario, directory: Path, verdict: Verdict) -> Outcome:
    anomaly = Anomaly(name="lost-write", operations=(4, 9), because="message 7 was acknowledged and never read")
    anomalies = {"lost-write": AnomalySummary(count=2, examples=(anomaly,))} if verdict is Verdict.INVALID else {}
    reasons = ("no fault took effect",) if verdict is Verdict.UNKNOWN else ()
    result = CheckerResult(verdict=verdict, reasons=reasons, anomalies=anomalies)
    return Outcome(directory=directory, scenario=scenario, verdict=verdict, reasons=reasons, results={"log": result})


@dataclass
class FakePipeline:
    """Stands for `run_scenario`: the answer by seed; an exception is raised."""

    answers: dict[int, Verdict | BaseException] = field(default_factory=dict)
    asked: list[Scenario] = field(default_factory=list)
    efforts: list[Effort] = field(default_factory=list)
    trace_hash: str = "abc"

    def run_scenario(
        self,
        scenario: Scenario,
        *,
        parts: Parts | None = None,
        runs: Path,
        options: CheckOptions,
        progress: Callable[[str], None],
        recording: Path | None = None,
    ) -> Outcome:
        self.asked.append(scenario)
        self.efforts.append(options.effort)
        progress("the storm begins")
        directory = runs / scenario.system / f"{len(self.asked)}-{scenario.seed}"
        directory.mkdir(parents=True)
        record = RunRecord(scenario=scenario, environment={"trace_hash": self.trace_hash})
        write_run_record(RunDirectory(directory), record)
        answer = self.answers.get(scenario.seed, Verdict.VALID)
        if isinstance(answer, BaseException):
            (runs / "latest").symlink_to(directory.relative_to(runs))
            raise answer
        return outcome(scenario, directory, answer)
