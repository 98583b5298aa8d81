"""What clients did, in figures: counts by operation and outcome, and quantiles of latency.

It takes any history, and judges nothing: it is always VALID. `checkers.vacuity` decides whether enough happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.plan import CheckRequest, Engine
from checkers.api.tallies import BINS, bins_of, lowest_of_bin
from checkers.api.verdict import CheckerResult, Verdict
from checkers.buckets import bucket_count
from checkers.history_batches import history_rows
from checkers.kernels.columns import INVOKE, OK, TYPES, Int64, codes, whole
from checkers.kernels.hashing import bucket_of, mixed
from harness.operation import NEMESIS
from harness.record.history import NO_PARTNER, pairs_of_clients
from harness.record.meaning import Meaning

COLUMNS = ("index", "time", "process", "type", "f")

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}

DENSE = 4
"""How many times greater than their count numbers may be to be looked up in a table and not sorted."""

KINDS_LIMIT = 10_000
"""Pairs of operation and type; more means that `f` is not a name but a value."""

TALLY = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("f", pa.string()),
        pa.field("type", pa.int8()),
        pa.field("process", pa.int32()),
        pa.field("index", pa.int64()),
        pa.field("time", pa.int64()),
        pa.field("count", pa.int64()),
        pa.field("bin", pa.int32()),
        pa.field("timed", pa.int64()),
        pa.field("slowest", pa.int64()),
    ]
)
"""A row with an `index` is one whose partner is in another batch. Any other stands for `count` rows; or for `timed`
completions whose latency is in `bin`, and the highest of their latencies."""

SUMMARY = pa.schema(
    [
        pa.field("f", pa.string()),
        pa.field("type", pa.int8()),
        pa.field("count", pa.int64()),
        *(pa.field(name, pa.int64()) for name in QUANTILES),
        pa.field("max", pa.int64()),
    ]
)
"""Sums over operations. Latencies are in ns, -1 if none is known."""


class Statistics:
    """Counts by operation and outcome, and quantiles of latency."""

    name = "statistics"
    meanings: ClassVar[Mapping[str, Meaning]] = {}

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        buckets = bucket_count(history_rows(request.history))
        history = engine.history(request.history, COLUMNS)
        tallies = engine.mapped(history, partial(tallied, buckets=buckets), TALLY)
        paired = engine.grouped(tallies, ("bucket",), paired_across, TALLY)
        kinds = engine.gather(engine.grouped(paired, ("f", "type"), summarised, SUMMARY), KINDS_LIMIT)

        rows = sorted(kinds.to_pylist(), key=lambda row: (row["f"], row["type"]))
        operations: dict[str, dict[str, int]] = {}
        latencies: dict[str, dict[str, int]] = {}
        for row in rows:
            operations.setdefault(row["f"], {})[TYPES[row["type"]]] = row["count"]
            if row["type"] == OK and row["max"] >= 0:
                latencies[row["f"]] = {f"{name}_ns": row[name] for name in (*QUANTILES, "max")}
        return CheckerResult(verdict=Verdict.VALID, statistics={"operations": operations, "ok_latency": latencies})


def tallied(batch: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: counts of one batch; rows whose partner may be in another batch go on as they are."""
    rows = _Rows.of(batch)
    is_stretch = bool(np.all(np.diff(rows.index) == 1))
    partner = rows.partners() if is_stretch else np.full(len(rows.index), NO_PARTNER, dtype=np.int64)
    alone = np.flatnonzero((partner == NO_PARTNER) & (rows.process != NEMESIS))
    counted = [rows.counts(), rows.latencies(partner)]
    if not len(alone):
        return pa.concat_tables(counted)
    left_over = _tally(
        {"f": rows.f[alone], "type": rows.type[alone], "process": rows.process[alone]}
        | {"index": rows.index[alone], "time": rows.time[alone]}
        | {"bucket": bucket_of(mixed(rows.process[alone]), buckets).astype(np.int64)},
        rows.names,
    )
    return pa.concat_tables([*counted, left_over]).combine_chunks()


def paired_across(tallies: pa.Table) -> pa.Table:
    """Kernel over the tallies of a bucket of processes: what was left over gets its latency if its partner is here."""
    if tallies["index"].null_count == tallies.num_rows:
        return tallies
    is_row = pc.is_valid(tallies["index"])
    rows = _Rows.of(tallies.filter(is_row))
    return pa.concat_tables([tallies.filter(pc.invert(is_row)), rows.latencies(rows.partners())]).combine_chunks()


def summarised(tallies: pa.Table) -> pa.Table:
    """Kernel over all tallies of one operation and type."""
    latency_bin, timed = tallies["bin"].to_numpy(), tallies["timed"].to_numpy()
    counts = np.bincount(latency_bin, timed, minlength=1)
    bins = np.flatnonzero(counts)
    reached = np.cumsum(counts[bins])
    row: dict[str, list[Any]] = {
        "f": [tallies["f"][0].as_py()],
        "type": [tallies["type"][0].as_py()],
        "count": [int(tallies["count"].to_numpy().sum())],
        "max": [int(tallies["slowest"].to_numpy().max())],
    }
    for name, quantile in QUANTILES.items():
        at = np.searchsorted(reached, quantile * reached[-1]) if len(bins) else 0
        row[name] = [lowest_of_bin(int(bins[at])) if len(bins) else -1]
    return pa.table(row, schema=SUMMARY)


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Rows of a history; `f` is a position in `names`."""

    index: Int64
    time: Int64
    process: Int64
    type: Int64
    f: Int64
    names: list[str]

    @classmethod
    def of(cls, table: pa.Table) -> _Rows:
        names = whole(table["f"])
        names = names if pa.types.is_dictionary(names.type) else names.dictionary_encode()
        types = table["type"]
        return cls(
            index=table["index"].to_numpy().astype(np.int64),
            time=table["time"].to_numpy().astype(np.int64),
            process=table["process"].to_numpy().astype(np.int64),
            type=(types.to_numpy() if pa.types.is_integer(types.type) else codes(types, TYPES)).astype(np.int64),
            f=names.indices.to_numpy().astype(np.int64),
            names=names.dictionary.to_pylist(),
        )

    def partners(self) -> Int64:
        return pairs_of_clients(self.index, self.process.astype(np.int32), self.type == INVOKE)

    def counts(self) -> pa.Table:
        """Rows of clients by operation and type; what the nemesis did stands in the fault log."""
        client = self.process != NEMESIS
        kinds, place = _numbered((self.f * len(TYPES) + self.type)[client])
        return _tally(
            {
                "f": kinds // len(TYPES),
                "type": kinds % len(TYPES),
                "count": np.bincount(place, minlength=len(kinds)),
            },
            self.names,
        )

    def latencies(self, partner: Int64) -> pa.Table:
        """How long the completions among these rows took whose invocation is among them."""
        done = np.flatnonzero((partner != NO_PARTNER) & (self.type != INVOKE))
        latency = self.time[done] - self.time[partner[done]]
        kind = (self.f[done] * len(TYPES) + self.type[done]) * BINS + bins_of(latency)
        kinds, place = _numbered(kind)
        slowest = np.full(len(kinds), -1, dtype=np.int64)
        np.maximum.at(slowest, place, latency)
        return _tally(
            {
                "f": kinds // BINS // len(TYPES),
                "type": kinds // BINS % len(TYPES),
                "bin": kinds % BINS,
                "timed": np.bincount(place, minlength=len(kinds)),
                "slowest": slowest,
            },
            self.names,
        )


def _numbered(values: Int64) -> tuple[Int64, Int64]:
    """The distinct ones, ascending, and the place of each value among them."""
    if not len(values) or int(values.max()) >= DENSE * len(values):
        distinct, place = np.unique(values, return_inverse=True)
        return distinct, place
    is_there = np.zeros(int(values.max()) + 1, dtype=np.bool_)
    is_there[values] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[values]


def _tally(column: Mapping[str, Int64], names: list[str]) -> pa.Table:
    """A TALLY table; columns that are not given are 0, `slowest` -1, and those of single rows null."""
    rows = len(column["f"])
    arrays = []
    for field in TALLY:
        if field.name == "f":
            arrays.append(pa.array(names, pa.string()).take(pa.array(column["f"])))
        elif field.name in column:
            arrays.append(pa.array(column[field.name].astype(field.type.to_pandas_dtype(), copy=False)))
        elif field.name in ("process", "index", "time"):
            arrays.append(pa.nulls(rows, field.type))
        else:
            nothing = -1 if field.name == "slowest" else 0
            arrays.append(pa.array(np.full(rows, nothing, dtype=field.type.to_pandas_dtype())))
    return pa.Table.from_arrays(arrays, schema=TALLY)
