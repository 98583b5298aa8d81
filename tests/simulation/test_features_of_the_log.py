"""Batches, filters and keys in a short storm: the healthy system keeps their promises, and a planted bug breaks one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from checkers.api.verdict import Verdict
from harness.record.scenario import Scenario
from stormproof.session.engines import HERE
from stormproof.session.outcome import Outcome
from stormproof.session.run import run_scenario

STORM = Scenario(
    system="rocketmq",
    workload="log",
    nemesis=("kill primary every 4 for 1",),
    settings={"tags": 2, "batch_share": 0.5, "queues": 2, "time_scale": 0.1},
    rate=60.0,
    time_limit_s=10.0,
    seed=1,
)


def run_storm(mutant: str | None, runs: Path) -> Outcome:
    return run_scenario(replace(STORM, mutant=mutant), runs=runs, options=HERE)


def test_a_healthy_system_keeps_batches_whole_filters_exactly_and_finds_by_keys(tmp_path: Path) -> None:
    outcome = run_storm(None, tmp_path)
    assert outcome.verdict is Verdict.VALID, outcome.words()
    assert "log-features" in outcome.results
    (history,) = tmp_path.glob("**/history.parquet")
    rows = pq.read_table(history, columns=["type", "f"])
    done = rows.filter(pc.equal(rows["type"], "ok"))["f"].to_pylist()
    for f in ("send-batch", "filtered-poll", "final-filtered-poll", "final-look-up"):
        assert done.count(f) > 20


@pytest.mark.parametrize(
    ("mutant", "anomaly"),
    [
        ("filter-skips-one", "filtered-skip"),
        pytest.param("index-not-durable", "key-not-found", marks=pytest.mark.gate),
    ],
)
def test_a_planted_bug_is_caught_by_what_it_breaks(mutant: str, anomaly: str, tmp_path: Path) -> None:
    outcome = run_storm(mutant, tmp_path)
    assert outcome.verdict is Verdict.INVALID
    assert anomaly in outcome.anomalies()
