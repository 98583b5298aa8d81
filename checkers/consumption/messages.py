"""The fate of each message: which consumers were given it, how often, with which outcome, and which should have
been."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from checkers.api.excuses import Excuses
from checkers.api.findings import Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.consumption.rows import (
    CONSUME,
    DEAD_LETTERS,
    FINISH,
    LATER,
    MAX,
    OUTCOMES,
    RETRY_PREFIX,
    SEND,
    Consumers,
    MessageRows,
    Mode,
    Model,
    Rows,
)
from checkers.kernels.columns import FAIL, INVOKE, NONE, OK, Bool, Int64, codes, integers, member, witness_order
from checkers.kernels.hashing import bucket_of, mixed

ASKED, ACKED, REFUSED, GIVEN, CAME_BACK, CONSUMED, FAILED, DEAD = range(8)
"""Kinds of facts about a message: its send began, succeeded, failed; it was given to a consumer, or given from a retry
queue; it was finished with success, or to come again; it is a dead letter."""

FACTS = pa.schema(
    [pa.field("bucket", pa.int32()), pa.field("kind", pa.int8())]
    + [pa.field(name, pa.int64()) for name in ("message", "consumer", "tries", "index")]
)
"""Facts about messages. `consumer` is -1, and `tries` NONE, if there is none."""

COLUMNS = (
    *("index", "process", "type", "f"),
    *("value.message", "value.group", "value.member", "value.outcome"),
    *("value.messages.message", "value.messages.queue", "value.messages.offset", "value.messages.tries"),
)
LOSSES = ("unconsumed", "lost-retry")


def message_facts(batch: pa.Table, *, consumers: Consumers, buckets: int) -> pa.Table:
    """Kernel: what one batch says of messages."""
    rows = Rows.of(batch)
    consumer = consumers.numbers(rows.value).astype(np.int64)
    parts: list[tuple[Int64, Int64, Int64, Int64, Int64]] = []

    sent = integers(member(rows.value, "message"))
    for type_, kind in ((INVOKE, ASKED), (OK, ACKED), (FAIL, REFUSED)):
        at = np.flatnonzero((rows.f == SEND) & (rows.type == type_) & (sent != NONE))
        none = np.full(len(at), NONE, dtype=np.int64)
        parts.append((np.full(len(at), kind), sent[at], np.full(len(at), -1), none, rows.index[at]))

    given = MessageRows.of(rows, (rows.f == CONSUME) & (rows.type == OK))
    finished = MessageRows.of(rows, (rows.f == FINISH) & (rows.type == INVOKE))
    dead = MessageRows.of(rows, (rows.f == DEAD_LETTERS) & (rows.type == OK))
    is_later = codes(member(rows.value, "outcome"), OUTCOMES)[finished.row] == LATER
    for said, kinds_of in (
        (given, _given_as(given)),
        (finished, np.where(is_later, FAILED, CONSUMED)),
        (dead, np.full(len(dead.row), DEAD)),
    ):
        parts.append((kinds_of, said.message, consumer[said.row], said.tries, rows.index[said.row]))

    kinds, message, by, tries, index = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
    return pa.table(
        [bucket_of(mixed(message), buckets), kinds.astype(np.int8), message, by, tries, index], schema=FACTS
    )


def _given_as(messages: MessageRows) -> Int64:
    came_back = np.array(
        [(queue or "").startswith(RETRY_PREFIX) for queue in messages.queue.to_pylist()], dtype=np.bool_
    )
    return np.where(came_back, CAME_BACK, GIVEN).astype(np.int64)


def message_findings(facts: pa.Table, *, consumers: Consumers, mode: Mode, limit: int, excuses: Excuses) -> pa.Table:
    """Kernel over all facts of a bucket of messages."""
    findings = Findings()
    if facts.num_rows:
        messages = _Messages(facts, consumers)
        messages.report_missing(findings, excuses)
        messages.report_unsent(findings)
        if mode is Mode.POPPING:
            messages.report_uncounted(findings, excuses)
        elif consumers.model is Model.CLUSTERING:
            messages.report_counts(findings, limit, excuses)
            messages.report_early_dead_letters(findings, limit, excuses)
    return findings.table()


class _Messages:
    """The facts of a bucket, sorted by index. A pair is a message, by its place among those of the bucket, with a
    consumer: `message * consumers + consumer`."""

    def __init__(self, facts: pa.Table, consumers: Consumers) -> None:
        column = {name: facts[name].to_numpy().astype(np.int64) for name in FACTS.names[1:]}
        order = np.lexsort((column["message"], column["index"]))
        self.kind, message, self.consumer, self.tries, self.index = (column[name][order] for name in FACTS.names[1:])
        self.ids, place = np.unique(message, return_inverse=True)
        self.place = place.reshape(-1).astype(np.int64)
        self.consumers = consumers
        self.width = max(1, len(consumers.names))
        self.pair = np.where(self.consumer >= 0, self.place * self.width + self.consumer, -1)
        self.asked, self.acked, self.refused = (self._first_of_message(kind) for kind in (ASKED, ACKED, REFUSED))

    def _first_of_message(self, kind: int) -> Int64:
        """The first index of that kind, MAX for none."""
        first = np.full(len(self.ids), MAX, dtype=np.int64)
        at = np.flatnonzero(self.kind == kind)
        np.minimum.at(first, self.place[at], self.index[at])
        return first

    def _of_kinds(self, *kinds: int) -> Int64:
        """Positions of facts about a pair."""
        return np.flatnonzero(np.isin(self.kind, kinds) & (self.pair >= 0))

    def _first_of_pair(self, *kinds: int) -> Int64:
        first = np.full(len(self.ids) * self.width, MAX, dtype=np.int64)
        at = self._of_kinds(*kinds)
        np.minimum.at(first, self.pair[at], self.index[at])
        return first

    # Messages that did not come.

    def report_missing(self, findings: Findings, excuses: Excuses) -> None:
        """Reports messages that were acknowledged, and that a consumer had to consume but did not, and that are not
        dead letters. Only consumers that were read to the end are looked at."""
        consumers = self.consumers
        is_divided = consumers.model is Model.CLUSTERING
        ends = zip(consumers.settled, consumers.read, strict=True)
        complete = np.array([settled and (read or not is_divided) for settled, read in ends], dtype=np.bool_)
        failed = self._first_of_pair(FAILED)
        done = np.minimum(self._first_of_pair(CONSUMED), self._first_of_pair(DEAD))
        if not is_divided:
            done = np.minimum(done, failed)  # Nothing comes again.
        message, consumer = np.divmod(np.arange(len(done)), self.width)
        if not len(complete):
            return
        missing = (self.acked[message] != MAX) & (done == MAX) & complete[consumer]
        for name, pairs in (
            ("unconsumed", np.flatnonzero(missing & (failed == MAX))),
            ("lost-retry", np.flatnonzero(missing & (failed != MAX))),
        ):
            of = message[pairs]
            begun = np.minimum(self.asked[of], self.acked[of])
            # A message that was sent back may have been written at any time since then.
            ended = self.acked[of] if name == "unconsumed" else np.full(len(of), MAX)
            for excuse, which in excuses.split(name, begun, ended):
                self._report_pairs(findings, name, pairs[which], failed, excuse)

    def _report_pairs(self, findings: Findings, name: str, pairs: Int64, failed: Int64, excuse: int | None) -> None:
        message, consumer = np.divmod(pairs, self.width)
        acked, last = self.acked[message], np.where(failed[pairs] == MAX, self.acked[message], failed[pairs])
        order = witness_order(acked, last, ties=(self.ids[message], consumer))[:EXAMPLES]
        examples = []
        for i in order.tolist():
            number, who = int(self.ids[message[i]]), self.consumers.names[consumer[i]]
            how = (
                f"{who} consumed all that its queues held, and was never given it"
                if name == "unconsumed"
                else f"{who} failed to consume it (operation {last[i]}), was never given it again with success, and it "
                "is no dead letter"
            )
            examples.append(
                Example(
                    key=None,
                    operations=tuple(sorted({int(acked[i]), int(last[i])})),
                    tie=(number, int(consumer[i])),
                    because=f"message {number} was acknowledged (operation {acked[i]}); {how}",
                    details={"message": number, "consumer": who},
                )
            )
        findings.add(name, len(pairs), examples, excuse)

    # Messages that should not have come.

    def report_unsent(self, findings: Findings) -> None:
        given = np.full(len(self.ids), MAX, dtype=np.int64)
        at = self._of_kinds(GIVEN, CAME_BACK)
        np.minimum.at(given, self.place[at], self.index[at])
        unknown = (given != MAX) & (self.asked == MAX) & (self.acked == MAX) & (self.refused == MAX)
        self._report_unsent(findings, "unexpected-consumption", np.flatnonzero(unknown), given, "nobody sent it")
        refused = (given != MAX) & (self.refused != MAX) & (self.acked == MAX)
        words = "its send had certainly failed"
        self._report_unsent(findings, "aborted-consumption", np.flatnonzero(refused), given, words)

    def _report_unsent(self, findings: Findings, name: str, messages: Int64, consumed_by: Int64, words: str) -> None:
        refused = np.where(self.refused[messages] == MAX, consumed_by[messages], self.refused[messages])
        order = witness_order(consumed_by[messages], refused, ties=(self.ids[messages],))[:EXAMPLES]
        findings.add(
            name,
            len(messages),
            [
                Example(
                    key=None,
                    operations=tuple(sorted({int(consumed_by[of]), int(refused[i])})),
                    tie=(int(self.ids[of]),),
                    because=f"message {self.ids[of]} was consumed (operation {consumed_by[of]}), and {words}",
                    details={"message": int(self.ids[of])},
                )
                for i, of in ((i, int(messages[i])) for i in order.tolist())
            ],
        )

    # How often messages came.

    def report_counts(self, findings: Findings, limit: int, excuses: Excuses) -> None:
        """Reports messages that came again without having failed before with one try fewer. (If the log was cut, a
        message that is sent back by its offset may be another one, at any later time.)"""
        at = self._of_kinds(GIVEN, CAME_BACK)
        tries, index = self.tries[at], self.index[at]
        failed_before = self._failed_before(self.pair[at], tries - 1, index)
        came_back = self.kind[at] == CAME_BACK
        wrong = ((tries > 0) & ~failed_before) | (came_back & (tries == 0)) | (tries > limit)
        self._report_counts(findings, at[wrong], limit, excuses)

    def report_uncounted(self, findings: Findings, excuses: Excuses) -> None:
        """Reports messages from the retry queue that were not popped before or have no count. The count itself is not
        checked, because answers may be lost; nor is the limit, which may not be known to each master."""
        at = self._of_kinds(CAME_BACK)
        self._report_counts(findings, at[self.tries[at] == 0], MAX, excuses)

    def _report_counts(self, findings: Findings, every: Int64, limit: int, excuses: Excuses) -> None:
        for excuse, which in excuses.split("wrong-retry-count", np.zeros_like(every), self.index[every]):
            found = every[which]
            order = np.lexsort((self.consumer[found], self.ids[self.place[found]], self.index[found]))[:EXAMPLES]
            examples = [self._miscounted(int(found[i]), limit) for i in order.tolist()]
            findings.add("wrong-retry-count", len(found), examples, excuse)

    def _failed_before(self, pair: Int64, tries: Int64, index: Int64) -> Bool:
        """Whether the pair failed with this number of tries before that operation."""
        failed = self._of_kinds(FAILED)
        width = int(max(self.tries[failed].max(initial=0), tries.max(initial=0))) + 2
        known, first = np.unique(self.pair[failed] * width + self.tries[failed] + 1, return_index=True)
        wanted = pair * width + tries + 1
        at = np.searchsorted(known, wanted)
        is_known = at < len(known)
        is_known[is_known] = known[at[is_known]] == wanted[is_known]
        before = np.zeros(len(pair), dtype=np.bool_)
        # Facts are sorted by index: the first of a number is the earliest.
        before[is_known] = self.index[failed][first[at[is_known]]] < index[is_known]
        return before

    def _miscounted(self, fact: int, limit: int) -> Example:
        number, tries = int(self.ids[self.place[fact]]), int(self.tries[fact])
        who = self.consumers.names[self.consumer[fact]]
        if tries > limit:
            why = f"after {limit} more tries than the first it is a dead letter"
        elif tries == 0:
            why = "it came from the retry queue, so it had failed before"
        else:
            why = f"{who} had not failed to consume it with {tries - 1}"
        return Example(
            key=None,
            operations=(int(self.index[fact]),),
            tie=(number, int(self.consumer[fact])),
            because=f"message {number} came to {who} with {tries} tries (operation {self.index[fact]}), and {why}",
            details={"message": number, "consumer": who, "tries": tries},
        )

    def report_early_dead_letters(self, findings: Findings, limit: int, excuses: Excuses) -> None:
        dead = self._first_of_pair(DEAD)
        exhausted = np.zeros(len(dead), dtype=np.bool_)
        failed = self._of_kinds(FAILED)
        exhausted[self.pair[failed][self.tries[failed] >= limit]] = True
        every = np.flatnonzero((dead != MAX) & ~exhausted)
        for excuse, which in excuses.split("early-dead-letter", np.zeros_like(every), dead[every]):
            pairs = every[which]
            message, consumer = np.divmod(pairs, self.width)
            order = witness_order(dead[pairs], ties=(self.ids[message], consumer))[:EXAMPLES]
            examples = [self._died_early(int(pairs[i]), int(dead[pairs[i]]), limit) for i in order.tolist()]
            findings.add("early-dead-letter", len(pairs), examples, excuse)

    def _died_early(self, pair: int, dead_letter_read: int, limit: int) -> Example:
        message, consumer = divmod(pair, self.width)
        number, who = int(self.ids[message]), self.consumers.names[consumer]
        return Example(
            key=None,
            operations=(dead_letter_read,),
            tie=(number, consumer),
            because=(
                f"message {number} is a dead letter of {who} (operation {dead_letter_read}), which never failed to "
                f"consume it with {limit} tries"
            ),
            details={"message": number, "consumer": who},
        )
