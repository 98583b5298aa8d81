"""Findings made small: a storm file for each cause, which is an anomaly and the faults that are left of a storm.

Of many storms that show the same anomalies only a few are shrunk; those that come down to the same faults in the same
order are one cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from checkers.api.verdict import found
from harness.errors import HarnessError, UsageError
from harness.record.scenario import Scenario
from nemesis.impair import without_amounts
from stormproof.search.mutate import entries_in
from stormproof.search.search import Tally
from stormproof.search.shrink import shrunk
from stormproof.search.storm_file import SUFFIX, StormFile, storm_text
from stormproof.search.trial import scenario_of, scenario_text
from stormproof.session import registry

SHRUNK_OF_ONE = 3
"""Storms that are shrunk of those that show the same anomalies."""
MOST_SECONDS = 120.0
"""The most seconds of processor time for each of them."""
FOUND = "found"

SHRUNK = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("anomaly", pa.string(), nullable=False),
        pa.field("scenario", pa.string(), nullable=False),
        pa.field("trace", pa.string(), nullable=False),
        pa.field("words", pa.string(), nullable=False),
        pa.field("operations", pa.int64(), nullable=False),
        pa.field("storms", pa.int64(), nullable=False),
        pa.field("processor_s", pa.float64(), nullable=False),
    ]
)
"""`number`: of the storm that was shrunk. `storms`, `processor_s`: what it took."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A storm of a search that shows an anomaly."""

    number: int
    anomaly: str
    scenario: Scenario


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Storms that came down to the same."""

    anomaly: str
    faults: tuple[str, ...]
    numbers: tuple[int, ...]
    smallest: Mapping[str, Any]
    """A row of SHRUNK."""

    def words(self) -> str:
        faults = ", then ".join(self.faults) or "no fault"
        listed = ", ".join(map(str, self.numbers))
        return f"{self.anomaly}: {faults}; {self.smallest['operations']} operations (of storm {listed})"


def to_shrink(tally: Tally) -> list[Finding]:
    """The first few of each set of anomalies."""
    return [
        Finding(number=number, anomaly=anomalies[0], scenario=scenario_of(tally.invalid[number]))
        for anomalies, numbers in sorted(tally.causes.items())
        for number in numbers[:SHRUNK_OF_ONE]
    ]


def shrunk_row(finding: Finding, most_seconds: float = MOST_SECONDS) -> dict[str, Any]:
    """A row of SHRUNK; the storm as it was found where it cannot be shrunk, which its words then say."""
    row = {"number": finding.number, "anomaly": finding.anomaly}
    try:
        result = shrunk(finding.scenario, finding.anomaly, most_seconds=most_seconds)
    except (UsageError, HarnessError) as error:
        why = f"it could not be shrunk: {error}"
        nothing = {"operations": 0, "storms": 0, "processor_s": 0.0}
        return {**row, "scenario": scenario_text(finding.scenario), "trace": "", "words": why, **nothing}
    return {
        **row,
        "scenario": scenario_text(result.scenario),
        "trace": result.outcome.blown.trace_hash,
        "words": "; ".join(found(result.outcome.results)),
        "operations": result.operations,
        "storms": result.storms,
        "processor_s": result.processor_s,
    }


def causes_of(rows: Iterable[Mapping[str, Any]]) -> list[Cause]:
    """The causes in rows of SHRUNK, each with its smallest storm first."""
    groups: dict[tuple[str, tuple[str, ...]], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["anomaly"], _faults(scenario_of(row))), []).append(row)
    return [
        Cause(
            anomaly=anomaly,
            faults=faults,
            numbers=tuple(sorted(row["number"] for row in group)),
            smallest=min(group, key=lambda row: (row["operations"], row["number"])),
        )
        for (anomaly, faults), group in sorted(groups.items())
    ]


def _faults(scenario: Scenario) -> tuple[str, ...]:
    """In order; of nodes it only matters to which group they belong, and nothing how badly a link or a disk suffers."""
    system, settings = registry.configured_system(scenario.system, scenario.settings)
    group_of = {node.name: "/".join(node.groups) for node in system.nodes(settings, scenario.mutant)}
    entries = sorted(entries_in(scenario), key=lambda entry: (entry.at_ns, entry.key))
    plain = (replace(entry, shape=without_amounts(entry.shape)) for entry in entries)
    words = (re.split(r"([\s+]+)", entry.what) for entry in plain)
    return tuple("".join(group_of.get(word, word) for word in what) for what in words)


def keep(causes: Iterable[Cause], directory: Path, say: Callable[[str], None]) -> list[Path]:
    """Write a storm file for each under `found/`. Raises HarnessError."""
    files = []
    folder = directory / FOUND
    for cause in causes:
        row = cause.smallest
        if not row["trace"]:
            say(f"storm {row['number']}, {cause.anomaly}: {row['words']}")
            continue
        storm = StormFile(scenario=scenario_of(row), anomaly=cause.anomaly, trace=row["trace"])
        path = folder / f"{cause.anomaly}-{row['number']}{SUFFIX}"
        try:
            folder.mkdir(exist_ok=True)
            path.write_text(storm_text(storm, [f"stormproof replay {path}", cause.words()]), encoding="utf-8")
        except OSError as error:
            raise HarnessError(f"{path} cannot be written: {error.strerror or error}") from None
        files.append(path)
    return files
