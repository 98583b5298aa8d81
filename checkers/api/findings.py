"""Findings: how kernels report anomalies so that counts are exact and examples few, on any engine.

A kernel that finds a thousand broken promises reports one row with the count and at most EXAMPLES rows with the
smallest witnesses; merging keeps that shape. Which examples survive depends on the history alone, not on how its rows
were split. Other counts of a kernel (`checkers.api.tallies`) travel in rows of the same table, so that one pass over a
history gathers both.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.api.anomaly import Anomaly
from checkers.api.excuses import Excuses
from checkers.api.plan import CheckRequest, Dataset, Engine, Kernel
from checkers.api.tallies import NO_TALLY, Tally
from checkers.api.verdict import BETWEEN_REASONS, EXAMPLES, AnomalySummary, CheckerResult, Verdict
from checkers.kernels.columns import Int64
from harness.record.excuse import Excuse
from harness.record.history import MalformedHistory

FINDINGS = pa.schema(
    [
        pa.field("name", pa.string()),
        pa.field("bin", pa.int32()),
        pa.field("count", pa.int64()),
        pa.field("key", pa.string()),
        pa.field("operations", pa.list_(pa.int64())),
        pa.field("tie", pa.list_(pa.int64())),
        pa.field("because", pa.string()),
        pa.field("details", pa.string()),
        pa.field("excuse", pa.int32()),
    ]
)
"""A row with `because` is an example and counts nothing; one without it has only a count. `bin`: for a tally the bin of
its histogram, or 0 if it is a single count; null for an anomaly. `excuse`: the number of the excuse by which these are
legal losses, or null."""

MALFORMED = "malformed"
"""The tally of operations that make a history meaningless; its examples have the reasons."""

NAMES_LIMIT = 1_000
"""More anomalies than any checker has: if there are more, a kernel makes up names."""


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
    """The sentence with the key that it is about, if that has a name."""
    return f"{key}: {sentence}" if key else sentence


Row = tuple[str, int | None, int, str | None, list[int], list[int], str | None, str | None, int | None]


class Findings:
    """Collects what one kernel call found and counted."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def add(self, name: str, count: int, examples: Iterable[Example], excuse: int | None = None) -> None:
        """`count` anomalies of this name, legal for this excuse if there is one; `examples` are the ones with the
        smallest witnesses, at most EXAMPLES."""
        self._add(name, None, count, examples, excuse)

    def tally(self, name: str, count: int, examples: Iterable[Example] = ()) -> None:
        """Counts something that is not an anomaly. `examples` are like those of anomalies, if some are to be named."""
        self._add(name, 0, count, examples)

    def tally_by_bin(self, name: str, bins: Int64) -> None:
        """Counts in the bins of a histogram; `bins` has one bin for each thing that is counted."""
        numbers, sizes = np.unique(bins, return_counts=True)
        for number, size in zip(numbers.tolist(), sizes.tolist(), strict=True):
            self._add(name, number, size, ())

    def refuse(self, malformed: Iterable[tuple[int, str]]) -> None:
        """Refuses the history because of these operations (index, reason), which do not belong to this workload. The
        first of them is named."""
        first = min(malformed, default=None)
        if first is not None:
            self.tally(MALFORMED, 1, [Example(key=None, operations=first[:1], because=first[1])])

    def _add(
        self, name: str, number: int | None, count: int, examples: Iterable[Example], excuse: int | None = None
    ) -> None:
        if count == 0:
            return
        self._rows.append((name, number, count, None, [], [], None, None, excuse))
        for example in examples:
            details = json.dumps(example.details, sort_keys=True)
            operations, tie = list(example.operations), list(example.tie)
            self._rows.append((name, number, 0, example.key, operations, tie, example.because, details, excuse))

    def table(self) -> pa.Table:
        return _table(self._rows)


def _table(rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(FINDINGS)
    return pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, FINDINGS, strict=True)], schema=FINDINGS
    )


def merged_findings(table: pa.Table) -> pa.Table:
    """Kernel over all rows of one name, bin and excuse: the sum of the counts and the smallest examples."""
    total = 0
    examples = []
    name, number, excuse = (table[column][0].as_py() for column in ("name", "bin", "excuse"))
    for row in table.to_pylist():
        total += row["count"]
        if row["because"] is not None:
            ordered = (tuple(row["operations"]), tuple(row["tie"]), row["key"] or "")
            examples.append((*ordered, row["because"], row["details"]))
    rows: list[Row] = [(name, number, total, None, [], [], None, None, excuse)]
    for operations, tie, key, because, details in sorted(examples)[:EXAMPLES]:
        rows.append((name, number, 0, key or None, list(operations), list(tie), because, details, excuse))
    return _table(rows)


@dataclass(frozen=True, kw_only=True)
class GatheredFindings:
    """What the kernels of a plan found and counted in a whole history."""

    anomalies: Mapping[str, AnomalySummary]
    """Name -> exact counts and smallest examples, in the order of names."""
    tallies: Mapping[str, Tally]

    def tally(self, name: str) -> Tally:
        return self.tallies.get(name, NO_TALLY)

    def counts(self, *names: str) -> dict[str, int]:
        """The counts of these tallies."""
        return {name: self.tally(name).count for name in names}


def gathered_findings(engine: Engine, findings: Dataset, excuses: Sequence[Excuse] = ()) -> GatheredFindings:
    """All that kernels found and counted. `excuses` are those that they numbered. Raises MalformedHistory if a kernel
    refused an operation."""
    merged = engine.grouped(findings, ("name", "bin", "excuse"), merged_findings, FINDINGS)
    counts: dict[str, Counter[int | None]] = {}
    bins: dict[str, Counter[int]] = {}
    broken, legal, shown = (defaultdict[str, list[Anomaly]](list) for _ in range(3))
    rows = engine.gather(merged, NAMES_LIMIT * (EXAMPLES + 1)).to_pylist()
    for row in sorted(rows, key=lambda row: (row["operations"], row["tie"], row["key"] or "")):
        name, number, excuse = row["name"], row["bin"], row["excuse"]
        if number is None:
            counts.setdefault(name, Counter())[excuse] += row["count"]
        else:
            bins.setdefault(name, Counter())[number] += row["count"]
        if row["because"] is not None:
            (shown if number is not None else broken if excuse is None else legal)[name].append(_example(row))
    for first in shown[MALFORMED]:
        raise MalformedHistory(first.operations[0], first.because)
    return GatheredFindings(
        anomalies={
            name: summary(counts[name], broken[name], legal[name][:EXAMPLES], excuses) for name in sorted(counts)
        },
        tallies={name: Tally(bins=bins[name], examples=tuple(shown[name])) for name in bins},
    )


def _example(row: Mapping[str, Any]) -> Anomaly:
    return Anomaly(
        name=row["name"],
        key=row["key"],
        operations=tuple(row["operations"]),
        because=row["because"],
        details=json.loads(row["details"]),
    )


def found_in_buckets(request: CheckRequest, engine: Engine, rows: Dataset, kernel: Kernel) -> GatheredFindings:
    """What a kernel that makes FINDINGS finds in the buckets of these rows."""
    return gathered_findings(engine, engine.grouped(rows, ("bucket",), kernel, FINDINGS), request.excuses)


def summary(
    counts: Mapping[int | None, int], broken: Sequence[Anomaly], legal: Sequence[Anomaly], excuses: Sequence[Excuse]
) -> AnomalySummary:
    """The summary of one anomaly; `counts` are by the number of the excuse."""
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
    """The summary of anomalies of one name, each about something that began and ended at these times, and that shows at
    these nodes, if they are known."""
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
    """INVALID if an anomaly is not legal here; otherwise UNKNOWN if something could not be decided, or if there was
    nothing to decide, which is vacuous; otherwise VALID. `legal`: names of anomalies that are legal throughout, and
    why."""
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
