"""The consumption checker: every group gets everything, and nothing is passed over.

A message whose send was acknowledged is given to a member of every group (in a group that does not divide its queues,
to every member) until one has consumed it, or until it has failed as often as it may and is a dead letter. It may be
given again after any failure, but a group's committed offset never lies beyond a message that the group has not
finished. In order, no message is given before those ahead of it are done, and no two members consume from one queue at
the same time.

What breaks it, by name:
  unconsumed               acked, and a consumer that was drained in the end never was given it, or never finished it
  lost-retry               the same, although it had failed to consume it: it did not come again
  passed-over              a committed offset lies beyond one that holds a message which was finished later, or never
  overtaken                in order: given before a message at a lower offset of its queue was done with
  overlap                  in order: one process's time from `consume` to `finish` begins within another one's, on one
                           queue and in one group
  wrong-retry-count        given with n tries and no failure with n - 1 before; from a retry queue with none; with more
                           than the limit
  early-dead-letter        a dead letter that never failed with as many tries as it may
  stuck-consumer           not drained in the end, although the system served again, no node was dead, and all had
                           been healed before: queues without a member, or a message that is given without end
  unexpected-consumption   given, although no send of it was ever invoked
  aborted-consumption      given, although its send had certainly failed

It takes histories of the consumption workload (`workloads/consumption.py`). A message counts as consumed from the call
of the `finish` on, because the application had it even if that call failed. Consumption is certain from the completion
of a `consume` to the call of the `finish`. If a consumer was not drained to its end (`settled`), or its dead letters
were not read, what it lacks cannot be decided, and the result is UNKNOWN unless something else is broken.

If members pop, a message that one has not acknowledged is given again to any of them, and the committed offset only
says what was given out. So `passed-over` and `early-dead-letter` are not looked for, and counts are only checked in one
way: what comes from a retry queue was given before.

It does not establish that anything arrives in time, or once, or that queues are divided evenly.

Mutants it kills: commit-on-pull, offset-made-up (passed-over, unconsumed), retry-not-stored, dead-letters-dropped,
retry-unassigned (lost-retry), retry-count-kept (wrong-retry-count), lock-granted-twice, strict-lock-unnoted
(overlap), ghost-members (stuck-consumer); where members pop, revive-drop (lost-retry, unconsumed).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from checkers.api.anomaly import Anomaly
from checkers.api.excuses import Excuses
from checkers.api.findings import FINDINGS, gathered_findings, judge, summary_by_span
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import AnomalySummary, CheckerResult
from checkers.buckets import bucket_count
from checkers.consumption import messages, queues
from checkers.consumption.meanings import MEANINGS
from checkers.consumption.rows import Consumers, Mode, Model, consumers
from checkers.history_batches import history_rows
from checkers.prefix import Finals, by_their_names
from harness.record.meaning import Meaning

REASONS = 10
LAST_NS = np.iinfo(np.int64).max

__all__ = ["ConsumptionChecker", "Mode", "Model"]


@dataclass(frozen=True, kw_only=True)
class ConsumptionChecker:
    """Judges a consumption workload's history."""

    model: Model = Model.CLUSTERING
    mode: Mode = Mode.CONCURRENTLY
    limit: int = 2
    """How many times a message is tried after the first time."""
    name: str = "consumption"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS
    final_on_a_prefix: ClassVar[Finals] = by_their_names("passed-over", "overtaken", "overlap", "wrong-retry-count")

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        buckets = bucket_count(history_rows(request.history))
        known = consumers(engine, request.history, self.model)
        excuses = Excuses.by_operation(request.excuses, engine, request.history)

        history = engine.history(request.history, messages.COLUMNS)
        facts_of = partial(messages.message_facts, consumers=known, buckets=buckets)
        facts = engine.mapped(history, facts_of, messages.FACTS)
        of_messages = partial(
            messages.message_findings, consumers=known, mode=self.mode, limit=self.limit, excuses=excuses
        )
        found = engine.grouped(facts, ("bucket",), of_messages, FINDINGS)

        history = engine.history(request.history, queues.COLUMNS)
        events_of = partial(queues.queue_events, consumers=known, limit=self.limit)
        events = engine.mapped(history, events_of, queues.EVENTS)
        of_queues = partial(queues.queue_findings, consumers=known, mode=self.mode, excuses=excuses)
        found = engine.union(found, engine.grouped(events, ("queue",), of_queues, FINDINGS))

        anomalies = gathered_findings(engine, found, request.excuses).anomalies
        if request.run is not None and request.run.is_settled:
            anomalies = {**anomalies, **_stuck(known, Excuses.by_time(request.excuses))}
        undecided = list(_undecided(known))
        if len(undecided) > REASONS:
            undecided[REASONS:] = [f"{len(undecided) - REASONS} more consumers were not read to their end"]
        return judge(
            anomalies,
            legal=request.legal,
            undecided=undecided,
            statistics={"consumers": len(known.names)},
        )


def _stuck(consumers: Consumers, excuses: Excuses) -> dict[str, AnomalySummary]:
    found = [
        Anomaly(
            name="stuck-consumer",
            because=f"{name} did not come to the end of its queues, although everything had been healed and the system "
            "served again",
            details={"consumer": name},
        )
        for name, settled in zip(consumers.names, consumers.settled, strict=True)
        if not settled
    ]
    begun, ended = np.zeros(len(found), dtype=np.int64), np.full(len(found), LAST_NS)
    return {"stuck-consumer": summary_by_span(found, begun, ended, excuses)} if found else {}


def _undecided(consumers: Consumers) -> Iterator[str]:
    if not consumers.names:
        yield "nobody consumed anything"
    for name, settled, read in zip(consumers.names, consumers.settled, consumers.read, strict=True):
        if not settled:
            yield f"{name} was not drained to the end of its queues"
        elif not read and consumers.model is Model.CLUSTERING:
            yield f"the dead letters of {name} were not read"
