"""Findings: how kernels report anomalies so that counts are exact and examples few, on any engine.

A kernel that finds a thousand broken promises reports one row with the count and at most EXAMPLES rows
with the smallest witnesses; merging keeps that shape. Which examples survive depends on the history
alone, not on how its rows were split.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from checkers.anomaly import Anomaly
from checkers.excuses import Excuses
from checkers.kernels.columns import Int64
from checkers.plan import Dataset, Engine
from checkers.verdict import BETWEEN_REASONS, EXAMPLES, AnomalySummary, CheckerResult, Verdict
from harness.record.excuse import Excuse

FINDINGS = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("count", pa.int64()),
        pa.field("key", pa.string()),
        pa.field("operations", pa.list_(pa.int64())),
        pa.field("tie", pa.list_(pa.int64())),
        pa.field("because", pa.string()),
        pa.field("details", pa.string()),
        pa.field("excuse", pa.int32()),
    ]
)
"""A row with `because` is an example and counts nothing; one without carries a count and nothing else. `excuse`: the
number of the one for which these are legal losses; null where they are none."""

NAMES_LIMIT = 1_000
"""No checker has so many anomalies; more means that a kernel invents names."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """One anomaly, found by a kernel."""

    key: str | None
    operations: tuple[int, ...]
    """History indices, ascending."""
    tie: tuple[int, ...] = ()
    """Orders examples of one name that have the same operations."""
    because: str
    details: Mapping[str, Any] = field(default_factory=dict)


def said_of(key: str, sentence: str) -> str:
    """The sentence with what it is about, unless that has no name."""
    return f"{key}: {sentence}" if key else sentence


Row = tuple[str, int, str | None, list[int], list[int], str | None, str | None, int | None]


class Findings:
    """Collects what one kernel call found."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def add(self, name: str, count: int, examples: Iterable[Example], excuse: int | None = None) -> None:
        """`count` anomalies of this name, legal for this excuse if there is one; `examples` are the ones with the
        smallest witnesses, at most EXAMPLES."""
        if count == 0:
            return
        self._rows.append((name, count, None, [], [], None, None, excuse))
        for example in examples:
            details = json.dumps(example.details, sort_keys=True)
            operations, tie = list(example.operations), list(example.tie)
            self._rows.append((name, 0, example.key, operations, tie, example.because, details, excuse))

    def table(self) -> pa.Table:
        columns = list(zip(*self._rows, strict=True)) or [()] * len(FINDINGS)
        return pa.Table.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, FINDINGS, strict=True)], schema=FINDINGS
        )


def merged_findings(table: pa.Table) -> pa.Table:
    """Kernel over all rows of one name and excuse: the sum of the counts and the smallest examples."""
    total = 0
    examples = []
    name, excuse = table["name"][0].as_py(), table["excuse"][0].as_py()
    for row in table.to_pylist():
        total += row["count"]
        if row["because"] is not None:
            ordered = (tuple(row["operations"]), tuple(row["tie"]), row["key"] or "")
            examples.append((*ordered, row["because"], row["details"]))
    rows: list[Row] = [(name, total, None, [], [], None, None, excuse)]
    for operations, tie, key, because, details in sorted(examples)[:EXAMPLES]:
        rows.append((name, 0, key or None, list(operations), list(tie), because, details, excuse))
    columns = zip(*rows, strict=True)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, FINDINGS, strict=True)], schema=FINDINGS
    )


def gathered_findings(
    engine: Engine, findings: Dataset, excuses: Sequence[Excuse] = ()
) -> Mapping[str, AnomalySummary]:
    """Name -> exact counts and smallest examples, in the order of names; `excuses` are those that kernels numbered."""
    merged = engine.grouped(findings, ("name", "excuse"), merged_findings, FINDINGS)
    counts: dict[str, dict[int | None, int]] = {}
    examples: dict[tuple[str, bool], list[Anomaly]] = {}
    rows = engine.gather(merged, NAMES_LIMIT * (EXAMPLES + 1)).to_pylist()
    for row in sorted(rows, key=lambda row: (row["operations"], row["tie"], row["key"] or "")):
        name, excuse = row["name"], row["excuse"]
        counted = counts.setdefault(name, {})
        counted[excuse] = counted.get(excuse, 0) + row["count"]
        if row["because"] is not None:
            examples.setdefault((name, excuse is None), []).append(
                Anomaly(
                    name=name,
                    key=row["key"],
                    operations=tuple(row["operations"]),
                    because=row["because"],
                    details=json.loads(row["details"]),
                )
            )
    return {
        name: summary(counts[name], examples.get((name, True), []), examples.get((name, False), [])[:EXAMPLES], excuses)
        for name in sorted(counts)
    }


def summary(
    counts: Mapping[int | None, int], broken: Sequence[Anomaly], legal: Sequence[Anomaly], excuses: Sequence[Excuse]
) -> AnomalySummary:
    """Of one anomaly; `counts` by the number of the excuse."""
    numbers = sorted(number for number in counts if number is not None)
    excused = AnomalySummary(
        count=sum(counts[number] for number in numbers),
        examples=tuple(legal),
        legal=BETWEEN_REASONS.join(dict.fromkeys(excuses[number].reason for number in numbers)),
    )
    if None not in counts:
        return excused
    return AnomalySummary(count=counts[None], examples=tuple(broken), excused=excused if excused.count else None)


def summary_by_span(
    anomalies: Sequence[Anomaly],
    begun: Int64,
    ended: Int64,
    excuses: Excuses,
    at: Sequence[Collection[str]] | None = None,
) -> AnomalySummary:
    """Of anomalies of one name, each about what began and ended then, and shows at these nodes, where that is known."""
    found = excuses.split(anomalies[0].name, begun, ended, at)
    placed = {number: places.tolist() for number, places in found if len(places)}
    legal = sorted(place for number, places in placed.items() if number is not None for place in places)
    return summary(
        {number: len(places) for number, places in placed.items()},
        [anomalies[place] for place in placed.get(None, [])[:EXAMPLES]],
        [anomalies[place] for place in legal[:EXAMPLES]],
        excuses.of,
    )


def judge(
    anomalies: Mapping[str, AnomalySummary],
    *,
    legal: Mapping[str, str],
    undecided: Sequence[str],
    vacuous: Sequence[str] = (),
    statistics: Mapping[str, Any],
) -> CheckerResult:
    """INVALID if an anomaly is not legal here; else UNKNOWN if something could not be decided, or, which is vacuous, if
    nothing was there to be decided; else VALID. `legal`: names of those that are so throughout, and why."""
    reasons = (*undecided, *vacuous)
    summaries = {
        name: replace(summary, legal=summary.legal or legal.get(name, "")) for name, summary in anomalies.items()
    }
    broken = [name for name, summary in summaries.items() if not summary.legal]
    verdict = Verdict.INVALID if broken else Verdict.UNKNOWN if reasons else Verdict.VALID
    return CheckerResult(
        verdict=verdict,
        reasons=reasons,
        vacuous=tuple(vacuous),
        anomalies=summaries,
        statistics=dict(statistics),
    )
