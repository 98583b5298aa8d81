"""The checker of what a log offers in addition to its queues: batches, filters and keys.

A batch of messages is in the final log as a whole or not at all. A poll by tag, which says from where it read and where
the next one is to begin, was given every message of that tag in between, and no other. A replica that is asked for the
messages with a key names the places where these stand in the final log.

What breaks it, by name:
  torn-batch         some messages of one batch are in the final log, others are not
  foreign-message    a poll by tag was given a message of another tag, or one from outside of the places it passed
  filtered-skip      a poll by tag passed a message of that tag without giving it
  key-not-found      a message is in the final log, and its key does not lead to it
  key-misleads       a key leads to a place where the final log does not have its message

It takes histories of the log workload with `send-batch`, `filtered-poll`, `final-filtered-poll` and `final-look-up`;
the tag of message m is m modulo the number of tags. Only queues that were read to their end at every replica are
judged. A skip of a poll by tag in the storm only counts if nothing may legally have been lost; otherwise the log may
have been another one at that time. Answers of nodes with permanently damaged disks prove nothing, nor do those of any
node after damage that spreads, because entries of queues and of indexes have no checksums. If messages expire during
the final reads, or earlier at one replica than at another, an excuse for the whole run names what can be seen of that.

Mutants it kills: torn-batch, filter-skips-one, index-not-durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.api.findings import FINDINGS, Example, Findings, gathered_findings, judge
from checkers.api.plan import CheckRequest, Engine, RunUnderCheck
from checkers.api.verdict import EXAMPLES, CheckerResult
from checkers.kernels.columns import codes
from checkers.log.final_reads import FinalReads, final_reads
from harness.record.meaning import Meaning

MEANINGS: Mapping[str, Meaning] = {
    "torn-batch": Meaning(
        says="Some messages of one batch are in the final log, and others are not.",
        usually="A crash or a failover during its write left its first messages.",
    ),
    "foreign-message": Meaning(
        says="A poll by tag was given a message that it had not asked for.",
        usually="Messages are distinguished by a hash of their tags alone, or the filter was not looked at.",
    ),
    "filtered-skip": Meaning(
        says="A poll by tag passed a message of that tag without giving it.",
        usually="Where to read on was computed from what was given instead of from what was looked at.",
    ),
    "key-not-found": Meaning(
        says="A message is in the final log, and its key does not lead to it.",
        usually="The index was not built anew after a restart, or went on from where a log had ended that was cut.",
    ),
    "key-misleads": Meaning(
        says="A key leads to a place where its message does not stand.",
        usually="The index kept entries of what was cut from the log.",
    ),
}

COLUMNS = ("index", "type", "f", "key", "node")
VALUES = ("message", "offset", "messages", "resumed", "tag", "txn.f", "txn.message")
FUNCTIONS = ("send-batch", "final-poll", "filtered-poll", "final-filtered-poll", "final-look-up")
BATCH, FINAL_POLL, FILTERED, FINAL_FILTERED, LOOK_UP = range(5)
NOTHING = -1

FACTS = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("kind", pa.int8()),
        pa.field("index", pa.int64()),
        pa.field("node", pa.string()),
        pa.field("asked", pa.int64()),
        pa.field("first", pa.int64()),
        pa.field("next", pa.int64()),
        pa.field("messages", pa.list_(pa.int64())),
        pa.field("offsets", pa.list_(pa.int64())),
    ]
)
"""One row for each operation on the queue `key`. `asked` is a tag, or the message whose key was looked up. A filtered
poll passed [first, next)."""


@dataclass(frozen=True)
class FeaturesChecker:
    """Judges batches, filters and keys. `tags` is how many tags there are; if it is 0, only batches are judged."""

    tags: int
    name = "log-features"
    meanings = MEANINGS

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        final = final_reads(engine, request.history)
        rows = engine.history(request.history, (*COLUMNS, *(f"value.{name}" for name in VALUES)))
        facts = engine.mapped(rows, facts_of, FACTS)
        is_strict = not request.excuses and not request.legal
        doubted = _doubted(request.run, final.nodes)
        excused = {name: place for place, each in reversed([*enumerate(request.excuses)]) for name in each.anomalies}
        kernel = partial(
            queue_findings, final=final, tags=self.tags, is_strict=is_strict, doubted=doubted, excused=excused
        )
        findings = engine.grouped(facts, ("key",), kernel, FINDINGS)
        found = gathered_findings(engine, findings, request.excuses)
        return judge(found.anomalies, legal={}, undecided=[], statistics={})


def _doubted(run: RunUnderCheck | None, nodes: tuple[str, ...]) -> frozenset[str]:
    """The nodes, "" for an unknown one, whose answers may be wrong because of damage to a disk."""
    if run is None:
        return frozenset()
    spreads = {kind for window in run.faults.struck for kind in window.kinds} & {*run.contagious}
    return frozenset({*nodes, ""}) if spreads else run.damaged


def facts_of(batch: pa.Table) -> pa.Table:
    """Kernel: FACTS of one batch. A batch of messages is taken from its invocation, all others from completions."""
    kinds, is_ok, is_invoke = (
        codes(batch["f"], FUNCTIONS),
        codes(batch["type"], ("ok",)) == 0,
        codes(batch["type"], ("invoke",)) == 0,
    )
    wanted = np.flatnonzero(((kinds == BATCH) & is_invoke) | ((kinds > BATCH) & is_ok))
    facts = [_fact(int(kinds[at]), row) for at, row in zip(wanted.tolist(), _rows(batch, wanted), strict=True)]
    return pa.Table.from_pylist(facts, schema=FACTS)


def _rows(batch: pa.Table, wanted: Any) -> list[dict[str, Any]]:
    return batch.take(pa.array(wanted)).to_pylist() if len(wanted) else []


def _fact(kind: int, row: Mapping[str, Any]) -> dict[str, Any]:
    value = row["value"] or {}
    shown = value.get("txn") if kind == BATCH else value.get("messages")
    asked = value.get("message") if kind == LOOK_UP else value.get("tag")
    return {
        "key": row["key"] or "",
        "kind": kind,
        "index": row["index"],
        "node": row["node"] or "",
        "asked": NOTHING if asked is None else asked,
        "first": value.get("resumed") or 0,
        "next": value.get("offset") or 0,
        "messages": [one["message"] for one in shown or ()],
        "offsets": [one.get("offset", NOTHING) for one in shown or ()] if kind != BATCH else [],
    }


def queue_findings(
    facts: pa.Table,
    *,
    final: FinalReads,
    tags: int,
    is_strict: bool,
    doubted: frozenset[str],
    excused: Mapping[str, int],
) -> pa.Table:
    """Kernel over all FACTS of a queue. `excused`: anomaly -> place of the excuse that names it."""
    rows = sorted(facts.to_pylist(), key=lambda row: (row["index"], row["kind"]))
    findings = Findings()
    queue = rows[0]["key"]
    number = final.queues.index(queue) if queue in final.queues else NOTHING
    if number == NOTHING or not final.every[number]:
        return findings.table()
    log = {
        offset: message
        for row in rows
        if row["kind"] == FINAL_POLL
        for message, offset in zip(row["messages"], row["offsets"], strict=True)
    }
    places = {message: offset for offset, message in log.items()}
    found: dict[str, list[Example]] = {name: [] for name in MEANINGS}
    for row in rows:
        if row["kind"] == BATCH:
            found["torn-batch"] += _torn(row, places)
        elif row["node"] in doubted:
            continue
        elif row["kind"] == LOOK_UP:
            _judge_look_up(row, places, found)
        elif row["kind"] in (FILTERED, FINAL_FILTERED):
            found["foreign-message"] += _foreign(row, tags)
            if is_strict or row["kind"] == FINAL_FILTERED:
                found["filtered-skip"] += _skipped(row, log, tags)
    for name, examples in found.items():
        findings.add(name, len(examples), examples[:EXAMPLES], excused.get(name))
    return findings.table()


def _torn(row: Mapping[str, Any], places: Mapping[int, int]) -> Iterable[Example]:
    there = [message for message in row["messages"] if message in places]
    gone = [message for message in row["messages"] if message not in places]
    if there and gone:
        because = f"of one batch, messages {_listed(there)} are in the final log, and {_listed(gone)} are not"
        yield _example(row, because, there=there, gone=gone)


def _judge_look_up(row: Mapping[str, Any], places: Mapping[int, int], found: Mapping[str, list[Example]]) -> None:
    asked, offsets = row["asked"], row["offsets"]
    expected = places.get(asked)
    for message, offset in zip(row["messages"], offsets, strict=True):
        if message != asked or offset != expected:
            because = f"the key of message {asked} leads to {offset} at {row['node']}, where it does not stand"
            found["key-misleads"].append(_example(row, because, message=asked, offset=offset))
    if expected is not None and expected not in offsets:
        because = f"message {asked} is in the final log at {expected}, and {row['node']} does not find it by its key"
        found["key-not-found"].append(_example(row, because, message=asked, offset=expected))


def _foreign(row: Mapping[str, Any], tags: int) -> Iterable[Example]:
    for message, offset in zip(row["messages"], row["offsets"], strict=True):
        if message % tags != row["asked"] or not row["first"] <= offset < row["next"]:
            because = (
                f"a poll for tag {row['asked']} from {row['first']} to {row['next']} was given message {message} at "
                f"{offset}, which has tag {message % tags}"
            )
            yield _example(row, because, message=message, offset=offset)


def _skipped(row: Mapping[str, Any], log: Mapping[int, int], tags: int) -> Iterable[Example]:
    given = set(row["offsets"])
    for offset in range(row["first"], min(row["next"], max(log, default=-1) + 1)):
        message = log.get(offset)
        if message is not None and message % tags == row["asked"] and offset not in given:
            because = (
                f"a poll for tag {row['asked']} from {row['first']} to {row['next']} at {row['node'] or 'a replica'} "
                f"was not given message {message} at {offset}"
            )
            yield _example(row, because, message=message, offset=offset)


def _example(row: Mapping[str, Any], because: str, **details: Any) -> Example:
    tie = (int(details.get("offset", 0)),)
    return Example(key=row["key"], operations=(row["index"],), tie=tie, because=because, details=details)


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (" …" if len(numbers) > 8 else "")
