"""A run measures how long its clients were refused, blames its faults for it, and may demand less."""

from __future__ import annotations

from pathlib import Path

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.outcome import Outcome, replay_line
from stormproof.session.run import run_scenario

ISOLATED_S = 4


def _run(tmp_path: Path, max_outage_s: float) -> Outcome:
    scenario = Scenario(
        system="rocketmq",
        workload="log",
        nemesis=(f"isolate primary every 8 for {ISOLATED_S}",),
        time_limit_s=16.0,
        rate=50.0,
        seed=1,
        max_outage_s=max_outage_s,
    )
    return run_scenario(scenario, runs=tmp_path, options=HERE)


def test_an_outage_is_measured_blamed_and_demanded_to_be_shorter(tmp_path: Path) -> None:
    patient = _run(tmp_path, 60.0)
    assert patient.verdict is Verdict.VALID, patient.words()
    measured = patient.results["availability"].statistics
    longest_s = max(row.get("max_ns", 0) for row in measured["recovery"].values()) / 1e9
    assert longest_s > 1
    assert {row["fault"] for row in measured["faults"]} == {"isolate primary"}
    strict = _run(tmp_path, longest_s / 2)
    assert strict.verdict is Verdict.INVALID
    assert strict.anomalies().keys() == {"slow-recovery"}
    assert "--max-outage" in replay_line(strict.scenario)
