"""One row a storm: what was tried, what it came to, and what it led to."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from checkers.api.verdict import Verdict
from harness.abilities import watch_of
from harness.record.fault_log import kinds_of
from harness.record.scenario import Scenario
from stormproof.search.coverage import Coverage
from stormproof.search.points import strike
from stormproof.search.processor_time import processor_time_limit
from stormproof.search.storm import StormOutcome, blown_and_judged
from stormproof.session import registry

RANDOM, GUIDED = "random", "guided"
MOST_PROCESSOR_S = 300.0
"""A storm takes one; a node that computes for ever would hold up the search."""

TASKS = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("origin", pa.string(), nullable=False),
        pa.field("parent", pa.int64()),
        pa.field("scenario", pa.string(), nullable=False),
    ]
)
"""`number`: of the storm in its search. `origin`: random or guided, which has a parent. `scenario`: as JSON."""

POINT = pa.struct([pa.field("point", pa.string()), pa.field("times", pa.list_(pa.int32()))])
ROWS = pa.schema(
    [
        *TASKS,
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("anomalies", pa.list_(pa.string()), nullable=False),
        pa.field("words", pa.string(), nullable=False),
        pa.field("regime", pa.string(), nullable=False),
        pa.field("faults", pa.list_(pa.string()), nullable=False),
        pa.field("strikes", pa.list_(pa.string()), nullable=False),
        pa.field("reached", pa.list_(pa.string()), nullable=False),
        pa.field("points", pa.list_(POINT), nullable=False),
        pa.field("states", pa.int64(), nullable=False),
        pa.field("features", pa.list_(pa.int64()), nullable=False),
        pa.field("unguided", pa.list_(pa.int64()), nullable=False),
        pa.field("operations", pa.int64(), nullable=False),
        pa.field("simulated_s", pa.float64(), nullable=False),
        pa.field("trace_hash", pa.string(), nullable=False),
        pa.field("processor_s", pa.float64(), nullable=False),
    ]
)
"""`anomalies`: names of those that are not legal. `faults`: kinds that had an effect. `strikes`: of those that
struck at a point, package and point. `reached`: points.
`points`: how often each was reached in each second of the storm, up to the last in which it was.
`features`: what the guide looks for; `unguided`: the measure that it does not use. All but `processor_s` follow
from the task alone."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """A storm to be tried."""

    number: int
    origin: str
    parent: int | None = None
    scenario: Scenario

    def to_row(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "origin": self.origin,
            "parent": self.parent,
            "scenario": scenario_text(self.scenario),
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Task:
        return cls(number=row["number"], origin=row["origin"], parent=row["parent"], scenario=scenario_of(row))


def scenario_text(scenario: Scenario) -> str:
    """As a row holds it."""
    return json.dumps(scenario.to_json(), sort_keys=True)


def scenario_of(row: Mapping[str, Any]) -> Scenario:
    return Scenario.from_json(json.loads(row["scenario"]))


def tried(task: Task) -> dict[str, Any]:
    """Carry the storm out and judge it; a row of ROWS. Any failure of the harness is a row with its
    words: one storm must not end a search."""
    began = time.process_time()
    try:
        with processor_time_limit(MOST_PROCESSOR_S):
            parts = registry.resolve(task.scenario)
            coverage = Coverage(watch_of(parts.system, parts.system_settings))
            judged = blown_and_judged(task.scenario, parts, coverage)
    except Exception as error:  # noqa: BLE001
        return task.to_row() | failed(error, time.process_time() - began)
    return task.to_row() | _row(judged, coverage)


def failed(error: Exception, processor_s: float) -> dict[str, Any]:
    words = f"the harness failed: {type(error).__name__}: {error}"
    return untold(processor_s) | {"verdict": Verdict.UNKNOWN.value, "words": words}


def untold(processor_s: float) -> dict[str, Any]:
    """The row of a storm of which only the verdict is known, without the verdict."""
    lists = ("anomalies", "faults", "strikes", "reached", "points", "features", "unguided")
    nothing: dict[str, Any] = {name: [] for name in lists}
    return nothing | {
        "regime": "{}",
        "states": 0,
        "operations": 0,
        "simulated_s": 0.0,
        "trace_hash": "",
        "processor_s": processor_s,
    }


def _row(outcome: StormOutcome, coverage: Coverage) -> dict[str, Any]:
    blown = outcome.blown
    struck = sorted({strike(window.package, window.point) for window in blown.faults.struck if window.point})
    return {
        "verdict": outcome.verdict.value,
        "anomalies": sorted(outcome.anomalies),
        "words": "" if outcome.verdict is Verdict.VALID else outcome.words(),
        "regime": json.dumps(blown.regime, sort_keys=True),
        "faults": list(kinds_of(blown.faults.struck)),
        "strikes": struck,
        "reached": sorted(blown.reached),
        "points": [{"point": point, "times": list(times)} for point, times in blown.seconds.items()],
        "states": coverage.states,
        "features": list(coverage.features(blown.reached, struck)),
        "unguided": list(coverage.unguided()),
        "operations": blown.history.num_rows,
        "simulated_s": round(blown.simulated_s, 6),
        "trace_hash": blown.trace_hash,
        "processor_s": outcome.processor_s,
    }
