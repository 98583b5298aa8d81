"""The recovery checker: once everything is healed the system serves again, and no node ends by itself.

It judges what the run itself established, whatever the workload. What breaks it, by name:
  no-progress   the system did not serve again within the time that it declares, although everything had been healed for
                that long
  panicked      a node ended by itself, and no fault had struck it under which the system declares that it may

What it had not given back by that time, though it served, the system names itself, and says what that means
(`RunFacts.lack`).

It takes the facts of a run, its faults, and what the system declares. Nothing is decided if something was not healed,
if a node that the system may depend on was permanently damaged, or if nothing is declared: `vacuity` and the facts' own
reasons make such a run UNKNOWN. A replica that stays behind while others serve is `stuck-replica`, of the checker that
compares replicas.

It does not establish progress while faults are active (`liveness` does, of a quorum), nor that it was right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from checkers.api.anomaly import Anomaly
from checkers.api.findings import judge
from checkers.api.plan import CheckRequest, Engine, RunUnderCheck
from checkers.api.verdict import AnomalySummary, CheckerResult
from harness.record.meaning import Meaning

MEANINGS: Mapping[str, Meaning] = {
    "no-progress": Meaning(
        says="The system did not come to serve again, although everything had been healed for the time in which it "
        "declares that it recovers.",
        usually="No leader is elected any more, or a node counts as dead for ever, or waits for one that is gone.",
    ),
    "panicked": Meaning(
        says="A node ended by itself, and no fault explains it.",
        usually="A state that its program holds for impossible was reached.",
    ),
}


class Recovery:
    """Judges what became of the system after the storm."""

    name = "recovery"

    def __init__(self, restores: Mapping[str, Meaning] | None = None) -> None:
        """`restores`: what the system declares that it gives back by itself; None: nothing."""
        self.meanings = {**MEANINGS, **(restores or {})}

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        run = request.run or RunUnderCheck()
        found = [*_without_progress(run), *_lacking(run), *_panicked(run)]
        names = sorted({anomaly.name for anomaly in found})
        anomalies = {name: tuple(anomaly for anomaly in found if anomaly.name == name) for name in names}
        return judge(
            {name: AnomalySummary(count=len(of), examples=of) for name, of in anomalies.items()},
            legal=request.legal,
            undecided=(),
            statistics={"served_again_s": _seconds(run)},
        )


def _seconds(run: RunUnderCheck) -> float | None:
    """The time from the healing until the system served, in seconds."""
    healed_ns, serves_ns = run.facts.healed_ns, run.facts.serves_ns
    return None if healed_ns is None or serves_ns is None else (serves_ns - healed_ns) / 1e9


def _without_progress(run: RunUnderCheck) -> Iterator[Anomaly]:
    waited_s = _waited_s(run)
    if run.facts.serves_ns is not None or waited_s is None:
        return
    yield Anomaly(
        name="no-progress",
        because=f"{waited_s:.1f} s after all faults had been healed the system did not serve, although it declares "
        f"that it recovers within {run.recovers_within_s:g} s",
        details={"waited_s": waited_s, "recovers_within_s": run.recovers_within_s},
    )


def _lacking(run: RunUnderCheck) -> Iterator[Anomaly]:
    waited_s, lack = _waited_s(run), run.facts.lack
    if lack is None or waited_s is None:
        return
    yield Anomaly(
        name=lack.name,
        because=f"{waited_s:.1f} s after all faults had been healed {lack.because}, although the system declares that "
        f"it recovers within {run.recovers_within_s:g} s",
        details={"waited_s": waited_s, "recovers_within_s": run.recovers_within_s},
    )


def _waited_s(run: RunUnderCheck) -> float | None:
    """How long it was waited for a system that had to recover in that time; None where it had not."""
    facts = run.facts
    if facts.final_from_ns is None or not run.recovered_by(facts.final_from_ns):
        return None
    assert facts.healed_ns is not None
    return (facts.final_from_ns - facts.healed_ns) / 1e9


def _panicked(run: RunUnderCheck) -> Iterator[Anomaly]:
    for node, panic in run.unexplained_panics():
        yield Anomaly(
            name="panicked",
            because=f"node {node} ended by itself: {panic}",
            details={"node": node},
        )
