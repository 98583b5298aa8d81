"""The fate of each message: lost, unseen, duplicated, read although it failed, read although it is gone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from checkers.api.excuses import NO_EXCUSES, Excuses
from checkers.api.findings import FINDINGS, Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import FAIL, NONE, OK, Bool, Int64, run_starts, witness_order
from checkers.kernels.hashing import bucket_of, mixed
from checkers.log.final_reads import FinalReads
from checkers.log.rows import FINAL_POLL, is_ok_poll, operation_codes, reads, sends, with_parts

FACTS = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("message", pa.int64()),
        pa.field("kind", pa.int8()),
        pa.field("queue", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("index", pa.int64()),
    ]
)
"""One row for each thing known of a message; `index` is the operation that shows it."""

ATTEMPTED, FAILED, ACKED, READ, FINAL = range(5)
"""Kinds of facts. FINAL: read by a final poll from a replica that was read to its end."""

UNREAD = "unread"
"""A count that travels with the findings: acknowledged messages that no poll showed."""

LOSSES = ("lost-write", "unseen", "dirty-read")
"""The anomalies of a message that is lost."""

UNKNOWN_OFFSET = int(np.iinfo(np.int64).max)
"""Stands for an ack's offset that the client did not learn: behind everything that was read."""


def message_facts(batch: pa.Table, *, final: FinalReads, buckets: int, all_attempts: bool = False) -> pa.Table:
    """Kernel: the facts of one batch. Unless `all_attempts` are wanted, one is left out where the batch also shows how
    it ended."""
    batch = with_parts(batch)
    f, types = operation_codes(batch)
    index = batch["index"].to_numpy()
    queue = final.queue_numbers(batch["key"])
    node = final.node_numbers(batch["node"])

    sent = sends(batch, f, types)
    ended = (sent.type == OK) | (sent.type == FAIL)
    kept = sent.message != NONE
    if not all_attempts:
        kept &= ended | ~np.isin(sent.message, sent.message[ended])
    send_kind = np.where(sent.type == OK, ACKED, np.where(sent.type == FAIL, FAILED, ATTEMPTED))[kept]
    send_row = sent.row[kept]

    read = reads(batch, is_ok_poll(f, types))
    in_final = (f[read.row] == FINAL_POLL) & final.caught_up[queue[read.row], node[read.row]]
    message = np.concatenate((sent.message[kept], read.message))
    row = np.concatenate((send_row, read.row))
    return pa.Table.from_arrays(
        [
            pa.array(bucket_of(mixed(message), buckets)),
            pa.array(message),
            pa.array(np.concatenate((send_kind, np.where(in_final, FINAL, READ))).astype(np.int8)),
            pa.array(queue[row].astype(np.int32)),
            pa.array(np.concatenate((sent.offset[kept], read.offset))),
            pa.array(index[row].astype(np.int64)),
        ],
        schema=FACTS,
    )


def message_findings(facts: pa.Table, *, final: FinalReads, excuses: Excuses = NO_EXCUSES) -> pa.Table:
    """Kernel over all facts of a bucket of messages."""
    if facts.num_rows == 0:
        return FINDINGS.empty_table()
    findings = Findings()
    fates = Fates(facts, final)
    fates.report(findings, excuses)
    findings.tally(UNREAD, fates.unread)
    return findings.table()


class Fates:
    """Facts sorted by message, and for each message (of which `n` are known) the first fact of each kind."""

    def __init__(self, facts: pa.Table, final: FinalReads) -> None:
        message = facts["message"].to_numpy()
        kind = facts["kind"].to_numpy()
        index = facts["index"].to_numpy()
        order = np.lexsort((index, kind, message))
        self.final = final
        self.message, self.kind, self.index = message[order], kind[order], index[order]
        self.queue = facts["queue"].to_numpy()[order]
        self.offset = facts["offset"].to_numpy()[order]
        starts = run_starts(self.message)
        self.start = np.flatnonzero(starts)
        self.of_message = np.cumsum(starts) - 1
        self.first = {k: self._first(k) for k in (ATTEMPTED, FAILED, ACKED, READ, FINAL)}

        self.acked = self.first[ACKED] >= 0
        self.failed = self.first[FAILED] >= 0
        self.read = self.first[READ] >= 0
        self.absent = (self.acked | self.read) & (self.first[FINAL] < 0)
        where = np.where(self.acked, self.first[ACKED], self.first[READ])
        self.known_by = where
        self.known_queue = self.queue[where]
        known_offset = self.offset[where]
        self.known_offset = np.where(known_offset == NONE, UNKNOWN_OFFSET, known_offset)
        self.passed = final.some[self.known_queue] & (self.known_offset <= final.highest[self.known_queue])
        gone = self.absent & (self.passed | final.every[self.known_queue])
        self.gone = gone
        """Whether each message is certainly absent from the final log."""
        self.lost = gone & ~self.failed & (self.passed | (self.acked & self.read))
        self.unseen = gone & self.acked & ~self.read & ~self.passed

    @property
    def unread(self) -> int:
        """How many messages were acknowledged and never read."""
        return int((self.acked & ~self.read & (self.first[FINAL] < 0)).sum())

    def _first(self, kind: int) -> Int64:
        """Position of each message's first fact of this kind, -1 if there is none."""
        firsts = np.flatnonzero(run_starts(self.message, self.kind) & (self.kind == kind))
        position = np.full(len(self.start), -1, dtype=np.int64)
        position[self.of_message[firsts]] = firsts
        return position

    def report(self, findings: Findings, excuses: Excuses) -> None:
        seen_at = np.where(self.read, self.first[READ], self.first[FINAL])
        seen = seen_at >= 0
        tried = (self.first[ATTEMPTED] >= 0) | self.failed | self.acked
        losses = (self.lost, self._lost), (self.unseen, self._unseen), (self.gone & self.read, self._dirty)
        shown_by = self.known_by, self.known_by, self.first[READ]
        begun = np.where(self.first[ATTEMPTED] >= 0, self.first[ATTEMPTED], self.known_by)
        for name, (which, sentence), witness in zip(LOSSES, losses, shown_by, strict=True):
            lost = np.flatnonzero(which)
            spans = self.index[begun[lost]], self.index[self.known_by[lost]]
            for excuse, some in excuses.split(name, *spans):
                self._add(findings, name, lost[some], sentence, witness, excuse=excuse)
        aborted, unexpected = np.flatnonzero(self.failed & seen), np.flatnonzero(~tried & seen)
        self._add(findings, "aborted-read", aborted, self._aborted, self.first[FAILED], seen_at)
        self._add(findings, "unexpected-read", unexpected, self._unexpected, seen_at)
        self._add_duplicates(findings)

    def _add(
        self,
        findings: Findings,
        name: str,
        affected: Int64,
        sentence: Callable[[int], str],
        *witnesses: Int64,
        excuse: int | None = None,
    ) -> None:
        """Adds an anomaly for each message in `affected`. `witnesses` are positions of facts; the sentence is about the
        last one."""
        if len(affected) == 0:
            return
        operations = (self.index[witness[affected]] for witness in witnesses)
        chosen = affected[witness_order(*operations, ties=(self.message[self.start[affected]],))[:EXAMPLES]]
        examples = []
        for number in chosen.tolist():
            shown = int(witnesses[-1][number])
            examples.append(
                Example(
                    key=self._queue(shown),
                    operations=tuple(sorted({int(self.index[witness[number]]) for witness in witnesses})),
                    tie=(int(self.message[shown]),),
                    because=sentence(shown),
                    details={"message": int(self.message[shown]), "offset": self._offset(shown)},
                )
            )
        findings.add(name, len(affected), examples, excuse)

    def _lost(self, fact: int) -> str:
        reach = int(self.final.highest[self.queue[fact]])
        end = f"goes on to offset {reach}" if reach >= 0 else "is empty"
        return f"{self._how_known(fact)}, but the final log of {self._shown_queue(fact)}, which {end}, does not hold it"

    def _unseen(self, fact: int) -> str:
        reach = int(self.final.highest[self.queue[fact]])
        end = f"end at offset {reach}" if reach >= 0 else "find nothing"
        return (
            f"{self._how_known(fact)}, but nobody ever read it, and the final reads of {self._shown_queue(fact)} {end}"
        )

    def _dirty(self, fact: int) -> str:
        ack = int(self.first[ACKED][self.of_message[fact]])
        if ack >= 0:
            fate = f"it was acknowledged (operation {self.index[ack]}), shown, and lost"
        else:
            fate = "it was never acknowledged, and was shown before it was safe"
        return f"{self._how_known(fact)}, but the final log of {self._shown_queue(fact)} does not hold it: {fate}"

    def _aborted(self, fact: int) -> str:
        return f"{self._how_known(fact)}, although its send had certainly failed"

    def _unexpected(self, fact: int) -> str:
        return f"{self._how_known(fact)}, although nobody ever tried to send it"

    def _how_known(self, fact: int) -> str:
        done = "acked" if self.kind[fact] == ACKED else "read"
        return f"message {self.message[fact]} was {done} at {self._place(fact)} (operation {self.index[fact]})"

    def _add_duplicates(self, findings: Findings) -> None:
        located = np.flatnonzero((self.kind >= ACKED) & (self.offset != NONE))
        twice = self.of_message[located][self._elsewhere(located)]
        if len(twice) == 0:
            return
        rows = located[np.isin(self.of_message[located], twice)]
        rows = rows[np.lexsort((self.index[rows], self.of_message[rows]))]
        earliest = rows[run_starts(self.of_message[rows])]
        other = rows[self._elsewhere(rows)]
        other = other[run_starts(self.of_message[other])]
        messages = self.message[earliest]
        chosen = witness_order(self.index[earliest], self.index[other], ties=(messages,))[:EXAMPLES]
        examples = [self._duplicate(int(earliest[i]), int(other[i])) for i in chosen]
        findings.add("duplicate", len(earliest), examples)

    def _elsewhere(self, rows: Int64) -> Bool:
        """Which of these facts, sorted by message, name another place than the first one of their message."""
        starts = run_starts(self.of_message[rows])
        head = rows[starts][np.cumsum(starts) - 1]
        elsewhere: Bool = (self.queue[rows] != self.queue[head]) | (self.offset[rows] != self.offset[head])
        return elsewhere

    def _duplicate(self, one: int, other: int) -> Example:
        places = [self._place(one), self._place(other)]
        return Example(
            key=self._queue(one),
            operations=tuple(sorted({int(self.index[one]), int(self.index[other])})),
            tie=(int(self.message[one]),),
            because=(
                f"message {self.message[one]} is in two places: at {places[0]} (operation {self.index[one]}) "
                f"and at {places[1]} (operation {self.index[other]})"
            ),
            details={"message": int(self.message[one]), "places": places},
        )

    def _queue(self, fact: int) -> str:
        return self.final.queues[int(self.queue[fact])]

    def _shown_queue(self, fact: int) -> str:
        return self._queue(fact) or "the queue"

    def _offset(self, fact: int) -> int | None:
        return None if self.offset[fact] == NONE else int(self.offset[fact])

    def _place(self, fact: int) -> str:
        offset = self._offset(fact)
        return (
            f"an unknown offset of {self._shown_queue(fact)}"
            if offset is None
            else f"offset {offset} of {self._shown_queue(fact)}"
        )
