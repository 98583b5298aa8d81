"""Liveness: a healed quorum makes progress, though the rest stays broken.

It claims that after the storm, from the moment in which all faults were healed but for nodes that the system
can do without, operations of every required kind succeeded within the bound. Otherwise it is INVALID with
`no-progress`.

It takes any history with its run: the fault log's progress window, and `required_ok` (its names are the kinds of
operations). Where there is no such window the run did not come so far: UNKNOWN.

It does not establish progress during the storm, nor that the progress was right. It kills mutants of the class LV:
no-scan-after-switch, dead-master-returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from checkers.anomaly import Anomaly, Meaning
from checkers.plan import CheckRequest, Engine
from checkers.verdict import AnomalySummary, CheckerResult, Verdict

COLUMNS = ("time", "type", "f")
KINDS_LIMIT = 10_000
COUNTS = pa.schema([pa.field("f", pa.string()), pa.field("succeeded", pa.int64())])


MEANINGS: Mapping[str, Meaning] = {
    "no-progress": Meaning(
        says="Nothing of a kind of operation succeeded, although all had healed but nodes that the system can do "
        "without.",
        usually="No leader is elected any more, or a node waits for ever for one that is gone.",
    ),
}


class Liveness:
    """Counts what succeeded between healing and the bound."""

    name = "liveness"
    meanings = MEANINGS

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        window = request.run.faults.progress_window if request.run else None
        if request.run is None or window is None:
            reason = "progress was to be shown after the storm, but the run did not come so far"
            return CheckerResult(verdict=Verdict.UNKNOWN, reasons=(reason,))
        start_ns, end_ns = window
        history = engine.history(request.history, COLUMNS)
        counted = engine.mapped(history, partial(succeeded_between, start_ns=start_ns, end_ns=end_ns), COUNTS)
        totals = engine.gather(engine.grouped(counted, ("f",), total, COUNTS), KINDS_LIMIT)
        succeeded = {row["f"]: row["succeeded"] for row in totals.to_pylist()}
        bound_s = (end_ns - start_ns) / 1e9
        lacking = [f for f in sorted(request.run.required_ok) if not succeeded.get(f)]
        found = tuple(
            Anomaly(
                name="no-progress",
                because=f"no {f} succeeded in the {bound_s:g} s after all but spare nodes had healed",
                details={"f": f, "bound_s": bound_s},
            )
            for f in lacking
        )
        legal = request.legal.get("no-progress", "")
        return CheckerResult(
            verdict=Verdict.INVALID if found and not legal else Verdict.VALID,
            anomalies={"no-progress": AnomalySummary(count=len(found), examples=found, legal=legal)} if found else {},
            statistics={"succeeded": dict(sorted(succeeded.items()))},
        )


def succeeded_between(batch: pa.Table, *, start_ns: int, end_ns: int) -> pa.Table:
    """Kernel: ok completions by operation, both ends of the interval included."""
    time = batch["time"]
    inside = pc.and_(pc.greater_equal(time, start_ns), pc.less_equal(time, end_ns))
    ok = batch.filter(pc.and_(inside, pc.equal(batch["type"].cast(pa.string()), "ok")))
    counts = ok["f"].cast(pa.string()).value_counts()
    return pa.table({"f": counts.field("values"), "succeeded": counts.field("counts")}, schema=COUNTS)


def total(counts: pa.Table) -> pa.Table:
    """Kernel over the counts of one operation."""
    return pa.table({"f": counts["f"].slice(0, 1), "succeeded": [pc.sum(counts["succeeded"]).as_py()]}, schema=COUNTS)
