"""What each place (queue and offset) holds: one message, the same for everybody; and which places are known.

Places answer a second question, too: a consumer that went from offset a to offset b passed over a message
if some known offset lies between. Such a probe looks in the block of a, in the block of b, and, if there are
blocks between them, asks the same question one level up, where the known points are numbers of blocks.
So a jump over the whole queue costs no more than eight look-ups, and no queue is ever in one group.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from checkers.findings import FINDINGS, Example, Findings
from checkers.kernels.columns import NONE, OK, Bool, Int64, run_starts, witness_order
from checkers.kernels.hashing import bucket_of, mixed
from checkers.log.final_reads import FinalReads
from checkers.log.rows import FINAL_POLL, is_ok_poll, operation_codes, reads, sends, with_parts
from checkers.verdict import EXAMPLES

BLOCK_BITS = 16
LEVELS = 4
"""64 bits of offset in steps of BLOCK_BITS."""

JUMPS = ("nonmonotonic-poll", "nonmonotonic-send", "internal-nonmonotonic", "poll-skip", "internal-skip")
"""Steps that do not go to the next offset. Backward ones are anomalies; forward ones are if something lay between."""
BACK_POLL, BACK_SEND, BACK_INTERNAL, SKIP_POLL, SKIP_INTERNAL = range(5)

PLACES = pa.schema(
    [
        pa.field("bucket", pa.int32()),
        pa.field("kind", pa.int8()),
        pa.field("level", pa.int8()),
        pa.field("queue", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("message", pa.int64()),
        pa.field("node", pa.int32()),
        pa.field("index", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("previous", pa.int64()),
        pa.field("jump", pa.int8()),
    ]
)
"""By kind. FACT, FINAL_FACT: operation `index` tells that `message` is at `offset` (of replica `node`).
KNOWN_BLOCK: `offset`, told by `index`, is the lowest known one of its block at `level`.
BACKWARD, PROBE: operation `index` went to offset `end` where `previous` had been at `offset`."""

FACT, FINAL_FACT, KNOWN_BLOCK, BACKWARD, PROBE = range(5)

OUTCOMES = pa.schema(
    [
        *FINDINGS,
        pa.field("bucket", pa.int32()),
        pa.field("jump", pa.int8()),
        pa.field("queue", pa.int32()),
        pa.field("previous", pa.int64()),
        pa.field("index", pa.int64()),
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("found", pa.int64()),
        pa.field("witness", pa.int64()),
    ]
)
"""A finding, or (where `name` is null) a probe that hit: operation `witness` knows the offset `found`."""


def place_rows(
    *,
    buckets: int,
    kind: int | Int64,
    queue: Int64,
    offset: Int64,
    index: Int64,
    level: int = 0,
    block: Int64 | None = None,
    message: Int64 | None = None,
    node: Int64 | None = None,
    end: Int64 | None = None,
    previous: Int64 | None = None,
    jump: Int64 | None = None,
) -> pa.Table:
    """A PLACES table; `block` (that of the offset, unless given) decides the bucket."""
    rows = len(offset)

    def column(values: int | Int64 | None, default: int, dtype: type[np.generic]) -> pa.Array:
        values = default if values is None else values
        return pa.array(np.broadcast_to(np.asarray(values).astype(dtype), rows))

    block = offset >> BLOCK_BITS * (level + 1) if block is None else block
    bucket = bucket_of(mixed(block, mixed(queue * LEVELS + level)), buckets)
    return pa.Table.from_arrays(
        [
            pa.array(bucket),
            column(kind, FACT, np.int8),
            column(level, 0, np.int8),
            column(queue, 0, np.int32),
            column(offset, 0, np.int64),
            column(message, NONE, np.int64),
            column(node, -1, np.int32),
            column(index, 0, np.int64),
            column(end, NONE, np.int64),
            column(previous, NONE, np.int64),
            column(jump, -1, np.int8),
        ],
        schema=PLACES,
    )


def place_facts(batch: pa.Table, *, final: FinalReads, buckets: int) -> pa.Table:
    """Kernel: what one batch tells of places, and which blocks it knows."""
    batch = with_parts(batch)
    f, types = operation_codes(batch)
    index = batch["index"].to_numpy()
    sent = sends(batch, f, types)
    acked = (sent.type == OK) & (sent.offset != NONE) & (sent.message != NONE)
    read = reads(batch, is_ok_poll(f, types))
    row = np.concatenate((sent.row[acked], read.row))
    queue = final.queue_numbers(batch["key"])[row].astype(np.int64)
    offset = np.concatenate((sent.offset[acked], read.offset))
    facts = place_rows(
        buckets=buckets,
        kind=np.where(f[row] == FINAL_POLL, FINAL_FACT, FACT),
        queue=queue,
        offset=offset,
        message=np.concatenate((sent.message[acked], read.message)),
        node=final.node_numbers(batch["node"])[row],
        index=index[row],
    )
    return pa.concat_tables([facts, *_known_blocks(queue, offset, index[row], buckets)]).combine_chunks()


def _known_blocks(queue: Int64, offset: Int64, index: Int64, buckets: int) -> Iterator[pa.Table]:
    order = np.lexsort((index, offset, queue))
    queue, offset, index = queue[order], offset[order], index[order]
    for level in range(1, LEVELS):
        lowest = run_starts(queue, offset >> BLOCK_BITS * level)
        queue, offset, index = queue[lowest], offset[lowest], index[lowest]
        yield place_rows(buckets=buckets, kind=KNOWN_BLOCK, level=level, queue=queue, offset=offset, index=index)


def jump_rows(
    *, jump: Int64, queue: Int64, previous: Int64, index: Int64, start: Int64, end: Int64, buckets: int
) -> pa.Table:
    """Backward jumps as they are, forward ones as probes of the blocks where a known offset may be."""
    back = jump < SKIP_POLL
    tables = [
        place_rows(
            buckets=buckets,
            kind=BACKWARD,
            queue=queue[back],
            offset=start[back],
            block=index[back],
            end=end[back],
            previous=previous[back],
            index=index[back],
            jump=jump[back],
        )
    ]
    ahead = ~back
    for level in range(LEVELS):
        first, last = start >> BLOCK_BITS * level, end >> BLOCK_BITS * level
        ahead = ahead & (last - first >= 2)
        blocks = first >> BLOCK_BITS, last >> BLOCK_BITS
        for block, asked in ((blocks[0], ahead), (blocks[1], ahead & (blocks[0] != blocks[1]))):
            tables.append(
                place_rows(
                    buckets=buckets,
                    kind=PROBE,
                    level=level,
                    queue=queue[asked],
                    offset=start[asked],
                    block=block[asked],
                    end=end[asked],
                    previous=previous[asked],
                    index=index[asked],
                    jump=jump[asked],
                )
            )
    return pa.concat_tables(tables).combine_chunks()


def place_outcomes(places: pa.Table, *, final: FinalReads, buckets: int) -> pa.Table:
    """Kernel over all places, known blocks and jumps of a bucket."""
    column = {name: places[name].to_numpy() for name in PLACES.names}
    findings = Findings()
    _Conflicts(column, final).report(findings)
    _backward(column, final, findings)
    found = findings.table()
    padded = [pa.nulls(found.num_rows, OUTCOMES.field(name).type) for name in OUTCOMES.names[len(FINDINGS) :]]
    # Findings pass through the next grouping untouched; any bucket will do.
    padded[0] = pa.array(np.zeros(found.num_rows, dtype=np.int32))
    outcomes = pa.Table.from_arrays([*found.columns, *padded], schema=OUTCOMES)
    return pa.concat_tables([outcomes, _hits(column, buckets)]).combine_chunks()


class _Conflicts:
    """Facts of places that hold more than one message, sorted by place and operation."""

    def __init__(self, column: dict[str, Int64], final: FinalReads) -> None:
        facts = np.flatnonzero(column["kind"] <= FINAL_FACT)
        facts = facts[np.lexsort((column["offset"][facts], column["queue"][facts]))]
        place = _numbered(column["queue"][facts], column["offset"][facts])
        message = column["message"][facts]
        first = message[np.searchsorted(place, place)]
        rows = facts[np.isin(place, place[message != first])]
        order = np.lexsort(tuple(column[name][rows] for name in ("message", "index", "offset", "queue")))
        self.column = {name: values[rows[order]] for name, values in column.items()}
        self.final = final

    def report(self, findings: Findings) -> None:
        """Of each place the earliest fact and the earliest that contradicts it; the same of final reads alone."""
        every = np.arange(len(self.column["kind"]))
        place, head = self._heads(every)
        other = self._first(place, self._differs("message", every, head))
        self._add(findings, "inconsistent-offsets", every[np.flatnonzero(run_starts(place))], every[other])

        finals = np.flatnonzero(self.column["kind"] == FINAL_FACT)
        place, head = self._heads(finals)
        other_message, other_node = (self._differs(name, finals, head) for name in ("message", "node"))
        by_message, by_node = self._first(place, other_message), self._first(place, other_node)
        by_both = self._first(place, other_message & other_node)
        diverging = (by_message >= 0) & (by_node >= 0)
        # Without a row that differs in both, the first that differs in one and the first that differs in the
        # other contradict each other: the one agrees with the head in its replica, the other in its message.
        one = np.where(by_both >= 0, np.flatnonzero(run_starts(place)), by_message)[diverging]
        two = np.where(by_both >= 0, by_both, by_node)[diverging]
        self._add(findings, "diverging-replicas", finals[one], finals[two])

    def _heads(self, rows: Int64) -> tuple[Int64, Int64]:
        """For each row the number of its place, and the first of the rows there."""
        place = _numbered(self.column["queue"][rows], self.column["offset"][rows])
        return place, rows[np.searchsorted(place, place)]

    def _differs(self, name: str, rows: Int64, head: Int64) -> Bool:
        differs: Bool = self.column[name][rows] != self.column[name][head]
        return differs

    @staticmethod
    def _first(place: Int64, which: Bool) -> Int64:
        """For each place the first row for which `which` holds, -1 if there is none."""
        first = np.full(place[-1] + 1 if len(place) else 0, -1, dtype=np.int64)
        held = np.flatnonzero(which)[::-1]
        first[place[held]] = held
        return first

    def _add(self, findings: Findings, name: str, one: Int64, other: Int64) -> None:
        index = self.column["index"]
        chosen = witness_order(index[one], index[other], ties=(self.column["offset"][one],))[:EXAMPLES]
        findings.add(name, len(one), [self._example(int(one[i]), int(other[i])) for i in chosen])

    def _example(self, one: int, other: int) -> Example:
        column = self.column
        queue, offset = self.final.queues[column["queue"][one]], int(column["offset"][one])
        told = [self._told(one), self._told(other)]
        return Example(
            key=queue,
            operations=tuple(sorted({int(column["index"][one]), int(column["index"][other])})),
            tie=(offset,),
            because=f"offset {offset} of {queue or 'the queue'} holds {told[0]} and {told[1]}",
            details={"offset": offset, "messages": [int(column["message"][one]), int(column["message"][other])]},
        )

    def _told(self, row: int) -> str:
        node = int(self.column["node"][row])
        where = f" at {self.final.nodes[node]}" if node >= 0 else ""
        return f"message {self.column['message'][row]} (operation {self.column['index'][row]}{where})"


def _numbered(*sorted_columns: Int64) -> Int64:
    """Dense numbers for the distinct rows of sorted columns."""
    return np.cumsum(run_starts(*sorted_columns)) - 1


def _backward(column: dict[str, Int64], final: FinalReads, findings: Findings) -> None:
    rows = np.flatnonzero(column["kind"] == BACKWARD)
    for jump in (BACK_POLL, BACK_SEND, BACK_INTERNAL):
        of_jump = rows[column["jump"][rows] == jump]
        previous, index, *steps = (column[name][of_jump] for name in ("previous", "index", "offset", "end"))
        order = witness_order(previous, index, ties=tuple(steps))
        examples = []
        for row in of_jump[order[:EXAMPLES]].tolist():
            facts = {name: int(column[name][row]) for name in ("offset", "end", "previous", "index")}
            examples.append(_backward_example(jump, final.queues[column["queue"][row]], **facts))
        findings.add(JUMPS[jump], len(of_jump), examples)


def _backward_example(jump: int, queue: str, *, offset: int, end: int, previous: int, index: int) -> Example:
    if jump == BACK_SEND:
        because = (
            f"one producer's send to {queue or 'the queue'} landed at offset {end} (operation {index}), "
            f"not behind its earlier one at offset {offset} (operation {previous})"
        )
    elif jump == BACK_POLL:
        because = (
            f"a consumer of {queue or 'the queue'} that had read up to offset {offset} (operation {previous}) "
            f"was given offset {end} (operation {index}) without having asked to go back"
        )
    else:
        because = (
            f"one poll of {queue or 'the queue'} (operation {index}) returned offset {end} right behind offset {offset}"
        )
    return Example(
        key=queue,
        operations=tuple(sorted({previous, index})),
        tie=(offset, end),
        because=because,
        details={"from_offset": offset, "to_offset": end},
    )


def _hits(column: dict[str, Int64], buckets: int) -> pa.Table:
    """The probes of this bucket behind whose start, and before whose end, an offset is known."""
    probes = np.flatnonzero(column["kind"] == PROBE)
    known = np.flatnonzero(column["kind"] <= KNOWN_BLOCK)
    hits: list[tuple[Int64, Int64, Int64]] = []
    for level in np.unique(column["level"][probes]).tolist():
        for queue in np.unique(column["queue"][probes[column["level"][probes] == level]]).tolist():
            asked = probes[(column["level"][probes] == level) & (column["queue"][probes] == queue)]
            points = known[(column["level"][known] == level) & (column["queue"][known] == queue)]
            points = points[np.lexsort((column["index"][points], column["offset"][points]))]
            block = column["offset"][points] >> BLOCK_BITS * level
            after = np.searchsorted(block, column["offset"][asked] >> BLOCK_BITS * level, side="right")
            last = column["end"][asked] >> BLOCK_BITS * level
            hit = np.flatnonzero(after < len(points))
            hit = hit[block[after[hit]] < last[hit]]
            witness = points[after[hit]]
            hits.append((asked[hit], column["offset"][witness], column["index"][witness]))
    if not hits:
        return OUTCOMES.empty_table()
    row, found, witness = (np.concatenate(part) for part in zip(*hits, strict=True))
    columns = {
        "bucket": bucket_of(mixed(column["index"][row]), buckets),
        "jump": column["jump"][row],
        "queue": column["queue"][row],
        "previous": column["previous"][row],
        "index": column["index"][row],
        "start": column["offset"][row],
        "end": column["end"][row],
        "found": found,
        "witness": witness,
    }
    return pa.Table.from_arrays(
        [
            pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(len(row), field.type)
            for field in OUTCOMES
        ],
        schema=OUTCOMES,
    )


def skip_findings(outcomes: pa.Table, *, final: FinalReads) -> pa.Table:
    """Kernel over all hits of a bucket of polls: each skip once, with the lowest offset passed over."""
    passed_through = outcomes.filter(outcomes["name"].is_valid()).select(FINDINGS.names)
    hits = outcomes.filter(outcomes["name"].is_null())
    findings = Findings()
    if hits.num_rows:
        _add_skips({name: hits[name].to_numpy() for name in OUTCOMES.names[len(FINDINGS) :]}, final, findings)
    return pa.concat_tables([passed_through, findings.table()]).combine_chunks()


def _add_skips(column: dict[str, Int64], final: FinalReads, findings: Findings) -> None:
    identity = ("previous", "index", "queue", "start", "end", "jump")
    order = np.lexsort(tuple(column[name] for name in (*identity, "found", "witness")[::-1]))
    column = {name: values[order] for name, values in column.items()}
    skips = np.flatnonzero(run_starts(*(column[name] for name in identity)))
    for jump in (SKIP_POLL, SKIP_INTERNAL):
        of_jump = skips[column["jump"][skips] == jump]
        operations = (column[name][of_jump] for name in ("previous", "index", "witness"))
        steps = (column["start"][of_jump], column["end"][of_jump])
        order = witness_order(*operations, ties=steps)[:EXAMPLES]
        findings.add(JUMPS[jump], len(of_jump), [_skip(jump, column, row, final) for row in of_jump[order].tolist()])


def _skip(jump: int, column: dict[str, Int64], row: int, final: FinalReads) -> Example:
    fact = {name: int(column[name][row]) for name in ("previous", "index", "start", "end", "found", "witness")}
    queue = final.queues[column["queue"][row]]
    passed = f"passing over offset {fact['found']}, which operation {fact['witness']} knows"
    if jump == SKIP_POLL:
        because = (
            f"a consumer of {queue or 'the queue'} went from offset {fact['start']} (operation {fact['previous']}) "
            f"to offset {fact['end']} (operation {fact['index']}), {passed}"
        )
    else:
        because = (
            f"one poll of {queue or 'the queue'} (operation {fact['index']}) goes from offset {fact['start']} "
            f"to offset {fact['end']}, {passed}"
        )
    return Example(
        key=queue,
        operations=tuple(sorted({fact["previous"], fact["index"], fact["witness"]})),
        tie=(fact["start"], fact["end"]),
        because=because,
        details={"from_offset": fact["start"], "to_offset": fact["end"], "skipped_offset": fact["found"]},
    )
