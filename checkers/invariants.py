"""The invariants checker: what the system's adapter watched held at every moment.

Clients may have noticed nothing: a replica that lacks what was acknowledged harms nobody until it is elected. What was
found broken while the run went on is among the run's facts (`harness.invariants`); here it gets its meaning, and is
held against what is legal, by the time at which it was found.

What breaks it, by name:
  unheld-ack         a replica that may be elected lacked what had been acknowledged
  not-durable        a node that started again lacked what it had vouched for as durable
  too-few-in-sync    a write was taken or acknowledged while fewer replicas were in sync than it demands
  laggard-in-sync    a replica counted as in sync long after it had fallen behind
  beyond-log         a node took more for confirmed, or had more in its queues, than its log held
  passing-offset     a consumer's offset stayed beyond the end of its queue when the log had become shorter
  torn-log           a log that ends within a message was compared with another
  wrong-epochs       what a node had noted of epochs did not fit its log
  diverging-epochs   two nodes disagreed on where one epoch begins
  diverging-commands two nodes applied different commands at one place of a replicated log
  shared-identity    two living nodes went by one identity
  dead-newcomer      a replica that counts as dead joined the in-sync set
  stale-route        clients were led back to an older master, or to two masters of one epoch
  overrated-candidate who was elected was ranked by a log longer than its own
  learner-elected    a replica that may never lead was elected
  needlessly-unclean who was not in sync was elected, where that is allowed, though one that was in sync lived
  needless-shrink    a replica that had just said that it holds everything was put out of the in-sync set
  stale-change       the in-sync set was replaced by who knew an older one, or led no more
  stale-answer       a request was answered by a state older than what was decided before it was made
  deleted-early      a node deleted data before it had kept them for as long as is promised
  returned-tail      what a node had cut from its log, durably, was there again when it started again

A run whose environment cannot watch (any but the simulator), or of a system that brings no invariants, has none broken.
It does not establish that what the adapter watches is all that can go wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from checkers.anomaly import Anomaly, Meaning
from checkers.excuses import Excuses
from checkers.findings import judge, summary_by_span
from checkers.plan import CheckRequest, Engine, RunUnderCheck
from checkers.verdict import AnomalySummary, CheckerResult
from harness.record.facts import Breach


class Invariants:
    """Judges what a system's adapter found broken while the run went on."""

    name = "invariants"
    meanings: ClassVar[Mapping[str, Meaning]] = {
        "unheld-ack": Meaning(
            says="A replica that may be elected lacked what had been acknowledged.",
            usually="It joined the in-sync set too early, or writes were acknowledged without its acknowledgement.",
        ),
        "not-durable": Meaning(
            says="A node that started again lacked what it had vouched for as durable.",
            usually="It answered before the fsync, or took a failed one for a success.",
        ),
        "too-few-in-sync": Meaning(
            says="A write was taken, or acknowledged, while fewer replicas were in sync than it demands.",
            usually="The demand is not checked, or against a set that is not the current one; or the set shrank while "
            "the write waited.",
        ),
        "laggard-in-sync": Meaning(
            says="A replica counted as in sync long after it had fallen behind.",
            usually="Being caught up is measured by a wrong clock, or against less than the whole log.",
        ),
        "beyond-log": Meaning(
            says="A node took more for confirmed, or had more in its queues, than its log held.",
            usually="It believes what it is told of the confirmed offset, or does not cut its queues with its log.",
        ),
        "passing-offset": Meaning(
            says="A consumer's offset stayed beyond the end of its queue when the log had become shorter.",
            usually="Offsets are not lowered where a log is cut, so that the group passes over what is written next.",
        ),
        "diverging-epochs": Meaning(
            says="Two nodes disagreed on where one epoch begins.",
            usually="An epoch was used before it was durable, twice, or without being recorded.",
        ),
        "torn-log": Meaning(
            says="A log that ends within a message was compared with another.",
            usually="The rest of a message that a crash cut short is taken for there, and nobody sends it again.",
        ),
        "wrong-epochs": Meaning(
            says="What a node had noted of epochs did not fit its log.",
            usually="An epoch is not noted, not durably, or not taken back where the log lost its bytes.",
        ),
        "diverging-commands": Meaning(
            says="Two nodes applied different commands at one place of a replicated log.",
            usually="Something counted as committed that a majority did not hold, or that was overwritten later.",
        ),
        "shared-identity": Meaning(
            says="Two living nodes went by one identity.",
            usually="Who applies for an identity is not compared with who has it.",
        ),
        "learner-elected": Meaning(
            says="A replica that may never lead was elected.",
            usually="The election looks at all replicas alike where no other lives.",
        ),
        "dead-newcomer": Meaning(
            says="A replica that counts as dead joined the in-sync set.",
            usually="Whether who is proposed lives is not looked at when the proposal is decided.",
        ),
        "stale-route": Meaning(
            says="Clients were led back to an older master, or to two masters of one epoch.",
            usually="Whoever claims to be master last is believed, or a deposed one goes on claiming it.",
        ),
        "overrated-candidate": Meaning(
            says="Who was elected was ranked by a log longer than its own.",
            usually="The election goes by what a node reported before it started again with less.",
        ),
        "needlessly-unclean": Meaning(
            says="A replica that was not in sync was elected although one that was in sync lived.",
            usually="Where unclean elections are allowed, all that live are taken for equals.",
        ),
        "needless-shrink": Meaning(
            says="A replica that had just said that it holds everything was put out of the in-sync set.",
            usually="Since when it lags is measured by a clock that jumps.",
        ),
        "stale-change": Meaning(
            says="The in-sync set was replaced by a node that knew an older one, or led no more.",
            usually="The epochs that a proposal rests on are not compared with those that hold when it is decided.",
        ),
        "stale-answer": Meaning(
            says="A request was answered by a state older than what was decided before it was made.",
            usually="A leader answers without asking whether it still leads, or before it knows what others decided.",
        ),
        "deleted-early": Meaning(
            says="A node deleted data before it had kept them for as long as is promised.",
            usually="Ages are told by a clock that jumps, or by when a file was begun and not by its last write.",
        ),
        "returned-tail": Meaning(
            says="What a node had cut from its log was there again when it started again.",
            usually="The cut is not durable, or only in memory.",
        ),
    }

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
