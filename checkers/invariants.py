"""The invariants checker: what the system's adapter watched held at every moment.

Clients may have noticed nothing: a replica that lacks what was acknowledged does no harm until it is elected. Breaches
that were found during the run are among the run's facts (`harness.invariants`). Here they get the meaning that the
system declares, and are compared with what is legal at the time at which they were found.

A run has no breaches if its environment cannot watch (any but the simulator), or if its system has no invariants. It
does not establish that what the adapter watches is all that can go wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from checkers.api.anomaly import Anomaly
from checkers.api.excuses import Excuses
from checkers.api.findings import judge, summary_by_span
from checkers.api.plan import CheckRequest, Engine, RunUnderCheck
from checkers.api.verdict import AnomalySummary, CheckerResult
from harness.record.facts import Breach
from harness.record.meaning import Meaning


class Invariants:
    """Judges what a system's adapter found broken while the run went on."""

    name = "invariants"

    def __init__(self, meanings: Mapping[str, Meaning]) -> None:
        """`meanings`: what the system declares of its invariants."""
        self.meanings = meanings

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        run = request.run or RunUnderCheck()
        excuses = Excuses.by_time(request.excuses)
        names = sorted({breach.name for breach in run.facts.breaches})
        anomalies = {name: _summary(name, run.facts.breaches, excuses) for name in names}
        return judge(anomalies, legal=request.legal, undecided=(), statistics={})


def _summary(name: str, breaches: Sequence[Breach], excuses: Excuses) -> AnomalySummary:
    """Of one name."""
    of_name = [breach for breach in breaches if breach.name == name]
    times = np.array([breach.time_ns for breach in of_name], dtype=np.int64)
    at = [breach.nodes for breach in of_name]
    return summary_by_span([_anomaly(breach) for breach in of_name], times, times, excuses, at)


def _anomaly(breach: Breach) -> Anomaly:
    return Anomaly(
        name=breach.name,
        because=f"at {breach.time_ns / 1e9:.3f} s {breach.because}",
        details={"nodes": list(breach.nodes), "time_ns": breach.time_ns},
    )
