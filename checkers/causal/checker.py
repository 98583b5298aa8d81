"""The causal checker: no operation sees an effect without its causes.

Operations on registers of an object, which is the key; objects are independent of each other.
With a value {value, position, link}, the object is one register:
  write {value}                          ok: it happened
  read, read-init {} -> {value}          ok: what the register held; null or the initial value (option `initial`, 0
                                         unless given) if nothing was written
or with a value {txn}, micro-operations on registers by their names:
  txn [r x nil, w y 1]                   ok: all at once
`position` is where the database says that the operation is in the order of its object, `link` the position that the
client had seen last, or `init`.

An operation is a cause of another one if the same process did it before, if the other read what it wrote, if the other
was linked to it, or if it is a cause of a cause of the other. What breaks the promise (the bad patterns of causal
consistency, Bouajjani, Enea, Guerraoui, Hamza, POPL 2017; for transactions Biswas, Enea, OOPSLA 2019):
  cyclic-causality  operations that are causes of each other, counted by objects
  initial-read      a read shows a register as unwritten, although one of its causes, or the reader itself, wrote it
  overwritten-read  a value was read although one of the causes, a consequence of the write of that value, wrote another
                    one; or its writer did so afterwards, or the reader before it read
  unexpected        a value was read before a write of it was invoked, or without one
  aborted-read      a value was read, although its write had certainly failed
  broken-link       the link is no position of an operation on the object, or one that was already behind the last
                    operation that had ended before this one began

After an operation of unknown outcome a process goes on under another number, as another process. Reads of values that
may have been written more than once are not judged, and leave the verdict UNKNOWN, as do objects with too many
operations and processes (the cost is their product), and histories in which no read showed a write.

It does not establish that replicas converge, nor any order of concurrent writes, nor that reads are current.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.api.findings import FINDINGS, Example, Findings, gathered_findings, judge
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import EXAMPLES, CheckerResult
from checkers.buckets import bucket_count
from checkers.causal.accesses import Accesses, dense
from checkers.causal.causality import (
    CELLS,
    FINE,
    INITIAL,
    NOT_JUDGED,
    Causes,
    Objects,
    Operations,
    Reads,
    causal_order,
    causes_of,
    culprits,
    cycle_before,
)
from checkers.causal.spans import TXN, spans_schema, transactions
from checkers.causal.uses import OF_READS_WITHOUT_WRITES, USES, unexplained_reads, uses_of_registers
from checkers.history_batches import history_rows
from checkers.kernels.columns import INFO, OK, Bool, Int64, codes, member, run_starts, witness_order
from checkers.kernels.hashing import bucket_of, mixed_column
from checkers.prefix import Finals, by_their_names
from checkers.transactions.history.micro_operations import MICRO_OPERATION
from harness.record.meaning import Meaning

BESIDE = ("position", "link")
CAUSAL_OPERATIONS = pa.struct([pa.field("value", pa.int64()), *(pa.field(name, pa.string()) for name in BESIDE), TXN])
"""The value of this workload's operations."""

INIT = "init"
SPANS = spans_schema(BESIDE)
BUCKETED = pa.schema([pa.field("bucket", pa.int32()), *SPANS])

READS, AMBIGUOUS, TOO_MANY = "reads", "ambiguous", "too many"
"""Tallies of reads: those that show a write, those that may show one of several, and those that are not judged."""


MEANINGS: Mapping[str, Meaning] = {
    "cyclic-causality": Meaning(
        says="Operations are causes of each other: something was read before what it depends on had happened.",
        usually="Values are shown before they are committed, or replicas apply writes in orders that contradict "
        "each other.",
    ),
    "initial-read": Meaning(
        says="A register was read as never written, although one of the causes of the read wrote it.",
        usually="A session moved to a replica that has not yet received what the session had seen or done.",
    ),
    "overwritten-read": Meaning(
        says="A value was read that, for all the reader had seen, was overwritten before.",
        usually="A session moved to a replica or a deposed leader that lags behind.",
    ),
    **OF_READS_WITHOUT_WRITES,
    "broken-link": Meaning(
        says="The position that an operation was linked to does not exist, or was not the last one of its session.",
        usually="The database gave out a position and then lost the operation, or ordered operations anew.",
    ),
}


@dataclass(frozen=True, kw_only=True)
class CausalChecker:
    """Judges operations on registers by their causes."""

    initial: int = 0
    name: str = "causal"
    meanings: ClassVar[Mapping[str, Meaning]] = MEANINGS
    final_on_a_prefix: ClassVar[Finals] = by_their_names("unexpected")

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        buckets = bucket_count(history_rows(request.history))
        spans = transactions(request, engine, lists=causal_lists, beside=BESIDE)
        by_object = engine.mapped(spans, partial(bucketed, buckets=buckets), BUCKETED)
        uses = engine.mapped(spans, partial(uses_of_registers, buckets=buckets, initial=self.initial), USES)
        findings = engine.union(
            engine.grouped(by_object, ("bucket",), partial(causal_findings, initial=self.initial), FINDINGS),
            engine.grouped(uses, ("bucket",), unexplained_reads, FINDINGS),
        )
        found = gathered_findings(engine, findings)
        ambiguous, too_many = found.tally(AMBIGUOUS).count, found.tally(TOO_MANY).count
        undecided = []
        if ambiguous:
            undecided.append(f"{ambiguous} reads show a value that may have been written more than once")
        if too_many:
            undecided.append(f"{too_many} reads are of objects with too many operations and processes")
        return judge(
            found.anomalies,
            legal=request.legal,
            undecided=undecided,
            vacuous=[] if found.tally(READS).count else ["no read shows a write"],
            statistics=found.counts(READS),
        )


def causal_lists(batch: pa.Table) -> pa.Array:
    """The micro-operations of each row; an operation without any has one, on a register without a name."""
    lists = member(batch["value"], TXN.name)
    lists = lists.cast(TXN.type)
    alone = np.flatnonzero(pc.is_null(lists).to_numpy(zero_copy_only=False))
    f = np.where(codes(batch["f"], ("write",)) == 0, "w", "r")[alone]
    value = member(batch["value"], "value").take(pa.array(alone))
    names = MICRO_OPERATION.field("key").type, MICRO_OPERATION.field("values").type
    parts = pa.StructArray.from_arrays(
        [
            pa.array(f, pa.string()),
            pa.nulls(len(alone), names[0]),
            value.cast(pa.int64()),
            pa.nulls(len(alone), names[1]),
        ],
        fields=list(MICRO_OPERATION),
    )
    single = pa.ListArray.from_arrays(pa.array(np.arange(len(alone) + 1), pa.int32()), parts).cast(TXN.type)
    place = np.arange(len(lists))
    place[alone] = len(lists) + np.arange(len(alone))
    return pa.concat_arrays([lists, single]).take(pa.array(place))


def bucketed(spans: pa.Table, *, buckets: int) -> pa.Table:
    """Kernel: in buckets of objects."""
    bucket = pa.array(bucket_of(mixed_column(spans["key"]), buckets))
    return pa.Table.from_arrays([bucket, *(column.combine_chunks() for column in spans.columns)], schema=BUCKETED)


def causal_findings(table: pa.Table, *, initial: int) -> pa.Table:
    """Kernel over all operations on a bucket of objects."""
    kind = table["type"].to_numpy()
    key = pc.dictionary_encode(table["key"].combine_chunks()).indices.fill_null(-1).to_numpy(zero_copy_only=False)
    process, start = table["process"].to_numpy(), table["start"].to_numpy()
    possible = np.flatnonzero((kind == OK) | (kind == INFO))
    nodes = possible[np.lexsort((start[possible], process[possible], key[possible]))]
    history = _History.of(table.take(pa.array(nodes)))
    findings = Findings()
    history.judge(findings, initial)
    history.follow_links(findings)
    return findings.table()


@dataclass(frozen=True, kw_only=True)
class _History:
    """Operations that happened, or may have: sorted by object, process and start."""

    table: pa.Table
    thing: Int64
    """The object of each."""
    session: Int64
    place: Int64
    start: Int64
    end: Int64
    is_ok: Bool

    @classmethod
    def of(cls, table: pa.Table) -> _History:
        key = pc.dictionary_encode(table["key"].combine_chunks()).indices.fill_null(-1)
        names = key.to_numpy(zero_copy_only=False).astype(np.int64)
        starts = run_starts(names, table["process"].to_numpy())
        rows = np.arange(len(names))
        return cls(
            table=table,
            thing=np.cumsum(run_starts(names)) - 1,
            session=np.cumsum(starts) - 1,
            place=rows - np.maximum.accumulate(np.where(starts, rows, 0)),
            start=table["start"].to_numpy(),
            end=table["end"].to_numpy(),
            is_ok=table["type"].to_numpy() == OK,
        )

    def judge(self, findings: Findings, initial: int) -> None:
        """Adds findings about reads and about cycles."""
        if not len(self.thing):
            return
        accesses = Accesses.of(self.table, self.thing, self.session, self.is_ok, initial)
        reads, shows = accesses.reads, accesses.reads.writer != INITIAL
        graph = self._causes(reads, shows)
        order = causal_order(graph)
        order = order[np.argsort(self.thing[order], kind="stable")]
        culprit = culprits(
            order,
            graph,
            self._objects(reads),
            Operations(self.session, self.place, self.start),
            reads,
            accesses.writes,
            CELLS,
        )
        culprit = np.where(accesses.intermediate & (culprit == FINE), reads.writer, culprit)
        ordered = np.zeros(len(self.thing), dtype=np.int64)
        ordered[order] = 1
        findings.tally(READS, int(shows.sum()))
        findings.tally(AMBIGUOUS, accesses.ambiguous)
        findings.tally(TOO_MANY, int(((culprit == NOT_JUDGED) & (ordered[reads.node] == 1)).sum()))
        self._report_cycles(findings, graph, ordered)
        wrong, own = np.flatnonzero(culprit >= 0), accesses.contrary
        label = pa.concat_arrays([accesses.label.take(pa.array(wrong)), accesses.contrary_label])
        node, writer = (
            np.concatenate((ours[wrong], theirs))
            for ours, theirs in ((reads.node, own.node), (reads.writer, own.writer))
        )
        by = np.concatenate((culprit[wrong], own.node))
        for name, which in (("initial-read", writer == INITIAL), ("overwritten-read", writer != INITIAL)):
            at = np.flatnonzero(which)
            self._report_reads(findings, name, label.take(pa.array(at)), node[at], writer[at], by[at])

    def _causes(self, reads: Reads, shows: Bool) -> Causes:
        """The direct causes of operations: the one before it in its session, what it read, and what it is linked to."""
        linked = self.linked()
        follows = np.flatnonzero(self.place > 0)
        cause = np.concatenate((follows - 1, reads.writer[shows], linked[linked >= 0]))
        effect = np.concatenate((follows, reads.node[shows], np.flatnonzero(linked >= 0)))
        return causes_of(cause, effect, len(self.thing))

    def _objects(self, reads: Reads) -> Objects:
        things = np.arange(self.thing[-1] + 2)
        return Objects(
            np.searchsorted(self.thing, things),
            np.searchsorted(self.thing[np.flatnonzero(run_starts(self.session))], things),
            np.searchsorted(self.thing[reads.node], things),
        )

    def linked(self) -> Int64:
        """For each operation the first one with the position that it is linked to, if that one ended before; else
        -1."""
        positions, links, place_of = self._places()
        found = np.full(len(self.thing), -1, dtype=np.int64)
        if len(positions):
            first = positions[run_starts(place_of[positions])]
            at = np.minimum(np.searchsorted(place_of[first], place_of[links + len(self.thing)]), len(first) - 1)
            over = place_of[first[at]] == place_of[links + len(self.thing)]
            over &= self.end[first[at]] < self.end[links]
            found[links[over]] = first[at[over]]
        return found

    def follow_links(self, findings: Findings) -> None:
        """Adds findings about links to something that is not a position, or to one that was no longer the last."""
        positions, links, place_of = self._places()
        if not len(links):
            return
        far = int(max(self.start.max(), self.end[self.is_ok].max(initial=0))) + 2
        began = np.full(len(links), -1, dtype=np.int64)
        ended = np.full(len(links), -1, dtype=np.int64)
        if len(positions):
            by_end = positions[np.argsort(self.thing[positions] * far + self.end[positions])]
            latest = np.maximum.accumulate(self.thing[by_end] * far + self.start[by_end])
            before = np.searchsorted(
                self.thing[by_end] * far + self.end[by_end], self.thing[links] * far + self.start[links]
            )
            began = np.where(before > 0, latest[before - 1], -1)
            began = np.where(began // far == self.thing[links], began % far, -1)
            named = place_of[links + len(self.thing)]
            last = np.searchsorted(place_of[positions] * far + self.end[positions], named * far + self.end[links]) - 1
            same = (last >= 0) & (place_of[positions[last]] == named)
            ended = np.where(same, self.end[positions[last]], -1)
        broken = links[(ended < 0) | (ended < began)]
        broken = broken[np.argsort(self.start[broken])]
        examples = []
        for node in broken[:EXAMPLES].tolist():
            key, link = (self.table[name][node].as_py() for name in ("key", "link"))
            examples.append(
                Example(
                    key=key,
                    operations=(int(self.start[node]), int(self.end[node])),
                    because=(
                        f"the operation completed by {self.end[node]} is linked to position {link}, "
                        f"at which {key or 'the object'} was not, or no longer, when it began"
                    ),
                    details={"link": link},
                )
            )
        findings.add("broken-link", len(broken), examples)

    def _places(self) -> tuple[Int64, Int64, Int64]:
        """Operations that have a position, by place and end; those that have a link; and places, dense: those of the
        positions of all operations, and then of all links."""
        position, link = (self.table[name].combine_chunks() for name in BESIDE)
        names = pc.dictionary_encode(pa.concat_arrays([position, link])).indices.fill_null(-1)
        place_of = dense(np.tile(self.thing, 2), names.to_numpy(zero_copy_only=False).astype(np.int64))
        has_position = np.flatnonzero(self.is_ok & pc.is_valid(position).to_numpy(zero_copy_only=False))
        is_linked = pc.fill_null(pc.not_equal(link, INIT), False).to_numpy(zero_copy_only=False)
        positions = has_position[np.lexsort((self.end[has_position], place_of[has_position]))]
        return positions, np.flatnonzero(self.is_ok & is_linked), place_of

    def _report_cycles(self, findings: Findings, graph: Causes, ordered: Int64) -> None:
        left = np.flatnonzero(ordered == 0)
        left = left[run_starts(self.thing[left])] if len(left) else left
        examples = []
        for node in left[np.argsort(self.start[left])].tolist()[:EXAMPLES]:
            cycle = cycle_before(node, ordered, graph)
            indices = [int(self.start[one]) for one in cycle]
            least = indices.index(min(indices))
            around = [*indices[least:], *indices[:least], indices[least]]
            examples.append(
                Example(
                    key=self.table["key"][node].as_py(),
                    operations=tuple(sorted(indices)),
                    because=f"of these operations each is a cause of the next one: {', '.join(map(str, around))}",
                )
            )
        findings.add("cyclic-causality", len(left), sorted(examples, key=lambda example: example.operations))

    def _report_reads(
        self, findings: Findings, name: str, label: pa.Array, node: Int64, writer: Int64, culprit: Int64
    ) -> None:
        shown = np.where(writer == INITIAL, self.start[node], self.start[writer])
        order = witness_order(shown, self.start[node], self.end[node], self.start[culprit]) if len(node) else node
        examples = []
        for i in order[:EXAMPLES].tolist():
            read, overwriting = int(self.end[node[i]]), int(self.start[culprit[i]])
            what, since = ("nothing", "") if writer[i] == INITIAL else (f"what operation {shown[i]} wrote", " since")
            examples.append(
                Example(
                    key=label[i].as_py(),
                    operations=tuple(sorted({int(shown[i]), int(self.start[node[i]]), read, overwriting})),
                    because=(
                        f"{label[i].as_py() or 'the register'} was read as {what} (completed by {read}), although "
                        f"operation {overwriting}, a cause of that read, had written it{since}"
                    ),
                )
            )
        findings.add(name, len(node), examples)
