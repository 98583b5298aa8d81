"""The log checker: what was acked is kept.

A message whose send was acknowledged stays in its queue at the offset that the acknowledgement named, once, for ever,
and the same for all readers: every later reader of the queue finds it there, in order, without holes, and none finds a
message that was not committed.

What breaks it, by name:
  lost-write             known to be written (acked or read), and not in the final log, although that log goes on behind
                         it, or it had been read before
  unseen                 acked, behind the end of all final reads, and never read
  dirty-read             read during the run, and not in the final log: it was shown before it was safe for ever
  aborted-read           read, although its send had certainly failed
  unexpected-read        read, although no send of it was ever invoked
  duplicate              one message in two places
  inconsistent-offsets   one place (queue and offset) with two messages; acks name places as polls do
  diverging-replicas     final reads of two replicas find different messages in one place
  stuck-replica          final reads of a replica are missing or fell short, although the system served again, no node
                         was dead, and everything had been healed before them; nodes whose disks are damaged for good
                         are left out, where the others depended on none of them
  nonmonotonic-poll      a consumer that did not ask to go back was given an offset at or before its last one
  nonmonotonic-send      one producer's later ack lies at or before its earlier one, in one queue
  poll-skip              a consumer went past an offset that is known to hold a message
  internal-skip, internal-nonmonotonic   the same inside one poll
  consumer-offset-skip   a consumer began where its group's committed offset said, beyond messages of the final log that
                         no poll of the group ever returned
  precommitted-read      where sends of several transactions may lie between each other: a transaction was given what it
                         sent itself
  G0 … G2-item, each plain, -process and -realtime   if there are transactions of several sends and polls: cycles of
                         dependencies among all operations (`checkers.log.queue_dependencies`)

It takes histories of the log workload: `send`, `poll`, `final-poll` and `caught-up`, with the queue as key, and `txn`,
whose value is a list of sends and polls that name theirs. Consumer groups are looked at in single polls only. A system
that promises less than serializable transactions names the cycles that it may have as legal; where it lets sends of
several transactions lie between each other (the option `writes`), their order proves nothing. The final log is the
union over all replicas that were read to their end (`checkers.log.final_reads`); where final reads are missing, the
first three cannot be decided, and the result is UNKNOWN unless something else is broken.

Where acknowledged messages were lost, the statistics give the data at risk: how many each fault took and how far back
it reached (`checkers.log.losses`; the option `faults` of the request names them).

It does not establish that sends succeed, that anything arrives in time, or that all replicas hold all messages.

Mutants it kills: flush-lie, ack-before-append, silent-unclean, ignore-demotion, demotion-acks and shrink-first
(lost-write, unseen), dispatch-to-max (dirty-read), truncate-by-epoch-only (diverging-replicas, lost-write).
"""

from __future__ import annotations

from functools import partial
from typing import Any

from checkers.api.anomaly import Anomaly
from checkers.api.excuses import Excuses
from checkers.api.findings import FINDINGS, gathered_findings, judge
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import EXAMPLES, AnomalySummary, CheckerResult
from checkers.buckets import bucket_count
from checkers.faults import Faults
from checkers.history_batches import history_rows
from checkers.log.consumers import STEPPED, STEPS, consumer_jumps, consumer_steps
from checkers.log.final_reads import FinalReads, final_reads
from checkers.log.groups import consumer_groups
from checkers.log.jumps import OUTCOMES, place_outcomes, skip_findings
from checkers.log.losses import data_at_risk
from checkers.log.meanings import FINAL_ON_A_PREFIX, MEANINGS
from checkers.log.messages import FACTS, LOSSES, UNREAD, message_facts, message_findings
from checkers.log.places import PLACES, place_facts
from checkers.log.precommitted import precommitted_reads
from checkers.log.queue_dependencies import Writes
from checkers.log.rows import COLUMNS
from checkers.log.transaction_cycles import transaction_cycles

LOST = frozenset({"lost-write", "unseen"})
REASONS = 10
"""The most queues with incomplete final reads that are named."""


class LogChecker:
    """Judges a log workload's history."""

    name = "log"
    meanings = MEANINGS
    final_on_a_prefix = FINAL_ON_A_PREFIX

    def __init__(self, *, writes: Writes = Writes.ISOLATED) -> None:
        self._writes = writes

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        buckets = bucket_count(history_rows(request.history))
        final = final_reads(engine, request.history)
        history = engine.history(request.history, COLUMNS)
        excuses = Excuses.by_operation(request.excuses, engine, request.history)

        facts_of = partial(message_facts, final=final, buckets=buckets, all_attempts=excuses.about(*LOSSES))
        facts = engine.mapped(history, facts_of, FACTS)
        findings_of = partial(message_findings, final=final, excuses=excuses)
        of_messages = engine.grouped(facts, ("bucket",), findings_of, FINDINGS)

        walked = engine.history(request.history, STEPPED)
        steps = engine.mapped(walked, partial(consumer_steps, final=final, buckets=buckets), STEPS)
        jumps = engine.grouped(steps, ("bucket",), partial(consumer_jumps, buckets=buckets), PLACES)
        places = engine.mapped(history, partial(place_facts, final=final, buckets=buckets), PLACES)
        outcomes_of = partial(place_outcomes, final=final, excuses=excuses, buckets=buckets)
        outcomes = engine.grouped(engine.union(places, jumps), ("bucket",), outcomes_of, OUTCOMES)
        skips_of = partial(skip_findings, final=final, excuses=excuses)
        of_places = engine.grouped(outcomes, ("bucket",), skips_of, FINDINGS)

        findings = engine.union(of_messages, of_places)
        of_groups = consumer_groups(engine, request.history, final=final, excuses=excuses, buckets=buckets)
        if of_groups is not None:
            findings = engine.union(findings, of_groups)
        if final.transactions and self._writes is Writes.INTERLEAVED:
            findings = engine.union(findings, engine.mapped(history, precommitted_reads, FINDINGS))
        found = gathered_findings(engine, findings, request.excuses)
        anomalies = dict(found.anomalies)
        if request.run is not None and request.run.is_settled:
            anomalies = {**anomalies, **_stuck(final, request.run.damaged)}
        unfinished = final.unfinished
        if self._writes is Writes.INTERLEAVED and not found.tally(UNREAD).count:
            # A consumer has got all that was acknowledged. If no logs are read again, no more is promised.
            unfinished = tuple(sentence for sentence in unfinished if sentence not in final.unasked)
        undecided = list(unfinished[:REASONS])
        if final.transactions:
            in_cycles, not_searched = transaction_cycles(engine, request, self._writes)
            anomalies = dict(sorted({**anomalies, **in_cycles}.items()))
            undecided += not_searched
        if len(unfinished) > REASONS:
            undecided.append(f"final reads incomplete for {len(unfinished) - REASONS} more queues")
        statistics: dict[str, Any] = {"queues": len(final.queues), **final.counts}
        if not LOST.isdisjoint(anomalies):
            struck = Faults.of(request.run.faults.struck if request.run else ())
            statistics["data_at_risk"] = data_at_risk(
                engine, request.history, final=final, buckets=buckets, struck=struck
            )
        return judge(anomalies, legal=request.legal, undecided=undecided, statistics=statistics)


def _stuck(final: FinalReads, damaged: frozenset[str]) -> dict[str, AnomalySummary]:
    """One finding for each stuck replica, except those with permanently damaged disks."""
    nodes = sorted({node for _, node in final.behind} - damaged)
    found = [
        Anomaly(
            name="stuck-replica",
            because=f"{node} was not read to the end of {len(queues)} queues, {queues[0] or 'the queue'} first, "
            "although everything had been healed and the system served again",
            details={"node": node, "queues": queues[:REASONS]},
        )
        for node in nodes
        for queues in [[queue for queue, behind in final.behind if behind == node]]
    ]
    return {"stuck-replica": AnomalySummary(count=len(found), examples=tuple(found[:EXAMPLES]))} if found else {}
