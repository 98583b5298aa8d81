"""Availability: how long clients were refused, how soon they were served again for good, and which fault did it.

It claims, of every kind of operation, by client and by queue (key): the lengths of all outages as quantiles, and the
share of the time without service. An outage goes from the first failed operation to the first success that lasts: a
run of at least LASTING_SUCCESSES successes with no failure within LASTING_WINDOW_S from it on
(`checkers.availability.outages`); a lucky success ends none. Each outage is blamed on the fault that struck last before
it. A `fail` by which a system that works says no (a compare-and-set that found another value) is service.

What breaks it:
  slow-recovery    an outage longer than `recovery_limit_s`, if that is demanded

It takes any history, and of its run, where there is one: when the storm and the final reads began (only what completes
in between is watched), `concurrency`, the faults that struck, and `recovery_limit_s`.

Quantiles are the lower bounds of bins that are at most 1/32 wide. Unfinished outages, which end with the load, are
counted, are no part of the quantiles, and break a limit only when they have lasted longer. It does not establish what
was lost meanwhile (`data_at_risk` of the log checker does), nor that operations without an end were refused.

"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.api.findings import FINDINGS, gathered_findings, judge
from checkers.api.plan import CheckRequest, Dataset, Engine, RunUnderCheck
from checkers.api.tallies import lowest_of_bin
from checkers.api.verdict import CheckerResult
from checkers.availability.outages import ANY_FAULT, TALLY, UNFINISHED, Lasting, slow_recoveries, tallied
from checkers.availability.runs import BY, COLUMNS, LOOSE, RUNS, Watch, joined_runs, loose_ends, runs_of
from checkers.buckets import bucket_count
from checkers.faults import NO_FAULT, Faults
from checkers.history_batches import history_rows
from harness.record.meaning import Meaning

LASTING_SUCCESSES = 3
LASTING_WINDOW_S = 1.0
LASTING = Lasting(successes=LASTING_SUCCESSES, window_ns=round(LASTING_WINDOW_S * 1e9))

QUANTILES = {"p50_ns": 0.5, "p90_ns": 0.9, "p99_ns": 0.99}

KINDS_LIMIT = 1_000_000
"""Kinds of operations times faults: properties of the run, not of the history's length."""
FAULTS_LISTED = 500
"""The most faults that are listed one by one."""

SUMMARY = pa.schema(
    [pa.field("by", pa.int8()), pa.field("f", pa.string()), pa.field("fault", pa.int32())]
    + [pa.field(name, pa.int64()) for name in ("outages", "unfinished", *QUANTILES, "max_ns", "longest_unfinished_ns")]
    + [pa.field(name, pa.int64()) for name in ("streams", "watched_ns", "without_ns")]
    + [pa.field("worst", pa.float64())]
)
"""Sums over outages. Lengths are in ns, -1 if there is none."""


MEANINGS: Mapping[str, Meaning] = {
    "slow-recovery": Meaning(
        says="Clients were refused for longer than is allowed before they were served again for good.",
        usually="Failure detection or the election takes too long, or clients keep on asking a node that is gone.",
    ),
}


class Availability:
    """Outages by client and by queue, and the faults to blame."""

    name = "availability"
    meanings = MEANINGS

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        run = request.run or RunUnderCheck()
        struck = Faults.of(run.faults.struck)
        runs = runs_of_streams(request, engine)
        tallies = engine.grouped(runs, ("bucket",), partial(tallied, struck=struck, lasting=LASTING), TALLY)
        summaries = engine.gather(engine.grouped(tallies, ("by", "f", "fault"), summarised, SUMMARY), KINDS_LIMIT)
        limit_s = run.recovery_limit_s
        anomalies: Mapping[str, Any] = {}
        if limit_s is not None:
            kernel = partial(slow_recoveries, struck=struck, lasting=LASTING, limit_ns=round(limit_s * 1e9))
            anomalies = gathered_findings(engine, engine.grouped(runs, ("bucket",), kernel, FINDINGS)).anomalies
        return judge(
            anomalies,
            legal=request.legal,
            undecided=(),
            statistics=statistics_of(summaries.to_pylist(), struck, limit_s),
        )


def runs_of_streams(request: CheckRequest, engine: Engine) -> Dataset:
    """RUNS of all streams that are watched."""
    run = request.run or RunUnderCheck()
    from_ns, until_ns = run.facts.storm_from_ns, run.facts.final_from_ns
    watch = Watch(
        from_ns=np.iinfo(np.int64).min if from_ns is None else from_ns,
        until_ns=np.iinfo(np.int64).max if until_ns is None else until_ns,
        clients=run.concurrency,
        buckets=bucket_count(history_rows(request.history)),
    )
    history = engine.history(request.history, COLUMNS)
    loose = engine.mapped(history, partial(loose_ends, watch=watch), LOOSE)
    joined = engine.grouped(loose, ("bucket",), partial(joined_runs, watch=watch), RUNS)
    return engine.union(engine.mapped(history, partial(runs_of, watch=watch), RUNS), joined)


def summarised(tallies: pa.Table) -> pa.Table:
    """Kernel over all tallies of one kind of operation and one fault."""
    column = {field.name: tallies[field.name].to_numpy() for field in TALLY if field.name not in ("f", "bin")}
    of_outages = tallies["bin"].is_valid().to_numpy()
    bins = tallies["bin"].fill_null(UNFINISHED).to_numpy()
    finished, unfinished = of_outages & (bins != UNFINISHED), of_outages & (bins == UNFINISHED)
    reached = np.bincount(bins[finished], column["count"][finished], minlength=1)
    used = np.flatnonzero(reached)
    total = np.cumsum(reached[used])
    row: dict[str, Any] = {
        "by": tallies["by"][0].as_py(),
        "f": tallies["f"][0].as_py(),
        "fault": tallies["fault"][0].as_py(),
        "outages": int(column["count"][finished].sum()),
        "unfinished": int(column["count"][unfinished].sum()),
        "max_ns": int(column["longest"][finished].max(initial=-1)),
        "longest_unfinished_ns": int(column["longest"][unfinished].max(initial=-1)),
        "streams": int(column["streams"].sum()),
        "watched_ns": int(column["watched"].sum()),
        "without_ns": int(column["without"].sum()),
        "worst": float(column["worst"].max()),
    }
    for name, quantile in QUANTILES.items():
        at = int(np.searchsorted(total, quantile * total[-1])) if len(used) else 0
        row[name] = lowest_of_bin(int(used[at])) if len(used) else -1
    return pa.table({name: [value] for name, value in row.items()}, schema=SUMMARY)


def statistics_of(rows: list[dict[str, Any]], struck: Faults, limit_s: float | None) -> dict[str, Any]:
    """The statistics: `recovery` by kind of operation and stream, and the same for each fault that caused outages."""
    recovery: dict[str, Any] = {}
    by_fault: dict[int, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: (row["fault"], row["f"], row["by"])):
        what = f"{row['f']} by {BY[row['by']]}"
        lengths = {name: row[name] for name in (*QUANTILES, "max_ns", "longest_unfinished_ns") if row[name] >= 0}
        figures: dict[str, Any] = {"outages": row["outages"], "unfinished": row["unfinished"], **lengths}
        if row["fault"] == ANY_FAULT:
            share = row["without_ns"] / max(row["watched_ns"], 1)
            recovery[what] = {"streams": row["streams"], **figures, "without_service": share, "worst": row["worst"]}
        else:
            by_fault.setdefault(row["fault"], {})[what] = figures
    faults = [
        {
            "fault": struck.names[number] if number != NO_FAULT else "no fault",
            "start_ns": int(struck.start_ns[number]) if number != NO_FAULT else None,
            "recovery": by_fault[number],
        }
        for number in sorted(by_fault)[:FAULTS_LISTED]
    ]
    statistics: dict[str, Any] = {
        "lasting_successes": LASTING_SUCCESSES,
        "lasting_window_s": LASTING_WINDOW_S,
        "recovery": recovery,
        "faults": faults,
    }
    if len(by_fault) > FAULTS_LISTED:
        statistics["faults_left_out"] = len(by_fault) - FAULTS_LISTED
    return statistics if limit_s is None else {**statistics, "recovery_limit_s": limit_s}
