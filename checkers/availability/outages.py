"""Outages: from the first failure in a stream to the first success that lasts.

A success lasts if it begins a run of enough successes, and nothing in the stream fails for a while after it. So one
lucky success does not end an outage. An outage begins when its earliest failed operation was called, or when the
stream's last success before it was recorded, whichever is later. An outage that no success ended is unfinished.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.findings import Example, Findings
from checkers.api.tallies import bins_of
from checkers.api.verdict import EXAMPLES
from checkers.availability.runs import BY, CLIENT
from checkers.faults import NO_FAULT, Faults
from checkers.kernels.columns import Bool, Int64, run_starts, witness_order
from harness.compiled import compiled

ANY_FAULT = -2
UNFINISHED = -1

TALLY = pa.schema(
    [pa.field("by", pa.int8()), pa.field("f", pa.string()), pa.field("fault", pa.int32()), pa.field("bin", pa.int32())]
    + [pa.field(name, pa.int64()) for name in ("count", "longest", "streams", "watched", "without")]
    + [pa.field("worst", pa.float64())]
)
"""`count` outages whose lengths are in `bin` (UNFINISHED: none of them is known), the `longest` of them in ns; by
each fault, and once more for ANY_FAULT. Or, with a `bin` that is null, `streams` that were watched for so many ns
together, `without` service for so many of them, and the `worst` stream's share."""


@dataclass(frozen=True, kw_only=True)
class Lasting:
    """When a success ends an outage."""

    successes: int
    window_ns: int


@dataclass(frozen=True)
class Outages:
    """Runs in order, and for each outage the positions of the run that began it and of the one that ended it."""

    runs: dict[str, Int64]
    f: list[str]
    keys: list[str]
    starts: Bool
    """Which runs are the first of their stream."""
    failed: Int64
    recovered: Int64
    """The run that ended it; UNFINISHED if the stream ended before."""
    began_ns: Int64
    ended_ns: Int64
    """When it ended, or when the stream was last heard of."""

    @classmethod
    def of(cls, runs: pa.Table, lasting: Lasting) -> Outages:
        names, name = _numbered(runs["f"])
        keys, key = _numbered(runs["key"])
        columns = ("by", "client", "served", "count", "began", "first_index", "first_ns", "last_ns")
        column = {"f": name, "key": key} | {part: runs[part].to_numpy().astype(np.int64) for part in columns}
        stream = tuple(column[part] for part in ("key", "client", "by", "f"))
        order = np.lexsort((column["first_index"], *stream))
        column = {part: values[order] for part, values in column.items()}
        stream = tuple(values[order] for values in stream)
        first = np.flatnonzero(run_starts(*stream, column["served"]))
        least = dict.fromkeys(("began", "first_ns", "first_index"), np.minimum)
        folds = least | {"last_ns": np.maximum, "count": np.add}
        folded = {
            part: folds[part].reduceat(values, first) if part in folds and len(first) else values[first]
            for part, values in column.items()
        }
        starts = run_starts(*(values[first] for values in stream))
        times = (folded[part] for part in ("count", "began", "first_ns", "last_ns"))
        bounds = outages(StreamRuns(starts, folded["served"] == 1, *times), lasting.successes, lasting.window_ns)
        return cls(folded, names, keys, starts, *bounds)

    @property
    def length_ns(self) -> Int64:
        length: Int64 = np.maximum(self.ended_ns - self.began_ns, 0)
        return length

    def faults(self, struck: Faults) -> Int64:
        return struck.to_blame_for_outages(self.began_ns, self.runs["first_ns"][self.failed])


class StreamRuns(NamedTuple):
    """Runs of streams, one stream after the other, in which successes and failures take turns; times in ns."""

    starts: Bool
    """Whether it is the first run of its stream."""
    served: Bool
    completions: Int64
    began: Int64
    """The earliest call."""
    first_ns: Int64
    last_ns: Int64


@compiled
def outages(runs: StreamRuns, successes: int, window_ns: int) -> tuple[Int64, Int64, Int64, Int64]:
    """(position of the run that began it, of the run that ended it or -1, begin, end) of each, in the order of begins.

        send ok at 1 s · send fails at 2 s, called at 1.5 s · send ok at 3 s · send fails at 3.2 s

    The outage begins at 1.5 s. The success at 3 s does not last, so it is unfinished; it is known until 3.2 s.
    """
    starts, served, first_ns, last_ns = runs.starts, runs.served, runs.first_ns, runs.last_ns
    length = len(starts)
    failed = np.empty(length, dtype=np.int64)
    recovered = np.empty(length, dtype=np.int64)
    began_ns = np.empty(length, dtype=np.int64)
    ended_ns = np.empty(length, dtype=np.int64)
    found = 0
    is_open = False
    for i in range(length):
        if starts[i]:
            is_open = False
        if not served[i]:
            if not is_open:
                is_open = True
                failed[found] = i
                recovered[found] = -1
                began_ns[found] = min(runs.began[i], first_ns[i])
                if not starts[i]:
                    began_ns[found] = max(began_ns[found], last_ns[i - 1])
                found += 1
            ended_ns[found - 1] = last_ns[i]
            continue
        if not is_open:
            continue
        is_last = i + 1 == length or starts[i + 1]
        if runs.completions[i] >= successes and (is_last or first_ns[i + 1] - first_ns[i] >= window_ns):
            recovered[found - 1] = i
            ended_ns[found - 1] = first_ns[i]
            is_open = False
        else:
            ended_ns[found - 1] = last_ns[i]
    return failed[:found], recovered[:found], began_ns[:found], ended_ns[:found]


def tallied(runs: pa.Table, *, struck: Faults, lasting: Lasting) -> pa.Table:
    """Kernel over all runs of a bucket of streams."""
    found = Outages.of(runs, lasting)
    column, failed = found.runs, found.failed
    bins = np.where(found.recovered >= 0, bins_of(found.length_ns), UNFINISHED)
    by_fault = np.concatenate((found.faults(struck), np.full(len(failed), ANY_FAULT)))
    by, f = (np.tile(column[name][failed], 2) for name in ("by", "f"))
    tables = [_counted(by, f, by_fault, np.tile(bins, 2), np.tile(found.length_ns, 2), found.f)]

    first = np.flatnonzero(found.starts)
    if len(first):
        last = np.append(first[1:], len(found.starts)) - 1
        watched = column["last_ns"][last] - np.minimum(column["began"][first], column["first_ns"][first])
        of_stream = np.cumsum(found.starts) - 1
        without = np.zeros(len(first), dtype=np.int64)
        np.add.at(without, of_stream[failed], found.length_ns)
        tables.append(_shares(column["by"][first], column["f"][first], watched, without, found.f))
    return pa.concat_tables(tables).combine_chunks()


def _counted(by: Int64, f: Int64, fault: Int64, bins: Int64, length_ns: Int64, names: list[str]) -> pa.Table:
    kinds, place = np.unique(np.stack((by, f, fault, bins)), axis=1, return_inverse=True)
    place = place.reshape(-1)
    longest = np.zeros(kinds.shape[1], dtype=np.int64)
    np.maximum.at(longest, place, length_ns)
    column = {"by": kinds[0], "fault": kinds[2], "bin": kinds[3], "longest": longest}
    return _tally(column | {"count": np.bincount(place, minlength=kinds.shape[1])}, kinds[1], names)


def _shares(by: Int64, f: Int64, watched: Int64, without: Int64, names: list[str]) -> pa.Table:
    share = without / np.maximum(watched, 1)
    fault = np.full(len(by), ANY_FAULT)
    column = {"by": by, "fault": fault, "streams": np.ones(len(by)), "watched": watched, "without": without}
    return _tally(column | {"worst": share}, f, names)


def _tally(column: Mapping[str, Any], f: Int64, names: list[str]) -> pa.Table:
    """A TALLY table; columns that are not given are 0, and `bin` null."""
    rows = len(f)
    arrays = []
    for field in TALLY:
        if field.name == "f":
            arrays.append(pa.array(names, pa.string()).take(pa.array(f)))
        elif field.name in column:
            arrays.append(pa.array(column[field.name]).cast(field.type))
        elif field.name == "bin":
            arrays.append(pa.nulls(rows, field.type))
        else:
            arrays.append(pa.array(np.zeros(rows)).cast(field.type))
    return pa.Table.from_arrays(arrays, schema=TALLY)


def slow_recoveries(runs: pa.Table, *, struck: Faults, lasting: Lasting, limit_ns: int) -> pa.Table:
    """Kernel over all runs of a bucket of streams: outages that lasted longer than the limit."""
    found = Outages.of(runs, lasting)
    slow = np.flatnonzero(found.length_ns > limit_ns)
    first_index = found.runs["first_index"]
    failed = first_index[found.failed[slow]]
    over = found.recovered[slow]
    recovered = np.where(over >= 0, first_index[over], failed)
    ties = tuple(found.runs[part][found.failed[slow]] for part in ("by", "client"))
    chosen = witness_order(failed, recovered, ties=ties)[:EXAMPLES]
    fault = found.faults(struck)
    examples = []
    for outage in slow[chosen].tolist():
        blamed = struck.names[fault[outage]] if fault[outage] != NO_FAULT else ""
        examples.append(_example(found, outage, blamed, limit_ns))
    findings = Findings()
    findings.add("slow-recovery", len(slow), examples)
    return findings.table()


def _example(found: Outages, outage: int, fault: str, limit_ns: int) -> Example:
    run = {name: int(values[found.failed[outage]]) for name, values in found.runs.items()}
    recovered = int(found.recovered[outage])
    f, by = found.f[run["f"]], BY[run["by"]]
    key = None if run["by"] == CLIENT else found.keys[run["key"]]
    who = f"by client {run['client']}" if key is None else f"on queue {key}" if key else "on the queue"
    began_s, length_s = found.began_ns[outage] / 1e9, found.length_ns[outage] / 1e9
    operations = {run["first_index"]}
    if recovered >= 0:
        operations.add(int(found.runs["first_index"][recovered]))
        end = f"and succeeded for good only {length_s:.3f} s later (operation {max(operations)})"
    else:
        end = f"and had not succeeded for good {length_s:.3f} s later, when the last of them was seen"
    struck = f"; struck by {fault}" if fault else ""
    return Example(
        key=key,
        operations=tuple(sorted(operations)),
        tie=(run["by"], run["client"]),
        because=(
            f"{f} {who} failed from {began_s:.3f} s on (operation {run['first_index']}) {end}, "
            f"{limit_ns / 1e9:g} s are allowed{struck}"
        ),
        details={"f": f, by: run["client"] if key is None else key, "length_s": length_s, "fault": fault},
    )


def _numbered(column: pa.ChunkedArray) -> tuple[list[str], Int64]:
    """Distinct strings in ascending order, and the position of each row's; -1 for null."""
    words = sorted(word for word in pc.unique(column).to_pylist() if word is not None)
    at = pc.fill_null(pc.index_in(column, pa.array(words, pa.string())), -1).to_numpy()
    return words, at.astype(np.int64)
