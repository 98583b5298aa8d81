"""Contradictions between the reports of a system's nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.excuses import Excuses
from checkers.api.findings import FINDINGS, Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import Bool, Int64, run_starts
from checkers.replication.reports import CONFIRMED_BELOW, ELECTION, HOLDS, LEADS, MASTER

Report = dict[str, Any]
Contradiction = tuple[str, Example]
"""The name of a contradiction, and the reports in words."""


def contradictions(reports: pa.Table, *, excuses: Excuses, damaged: frozenset[str]) -> pa.Table:
    """Kernel over all reports of a bucket; what `damaged` nodes say of their bytes is left out."""
    is_finding = reports["name"].is_valid()
    passed_through = reports.filter(is_finding).select(FINDINGS.names)
    reports = reports.filter(pc.invert(is_finding))
    holds = pc.equal(reports["kind"], HOLDS)
    of_groups = sorted(
        reports.filter(pc.invert(holds)).to_pylist(), key=lambda report: (report["group"], report["kind"])
    )
    found: list[Contradiction] = []
    for _, group in groupby(of_groups, key=lambda report: report["group"]):
        by_kind = {kind: list(rows) for kind, rows in groupby(group, key=lambda report: report["kind"])}
        found += _one_at_a_time("two-masters", by_kind.get(MASTER, ()), _acts, "acted as master")
        found += _one_at_a_time("two-masters", by_kind.get(ELECTION, ()), _elected, "elected")
        found += _one_at_a_time("two-leaders", by_kind.get(LEADS, ()), _acts, "acted as leader")
        writers = [*by_kind.get(MASTER, ()), *by_kind.get(LEADS, ())]
        found += _overtaken(by_kind.get(CONFIRMED_BELOW, ()), writers)
    findings = Findings()
    for name in sorted({name for name, _ in found}):
        _add(findings, name, [example for of, example in found if of == name], excuses)
    is_damaged = pc.is_in(reports["node"].cast(pa.string()), pa.array(sorted(damaged), pa.string()))
    _report_pieces(reports.filter(pc.and_(holds, pc.invert(is_damaged))), findings, excuses)
    return pa.concat_tables([passed_through, findings.table()]).combine_chunks()


def _add(findings: Findings, name: str, examples: Sequence[Example], excuses: Excuses) -> None:
    """Adds contradictions. Each is placed by its earlier report, and shows with its later one."""
    earlier, later = (
        np.array([of(example.details["times_ns"]) for example in examples], dtype=np.int64) for of in (min, max)
    )
    for excuse, some in excuses.split(name, earlier, earlier, seen=later):
        chosen = sorted((examples[number] for number in some.tolist()), key=lambda example: example.tie)
        findings.add(name, len(chosen), chosen[:EXAMPLES], excuse)


def _acts(report: Report) -> str:
    return str(report["node"])


def _elected(report: Report) -> str:
    return "nobody" if report["member"] is None else f"member {report['member']}"


def _one_at_a_time(
    name: str, reports: Iterable[Report], who: Callable[[Report], str], did: str
) -> Iterator[Contradiction]:
    """Two masters or leaders under one epoch, of which there may be one."""
    ordered = sorted(reports, key=lambda report: (report["epoch"], report["time"], report["node"]))
    for epoch, rows in groupby(ordered, key=lambda report: report["epoch"]):
        first, *others = rows
        other = next((report for report in others if who(report) != who(first)), None)
        if other is None:
            continue
        if who is _acts:
            because = f"{_acts(first)} {did}{_of(first)} under epoch {epoch} at {_at(first)}, and so did "
            because += f"{_acts(other)} at {_at(other)}"
        else:
            because = f"under epoch {epoch}{_of(first)} {first['node']} had {who(first)} {did} at {_at(first)}, "
            because += f"and {other['node']} {who(other)} at {_at(other)}"
        yield name, _example(because, (first, other), epoch=epoch)


def _overtaken(safe: Iterable[Report], writers: Iterable[Report]) -> Iterator[Contradiction]:
    """Logs with which an epoch begins although they lack what was confirmed under an earlier one."""
    begun = sorted((w for w in writers if w["start"] is not None), key=lambda w: (w["epoch"], w["time"], w["node"]))
    ordered = sorted(safe, key=lambda report: (report["epoch"], -report["end"], report["time"], report["node"]))
    for epoch, rows in groupby(ordered, key=lambda report: report["epoch"]):
        report = next(rows)
        later = next((w for w in begun if w["epoch"] > epoch and w["start"] < report["end"]), None)
        if later is None:
            continue
        is_late, place = report["time"] > later["time"], "entry" if report["in_entries"] else "offset"
        because = (
            f"{later['node']} began epoch {later['epoch']} of {report['group']} at {place} {later['start']} "
            f"({_at(later)}), {'and then' if is_late else 'although'} {report['node']} "
            f"{'reported' if is_late else 'had reported'} under epoch {epoch} that all before {place} {report['end']} "
            f"was confirmed ({_at(report)})"
        )
        details = {"epochs": [epoch, later["epoch"]], "start": later["start"], "confirmed": report["end"]}
        yield "fenced-write" if is_late else "confirmed-lost", _example(because, (report, later), **details)


def _report_pieces(reports: pa.Table, findings: Findings, excuses: Excuses) -> None:
    """Reports confirmed bytes that differ between replicas, or that changed."""
    order = [("group", "ascending"), ("start", "ascending"), ("time", "ascending"), ("node", "ascending")]
    reports = reports.sort_by(order)
    groups = pc.rank(reports["group"], tiebreaker="dense").to_numpy()
    start, checksum = (reports[name].to_numpy() for name in ("start", "checksum"))
    stands = reports["stands"].to_numpy()
    standing = np.flatnonzero(stands)
    diverging = _conflicts(groups, start, checksum, standing)
    rewritten = _conflicts(groups, start, checksum, np.arange(len(start)))
    places = {(groups[one], start[one]) for one, _ in diverging}
    rewritten = [pair for pair in rewritten if (groups[pair[0]], start[pair[0]]) not in places]
    for name, pairs in (("diverging-logs", diverging), ("rewritten-log", rewritten)):
        rows = reports.take(pa.array([row for pair in pairs for row in pair], pa.int64())).to_pylist()
        examples = [_piece(name, one, other) for one, other in zip(rows[::2], rows[1::2], strict=True)]
        _add(findings, name, examples, excuses)


def _conflicts(groups: Int64, start: Int64, checksum: Int64, rows: Int64) -> list[tuple[int, int]]:
    """(the first of these rows at a place, the first that differs from it) for each place where one does. Rows are
    sorted by place."""
    place = np.cumsum(run_starts(groups[rows], start[rows])) - 1
    head = rows[np.searchsorted(place, place)]
    differs: Bool = checksum[rows] != checksum[head]
    other = np.flatnonzero(differs)
    other = other[run_starts(place[other])]
    return list(zip(head[other].tolist(), rows[other].tolist(), strict=True))


def _piece(name: str, one: Report, other: Report) -> Example:
    unit = "entries" if one["in_entries"] else "bytes"
    where = f"{unit} {one['start']} to {one['end']} of {one['group']}"
    if name == "diverging-logs":
        because = f"{where}, confirmed at both, are not the same at {one['node']} and {other['node']}"
    else:
        because = f"{where} were confirmed at {one['node']}, and other {unit} were there later at {other['node']}"
    because += f": checksums {one['checksum']:08x} (written at {_at(one)}) and {other['checksum']:08x} ({_at(other)})"
    return _example(because, (one, other), start=one["start"], end=one["end"])


def _of(report: Report) -> str:
    """The report's group in words; empty if it has no name."""
    return f" of {report['group']}" if report["group"] else ""


def _at(report: Report) -> str:
    return f"{report['time'] / 1e9:.3f} s"


def _example(because: str, reports: tuple[Report, Report], **details: object) -> Example:
    nodes = [report["node"] for report in reports]
    times = [report["time"] for report in reports]
    return Example(
        key=reports[0]["group"] or None,
        operations=(),
        tie=(max(times), min(times)),
        because=because,
        details={"nodes": nodes, "times_ns": times, **details},
    )
