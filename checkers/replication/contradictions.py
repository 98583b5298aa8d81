"""What the claims of a cluster's nodes contradict in each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.findings import FINDINGS, Example, Findings
from checkers.kernels.columns import Bool, Int64, run_starts
from checkers.replication.claims import HOLDS, LEADS, MADE, MASTER, SAFE
from checkers.verdict import EXAMPLES

Claim = dict[str, Any]
Contradiction = tuple[str, Example]
"""Its name, and the claims in words."""


def contradictions(claims: pa.Table) -> pa.Table:
    """Kernel over all claims of a bucket."""
    is_finding = claims["name"].is_valid()
    passed_through = claims.filter(is_finding).select(FINDINGS.names)
    claims = claims.filter(pc.invert(is_finding))
    holds = pc.equal(claims["kind"], HOLDS)
    of_groups = sorted(claims.filter(pc.invert(holds)).to_pylist(), key=lambda claim: (claim["group"], claim["kind"]))
    found: list[Contradiction] = []
    for _, group in groupby(of_groups, key=lambda claim: claim["group"]):
        by_kind = {kind: list(rows) for kind, rows in groupby(group, key=lambda claim: claim["kind"])}
        found += _one_at_a_time("two-masters", by_kind.get(MASTER, ()), _acts, "acted as master")
        found += _one_at_a_time("two-masters", by_kind.get(MADE, ()), _made, "elected")
        found += _one_at_a_time("two-leaders", by_kind.get(LEADS, ()), _acts, "led")
        found += _overtaken(by_kind.get(SAFE, ()), by_kind.get(MASTER, ()))
    findings = Findings()
    for name in sorted({name for name, _ in found}):
        examples = sorted((example for of, example in found if of == name), key=lambda example: example.tie)
        findings.add(name, len(examples), examples[:EXAMPLES])
    _report_pieces(claims.filter(holds), findings)
    return pa.concat_tables([passed_through, findings.table()]).combine_chunks()


def _acts(claim: Claim) -> str:
    return str(claim["node"])


def _made(claim: Claim) -> str:
    return "nobody" if claim["broker"] is None else f"broker {claim['broker']}"


def _one_at_a_time(
    name: str, claims: Iterable[Claim], who: Callable[[Claim], str], did: str
) -> Iterator[Contradiction]:
    """Under one epoch there is one."""
    ordered = sorted(claims, key=lambda claim: (claim["epoch"], claim["time"], claim["node"]))
    for epoch, rows in groupby(ordered, key=lambda claim: claim["epoch"]):
        first, *others = rows
        other = next((claim for claim in others if who(claim) != who(first)), None)
        if other is None:
            continue
        if who is _acts:
            told = f"{_acts(first)} {did} of {first['group']} under epoch {epoch} at {_at(first)}, and so did "
            told += f"{_acts(other)} at {_at(other)}"
        else:
            told = f"under epoch {epoch} of {first['group']} {first['node']} had {who(first)} {did} at {_at(first)}, "
            told += f"and {other['node']} {who(other)} at {_at(other)}"
        yield name, _example(told, (first, other), epoch=epoch)


def _overtaken(safe: Iterable[Claim], masters: Iterable[Claim]) -> Iterator[Contradiction]:
    """What was confirmed under an epoch is in the log with which every later one begins."""
    begun = sorted((m for m in masters if m["start"] is not None), key=lambda m: (m["epoch"], m["time"], m["node"]))
    ordered = sorted(safe, key=lambda claim: (claim["epoch"], -claim["end"], claim["time"], claim["node"]))
    for epoch, rows in groupby(ordered, key=lambda claim: claim["epoch"]):
        claim = next(rows)
        later = next((m for m in begun if m["epoch"] > epoch and m["start"] < claim["end"]), None)
        if later is None:
            continue
        is_late = claim["time"] > later["time"]
        told = (
            f"{later['node']} began epoch {later['epoch']} of {claim['group']} at offset {later['start']} "
            f"({_at(later)}), {'and then' if is_late else 'although'} {claim['node']} "
            f"{'told' if is_late else 'had told'} under epoch {epoch} that all before offset {claim['end']} was "
            f"confirmed ({_at(claim)})"
        )
        details = {"epochs": [epoch, later["epoch"]], "start": later["start"], "confirmed": claim["end"]}
        yield "fenced-write" if is_late else "confirmed-lost", _example(told, (claim, later), **details)


def _report_pieces(claims: pa.Table, findings: Findings) -> None:
    """Confirmed bytes are the same on every replica, and stay what they are."""
    order = [("group", "ascending"), ("start", "ascending"), ("time", "ascending"), ("node", "ascending")]
    claims = claims.sort_by(order)
    groups = pc.rank(claims["group"], tiebreaker="dense").to_numpy()
    start, checksum = (claims[name].to_numpy() for name in ("start", "checksum"))
    stands = claims["stands"].to_numpy()
    standing = np.flatnonzero(stands)
    diverging = _conflicts(groups, start, checksum, standing)
    rewritten = _conflicts(groups, start, checksum, np.arange(len(start)))
    places = {(groups[one], start[one]) for one, _ in diverging}
    rewritten = [pair for pair in rewritten if (groups[pair[0]], start[pair[0]]) not in places]
    for name, pairs in (("diverging-logs", diverging), ("rewritten-log", rewritten)):
        told = claims.take(pa.array([row for pair in pairs for row in pair], pa.int64())).to_pylist()
        examples = [_piece(name, one, other) for one, other in zip(told[::2], told[1::2], strict=True)]
        findings.add(name, len(examples), sorted(examples, key=lambda example: example.tie)[:EXAMPLES])


def _conflicts(groups: Int64, start: Int64, checksum: Int64, rows: Int64) -> list[tuple[int, int]]:
    """Of these rows, sorted by place, the first of each place, and the first that differs from it, where one does."""
    place = np.cumsum(run_starts(groups[rows], start[rows])) - 1
    head = rows[np.searchsorted(place, place)]
    differs: Bool = checksum[rows] != checksum[head]
    other = np.flatnonzero(differs)
    other = other[run_starts(place[other])]
    return list(zip(head[other].tolist(), rows[other].tolist(), strict=True))


def _piece(name: str, one: Claim, other: Claim) -> Example:
    where = f"bytes {one['start']} to {one['end']} of {one['group']}"
    if name == "diverging-logs":
        told = f"{where}, confirmed at both, are not the same at {one['node']} and {other['node']}"
    else:
        told = f"{where} were confirmed at {one['node']}, and other bytes were there later at {other['node']}"
    told += f": checksums {one['checksum']:08x} (written at {_at(one)}) and {other['checksum']:08x} ({_at(other)})"
    return _example(told, (one, other), start=one["start"], end=one["end"])


def _at(claim: Claim) -> str:
    return f"{claim['time'] / 1e9:.3f} s"


def _example(because: str, claims: tuple[Claim, Claim], **details: object) -> Example:
    nodes = [claim["node"] for claim in claims]
    times = [claim["time"] for claim in claims]
    return Example(
        key=claims[0]["group"],
        operations=(),
        tie=(max(times), min(times)),
        because=because,
        details={"nodes": nodes, "times_ns": times, **details},
    )
