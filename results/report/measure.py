"""What a history says about latency and throughput, in one pass and bounded memory, however long it is.

For a history without times (absent or all the same) it gives the places at which operations began and ended: places
replace seconds, and the number of events from begin to end replaces milliseconds.

Latencies go into a histogram on a logarithmic scale (twenty bins a decade, so quantiles are right to about
6 %, the worst is exact). Points for the scatter plot are thinned by a hash of their index, so that the same
history always gives the same picture; failures and unknowns have room of their own and are never crowded out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.record.history import History, pairs

BUCKETS = 240
POINTS_OF_EACH_OUTCOME = 1200
OUTCOMES = ("ok", "fail", "info")
PLACE_NS = 1_000_000_000
"""What one row of a history without times counts as."""

_OF_OPERATIONS = ["index", "time", "process", "type", "f"]
_COLUMNS = (*_OF_OPERATIONS, "error")
_BINS_A_DECADE = 20
_LOWEST_DECADE = -3  # a microsecond, in ms
_BINS = 9 * _BINS_A_DECADE
_CODES = {"invoke": 0, "ok": 1, "fail": 2, "info": 3}

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Points:
    """A bounded sample of operations with one outcome."""

    index: Integers
    """The index of the completion."""
    start_s: Floats
    """The time of the invocation, or its index if there are no times."""
    latency_ms: Floats
    """The number of rows from the invocation to the completion where there are no times."""
    f: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Latency:
    """The latency of the ok operations of one kind, in ms."""

    median: float
    p99: float
    worst: float


@dataclass(frozen=True, kw_only=True)
class Measurements:
    rows: int
    timed: bool
    """Whether times say more than the order of the rows; where they do not, no seconds are shown."""
    duration_s: float
    """The number of rows where there are no times; as for everything in seconds here."""
    bucket_s: float
    counts: dict[str, dict[str, int]]
    """f -> type -> rows, without the nemesis."""
    errors: dict[tuple[str, str, str], int]
    """(f, type, error) -> rows."""
    rates: dict[str, Floats]
    """outcome -> completions a second in each bucket."""
    median_ms: Floats
    """The median latency of the ok operations begun in each bucket; NaN if there were none."""
    p99_ms: Floats
    latencies: dict[str, Latency]
    points: dict[str, Points]


def measure(path: Path) -> Measurements:
    """One pass over a closed history. Raises OSError, ValueError (of Arrow) for a file that is none."""
    rows = pq.read_metadata(path).num_rows
    first, last = _first_and_last_time_ns(path)
    # Without times, a row's place is its nanosecond; nothing real has a row every nanosecond.
    timed = last - first > rows
    duration_ns = last if timed else max(rows, 1) * PLACE_NS
    tally = _Tally(bucket_ns=max(duration_ns / BUCKETS, 1.0), timed=timed)
    history = History(
        path=path,
        value_type=pq.read_schema(path).field("value").type,
        operations=rows,
        complete=True,
    )
    for batch in history.batches(_COLUMNS):
        tally.add(batch)
    return tally.measurements(duration_ns)


def _first_and_last_time_ns(path: Path) -> tuple[int, int]:
    """When the first and the last row were recorded; 0 if there is none."""
    with pq.ParquetFile(path) as file:
        groups = [group for group in range(file.num_row_groups) if file.metadata.row_group(group).num_rows]
        if not groups:
            return 0, 0
        first, last = (file.read_row_group(group, columns=["time"]).column("time") for group in (groups[0], groups[-1]))
        return int(first[0].as_py()), int(last[-1].as_py())


def rows_at(path: Path, indices: Iterable[int]) -> dict[int, dict[str, Any]]:
    """These rows by their index, reading only the row groups that hold them (an index is a position)."""
    wanted = sorted(set(indices))
    found: dict[int, dict[str, Any]] = {}
    with pq.ParquetFile(path) as file:
        start = 0
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            inside = [index - start for index in wanted if start <= index < start + count]
            if inside:
                table = file.read_row_group(group).take(pa.array(inside, pa.int64()))
                found |= {row["index"]: row for row in table.to_pylist()}
            start += count
    return found


@dataclass(kw_only=True)
class _Tally:
    bucket_ns: float
    timed: bool
    rows: int = 0
    names: list[str] = field(default_factory=list)
    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    errors: dict[tuple[str, str, str], int] = field(default_factory=dict)
    completions: Integers = field(default_factory=lambda: np.zeros((len(OUTCOMES), BUCKETS), dtype=np.int64))
    histogram: Integers = field(default_factory=lambda: np.zeros((BUCKETS, _BINS), dtype=np.int64))
    by_name: dict[str, Integers] = field(default_factory=dict)
    worst: dict[str, float] = field(default_factory=dict)
    samples: dict[str, _Sample] = field(default_factory=lambda: {outcome: _Sample() for outcome in OUTCOMES})
    open_: pa.RecordBatch | None = None
    """Invocations whose completions have not come yet: at most one a process."""

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += len(batch)
        is_client = pc.greater_equal(batch.column("process"), 0)
        batch = batch if pc.all(is_client).as_py() else batch.filter(is_client)
        self._count(batch)
        batch = batch.select(_OF_OPERATIONS)
        if self.open_ is not None and len(self.open_):
            batch = pa.Table.from_batches([self.open_, batch]).unify_dictionaries().combine_chunks().to_batches()[0]
        if not len(batch):
            return
        types = _coded(batch.column("type"), _CODES)
        process = batch.column("process").to_numpy(zero_copy_only=False)
        index = batch.column("index").to_numpy(zero_copy_only=False)
        time = batch.column("time").to_numpy(zero_copy_only=False) if self.timed else index * PLACE_NS
        invoked = types == 0
        partner = pairs(index, process, invoked)
        self.open_ = batch.filter(pa.array(invoked & (partner < 0)))
        done = np.flatnonzero(~invoked & (partner >= 0))
        self._measure(index[done], time[partner[done]], time[done], types[done], batch.column("f").take(pa.array(done)))

    def _count(self, batch: pa.RecordBatch) -> None:
        f, type_ = batch.column("f"), batch.column("type")
        names, types = f.dictionary.to_pylist(), type_.dictionary.to_pylist()
        kind = f.indices.to_numpy().astype(np.int64) * len(types) + type_.indices.to_numpy()
        sizes = np.bincount(kind)
        for code in np.flatnonzero(sizes).tolist():
            named = names[code // len(types)], types[code % len(types)]
            self.counts[named] = self.counts.get(named, 0) + int(sizes[code])
        if batch.column("error").null_count < len(batch):
            self._count_errors(batch.filter(batch.column("error").is_valid()))

    def _count_errors(self, batch: pa.RecordBatch) -> None:
        counted = pa.table({name: batch.column(name).cast(pa.string()) for name in ("type", "f", "error")})
        for row in counted.group_by(["f", "type", "error"]).aggregate([([], "count_all")]).to_pylist():
            named = row["f"], row["type"], row["error"]
            self.errors[named] = self.errors.get(named, 0) + row["count_all"]

    def _measure(self, index: Integers, start: Integers, stop: Integers, types: Integers, f: pa.Array) -> None:
        began = np.clip(start / self.bucket_ns, 0, BUCKETS - 1).astype(np.int64)
        ended = np.clip(stop / self.bucket_ns, 0, BUCKETS - 1).astype(np.int64)
        latency_ms = np.maximum(stop - start, 0) / (1e6 if self.timed else PLACE_NS)
        bins = _bin(latency_ms)
        ok = types == _CODES["ok"]
        counted = np.bincount(began[ok] * _BINS + bins[ok], minlength=BUCKETS * _BINS)
        self.histogram += counted.reshape(BUCKETS, _BINS)
        names = f.dictionary.to_pylist()
        codes = f.indices.to_numpy(zero_copy_only=False)
        for code, name in enumerate(names):
            mine = ok & (codes == code)
            if mine.any():
                sums = self.by_name.setdefault(name, np.zeros(_BINS, dtype=np.int64))
                sums += np.bincount(bins[mine], minlength=_BINS)
                self.worst[name] = max(self.worst.get(name, 0.0), float(latency_ms[mine].max()))
        for position, outcome in enumerate(OUTCOMES):
            mine = types == _CODES[outcome]
            self.completions[position] += np.bincount(ended[mine], minlength=BUCKETS)
            self.samples[outcome].add(index[mine], start[mine] / 1e9, latency_ms[mine], codes[mine], names)

    def measurements(self, duration_ns: int) -> Measurements:
        bucket_s = self.bucket_ns / 1e9
        counts: dict[str, dict[str, int]] = {}
        for (f, type_), count in sorted(self.counts.items()):
            counts.setdefault(f, {})[type_] = count
        return Measurements(
            rows=self.rows,
            timed=self.timed,
            duration_s=duration_ns / 1e9,
            bucket_s=bucket_s,
            counts=counts,
            errors=dict(sorted(self.errors.items())),
            rates={outcome: self.completions[i] / bucket_s for i, outcome in enumerate(OUTCOMES)},
            median_ms=_quantile(self.histogram, 0.5),
            p99_ms=_quantile(self.histogram, 0.99),
            latencies={
                name: Latency(
                    median=min(float(_quantile(bins[np.newaxis], 0.5)[0]), self.worst[name]),
                    p99=min(float(_quantile(bins[np.newaxis], 0.99)[0]), self.worst[name]),
                    worst=self.worst[name],
                )
                for name, bins in sorted(self.by_name.items())
            },
            points={outcome: sample.points() for outcome, sample in self.samples.items()},
        )


@dataclass(kw_only=True)
class _Sample:
    """Keeps the operations whose hash ends in enough zero bits; one more bit whenever it grows too big."""

    bits: int = 0
    index: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    start_s: Floats = field(default_factory=lambda: np.empty(0))
    latency_ms: Floats = field(default_factory=lambda: np.empty(0))
    f: npt.NDArray[np.object_] = field(default_factory=lambda: np.empty(0, dtype=object))

    def add(self, index: Integers, start_s: Floats, latency_ms: Floats, codes: Integers, names: list[str]) -> None:
        kept = self._kept(index)
        self.index = np.concatenate([self.index, index[kept]])
        self.start_s = np.concatenate([self.start_s, start_s[kept]])
        self.latency_ms = np.concatenate([self.latency_ms, latency_ms[kept]])
        self.f = np.concatenate([self.f, np.array(names, dtype=object)[codes[kept]]])
        while len(self.index) > POINTS_OF_EACH_OUTCOME:
            self.bits += 1
            kept = self._kept(self.index)
            self.index, self.start_s = self.index[kept], self.start_s[kept]
            self.latency_ms, self.f = self.latency_ms[kept], self.f[kept]

    def _kept(self, index: Integers) -> npt.NDArray[np.bool_]:
        scattered = (index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)
        kept: npt.NDArray[np.bool_] = (scattered & np.uint64((1 << self.bits) - 1)) == 0
        return kept

    def points(self) -> Points:
        return Points(index=self.index, start_s=self.start_s, latency_ms=self.latency_ms, f=tuple(self.f))


def _coded(column: pa.DictionaryArray, codes: dict[str, int]) -> Integers:
    table = np.array([codes[name] for name in column.dictionary.to_pylist()], dtype=np.int64)
    coded: Integers = table[column.indices.to_numpy(zero_copy_only=False)]
    return coded


def _bin(latency_ms: Floats) -> Integers:
    position = (np.log10(np.maximum(latency_ms, 10.0**_LOWEST_DECADE)) - _LOWEST_DECADE) * _BINS_A_DECADE
    bins: Integers = np.clip(position, 0, _BINS - 1).astype(np.int64)
    return bins


def _quantile(histogram: Integers, q: float) -> Floats:
    """The quantile of each row, in ms: the middle, on the logarithmic scale, of the bin that holds it."""
    sums = histogram.cumsum(axis=1)
    total = sums[:, -1]
    wanted = np.maximum(np.ceil(total * q), 1)
    bins = (sums < wanted[:, np.newaxis]).sum(axis=1)
    middle: Floats = 10.0 ** ((bins + 0.5) / _BINS_A_DECADE + _LOWEST_DECADE)
    return np.where(total > 0, middle, np.nan)
