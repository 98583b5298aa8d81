"""Liveness: a healed quorum makes progress even if the rest stays broken.

It claims that after the storm, once all faults were healed except on nodes that the system can do without, operations
of every required kind succeeded within the bound. Otherwise it is INVALID with `no-progress`.

It takes any history with its run: the fault log's progress window, and `required_ok` (its names are the kinds of
operations). Without such a window the run did not get that far: UNKNOWN. It is also UNKNOWN if a kind neither succeeded
nor was tried within the window, if the healing came so late that less than the bound was left, or if nodes could not be
healed, because they ended by themselves or their disks are permanently damaged.

It does not establish progress during the storm, nor that the progress was right. It kills mutants of the class LV:
no-scan-after-switch, dead-master-returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.anomaly import Anomaly
from checkers.api.excuses import Excuses
from checkers.api.findings import judge, summary_by_span
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import CheckerResult, Verdict
from harness.record.meaning import Meaning

COLUMNS = ("time", "type", "f")
KINDS_LIMIT = 10_000
COUNTS = pa.schema([pa.field("f", pa.string()), pa.field("tried", pa.int64()), pa.field("succeeded", pa.int64())])
LEAST_SHARE = 0.9
"""The share of the bound that must be left once all is healed, because healing takes time."""


MEANINGS: Mapping[str, Meaning] = {
    "no-progress": Meaning(
        says="Nothing of a kind of operation succeeded, although all had healed but nodes that the system can do "
        "without.",
        usually="No leader is elected any more, or a node waits for ever for one that is gone.",
    ),
}


@dataclass(frozen=True)
class Liveness:
    """Counts what succeeded between healing and the bound, which is `bound_s` later."""

    bound_s: float
    name: ClassVar[str] = "liveness"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        window = request.run.faults.progress_window if request.run else None
        if request.run is None or window is None:
            reason = "progress was to be shown after the storm, but the run did not come so far"
            return CheckerResult(verdict=Verdict.UNKNOWN, reasons=(reason,))
        start_ns, end_ns = window
        history = engine.history(request.history, COLUMNS)
        counted = engine.mapped(history, partial(counted_between, start_ns=start_ns, end_ns=end_ns), COUNTS)
        totals = engine.gather(engine.grouped(counted, ("f",), total, COUNTS), KINDS_LIMIT).to_pylist()
        tried = {row["f"]: row["tried"] for row in totals}
        succeeded = {row["f"]: row["succeeded"] for row in totals}
        lacking = [f for f in sorted(request.run.required_ok) if not succeeded.get(f)]
        given_s = (end_ns - start_ns) / 1e9
        lost = sorted(request.run.damaged | request.run.facts.panics.keys())
        if lost:
            reasons = tuple(f"no {f} succeeded, but {', '.join(lost)} could not be healed" for f in lacking)
            lacking = []
        elif given_s < LEAST_SHARE * self.bound_s:
            late = f"all but spare nodes had healed only {given_s:g} s before the end, so that no progress in "
            reasons = tuple(f"{late}{self.bound_s:g} s could be demanded: no {f} succeeded" for f in lacking)
            lacking = []
        else:
            reasons = tuple(
                f"no {f} was tried after all but spare nodes had healed" for f in lacking if not tried.get(f)
            )
            lacking = [f for f in lacking if tried.get(f)]
        found = tuple(
            Anomaly(
                name="no-progress",
                because=f"no {f} succeeded in the {given_s:g} s after all but spare nodes had healed",
                details={"f": f, "bound_s": given_s},
            )
            for f in lacking
        )
        starts, ends = np.full(len(found), start_ns), np.full(len(found), end_ns)
        excuses = Excuses.by_time(request.excuses)
        return judge(
            {"no-progress": summary_by_span(found, starts, ends, excuses)} if found else {},
            legal=request.legal,
            undecided=reasons,
            statistics={"succeeded": dict(sorted((f, count) for f, count in succeeded.items() if count))},
        )


def counted_between(batch: pa.Table, *, start_ns: int, end_ns: int) -> pa.Table:
    """Kernel: invocations and ok completions by operation, both ends of the interval included."""
    time = batch["time"]
    inside = batch.filter(pc.and_(pc.greater_equal(time, start_ns), pc.less_equal(time, end_ns)))
    type_ = inside["type"].cast(pa.string())
    rows = pa.table(
        {
            "f": inside["f"].cast(pa.string()),
            "tried": pc.equal(type_, "invoke").cast(pa.int64()),
            "succeeded": pc.equal(type_, "ok").cast(pa.int64()),
        },
        schema=COUNTS,
    )
    return rows.group_by("f").aggregate([("tried", "sum"), ("succeeded", "sum")]).rename_columns(COUNTS.names)


def total(counts: pa.Table) -> pa.Table:
    """Kernel over the counts of one operation."""
    sums = {name: [pc.sum(counts[name]).as_py()] for name in ("tried", "succeeded")}
    return pa.table({"f": counts["f"].slice(0, 1), **sums}, schema=COUNTS)
