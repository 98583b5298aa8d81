"""Steps of consumers and producers that do not go to the next offset: back, or over a place that holds a message.

A consumer that went from offset a to offset b passed over a message if some known offset lies between. Such a probe
looks in the block of a, in the block of b, and, if there are blocks between them, asks the same question one level up,
where the known points are numbers of blocks. So a jump over the whole queue costs no more than eight look-ups, and no
queue is ever in one group.

    poll: m1 at 0 · poll: m5 at 4 · another consumer's poll: m2 at 2

The first consumer went from 0 to 4: a probe of block 0. Offset 2 is known there: poll-skip.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from checkers.api.excuses import NO_EXCUSES, Excuses
from checkers.api.findings import FINDINGS, Example, Findings
from checkers.api.verdict import EXAMPLES
from checkers.kernels.columns import Int64, run_starts, witness_order
from checkers.kernels.hashing import bucket_of, mixed
from checkers.log.conflicts import Conflicts
from checkers.log.final_reads import FinalReads
from checkers.log.places import BACKWARD, BLOCK_BITS, KNOWN_BLOCK, LEVELS, PLACES, PROBE, Places

JUMPS = ("nonmonotonic-poll", "nonmonotonic-send", "internal-nonmonotonic", "poll-skip", "internal-skip")
"""Steps that do not go to the next offset. Backward ones are anomalies; forward ones are if something lay between."""
BACK_POLL, BACK_SEND, BACK_INTERNAL, SKIP_POLL, SKIP_INTERNAL = range(5)

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
"""A finding, or (where `name` is null) a probe that hit: operation `witness` shows the offset `found`."""


def jump_rows(
    *, jump: Int64, queue: Int64, previous: Int64, index: Int64, start: Int64, end: Int64, buckets: int
) -> pa.Table:
    """Backward jumps as they are, forward ones as probes of the blocks where a known offset may be."""
    back = jump < SKIP_POLL
    tables = [
        Places(
            kind=BACKWARD,
            queue=queue[back],
            offset=start[back],
            block=index[back],
            end=end[back],
            previous=previous[back],
            index=index[back],
            jump=jump[back],
        ).table(buckets)
    ]
    ahead = ~back
    for level in range(LEVELS):
        first, last = start >> BLOCK_BITS * level, end >> BLOCK_BITS * level
        ahead = ahead & (last - first >= 2)
        blocks = first >> BLOCK_BITS, last >> BLOCK_BITS
        for block, asked in ((blocks[0], ahead), (blocks[1], ahead & (blocks[0] != blocks[1]))):
            if not asked.any():
                continue
            tables.append(
                Places(
                    kind=PROBE,
                    level=level,
                    queue=queue[asked],
                    offset=start[asked],
                    block=block[asked],
                    end=end[asked],
                    previous=previous[asked],
                    index=index[asked],
                    jump=jump[asked],
                ).table(buckets)
            )
    return pa.concat_tables(tables).combine_chunks()


def place_outcomes(places: pa.Table, *, final: FinalReads, buckets: int, excuses: Excuses = NO_EXCUSES) -> pa.Table:
    """Kernel over all places, known blocks and jumps of a bucket."""
    column = {name: places[name].to_numpy() for name in PLACES.names}
    findings = Findings()
    Conflicts(column, final).report(findings, excuses)
    _backward(column, final, findings, excuses)
    found = findings.table()
    padded = [pa.nulls(found.num_rows, OUTCOMES.field(name).type) for name in OUTCOMES.names[len(FINDINGS) :]]
    # Findings pass through the next grouping untouched; any bucket will do.
    padded[0] = pa.array(np.zeros(found.num_rows, dtype=np.int32))
    outcomes = pa.Table.from_arrays([*found.columns, *padded], schema=OUTCOMES)
    return pa.concat_tables([outcomes, _crossings(column, buckets)]).combine_chunks()


def _backward(column: dict[str, Int64], final: FinalReads, findings: Findings, excuses: Excuses) -> None:
    rows = np.flatnonzero(column["kind"] == BACKWARD)
    for jump in (BACK_POLL, BACK_SEND, BACK_INTERNAL):
        of_jump = rows[column["jump"][rows] == jump]
        begun, shown = column["previous"][of_jump], column["index"][of_jump]
        for excuse, some in excuses.split(JUMPS[jump], begun, begun, seen=shown):
            chosen = of_jump[some]
            previous, index, *steps = (column[name][chosen] for name in ("previous", "index", "offset", "end"))
            order = witness_order(previous, index, ties=tuple(steps))
            examples = []
            for row in chosen[order[:EXAMPLES]].tolist():
                facts = {name: int(column[name][row]) for name in ("offset", "end", "previous", "index")}
                examples.append(_backward_example(jump, final.queues[column["queue"][row]], **facts))
            findings.add(JUMPS[jump], len(chosen), examples, excuse)


def _backward_example(jump: int, queue: str, *, offset: int, end: int, previous: int, index: int) -> Example:
    if jump == BACK_SEND:
        because = (
            f"one producer's send to {queue or 'the queue'} landed at offset {end} (operation {index}), "
            f"not after its earlier one at offset {offset} (operation {previous})"
        )
    elif jump == BACK_POLL:
        because = (
            f"a consumer of {queue or 'the queue'} that had read up to offset {offset} (operation {previous}) "
            f"was given offset {end} (operation {index}) without having asked to go back"
        )
    else:
        because = (
            f"one poll of {queue or 'the queue'} (operation {index}) returned offset {end} right after offset {offset}"
        )
    return Example(
        key=queue,
        operations=tuple(sorted({previous, index})),
        tie=(offset, end),
        because=because,
        details={"from_offset": offset, "to_offset": end},
    )


def _crossings(column: dict[str, Int64], buckets: int) -> pa.Table:
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


def skip_findings(outcomes: pa.Table, *, final: FinalReads, excuses: Excuses = NO_EXCUSES) -> pa.Table:
    """Kernel over all hits of a bucket of polls: each skip once, with the lowest offset passed over."""
    passed_through = outcomes.filter(outcomes["name"].is_valid()).select(FINDINGS.names)
    hits = outcomes.filter(outcomes["name"].is_null())
    findings = Findings()
    if hits.num_rows:
        column = {name: hits[name].to_numpy() for name in OUTCOMES.names[len(FINDINGS) :]}
        _add_skips(column, final, findings, excuses)
    return pa.concat_tables([passed_through, findings.table()]).combine_chunks()


def _add_skips(column: dict[str, Int64], final: FinalReads, findings: Findings, excuses: Excuses) -> None:
    identity = ("previous", "index", "queue", "start", "end", "jump")
    order = np.lexsort(tuple(column[name] for name in (*identity, "found", "witness")[::-1]))
    column = {name: values[order] for name, values in column.items()}
    skips = np.flatnonzero(run_starts(*(column[name] for name in identity)))
    for jump in (SKIP_POLL, SKIP_INTERNAL):
        of_jump = skips[column["jump"][skips] == jump]
        begun = np.minimum(column["previous"][of_jump], column["witness"][of_jump])
        for excuse, some in excuses.split(JUMPS[jump], begun, begun, seen=column["index"][of_jump]):
            chosen = of_jump[some]
            operations = (column[name][chosen] for name in ("previous", "index", "witness"))
            steps = (column["start"][chosen], column["end"][chosen])
            order = witness_order(*operations, ties=steps)[:EXAMPLES]
            examples = [_skip(jump, column, row, final) for row in chosen[order].tolist()]
            findings.add(JUMPS[jump], len(chosen), examples, excuse)


def _skip(jump: int, column: dict[str, Int64], row: int, final: FinalReads) -> Example:
    fact = {name: int(column[name][row]) for name in ("previous", "index", "start", "end", "found", "witness")}
    queue = final.queues[column["queue"][row]]
    passed = f"passing over offset {fact['found']}, which operation {fact['witness']} shows"
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
