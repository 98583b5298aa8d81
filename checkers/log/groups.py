"""Messages that consumer groups skipped because they resumed beyond messages that none of their polls had returned.

A consumer that begins asks for its group's committed offset, and its first poll of a queue has the answer (`resumed`).
The group must have got all before that, from where it first began. Only the final log counts, so a lost message is not
skipped; and a poll of unknown outcome got nothing, so a client must not commit what it may not have shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa

from checkers.api.excuses import Excuses
from checkers.api.findings import FINDINGS, Example, Findings
from checkers.api.plan import Dataset, Engine
from checkers.api.verdict import EXAMPLES
from checkers.history_batches import Source
from checkers.kernels.columns import NONE, OK, Int64, codes, integers, member, run_starts, witness_order
from checkers.kernels.hashing import bucket_of, mixed
from checkers.log.final_reads import FinalReads
from checkers.log.rows import COLUMNS, FINAL_POLL, POLL, is_ok_poll, operation_codes, reads

RESUMED = ("index", "type", "f", "key", "value.group", "value.resumed")
"""The columns of a history that show where groups resumed."""

GROUPS_LIMIT = 1_000_000
"""Consumer groups times queues: a property of the clients, not of the history's length."""
BLOCK_BITS = 16

RESUMES = pa.schema(
    [pa.field("group", pa.string()), pa.field("key", pa.string())]
    + [pa.field(name, pa.int64()) for name in ("first_index", "first", "highest_index", "highest")]
)
"""Where a group began on a queue, and the highest offset from which it went on, each with its operation."""

GOT = pa.schema(
    [pa.field("bucket", pa.int32())]
    + [pa.field(name, pa.int64()) for name in ("queue", "offset", "message", "group", "index")]
)
"""A message read by a group's poll, or (group FINAL) one of the final log, and the operation that read it."""

FINAL = -1
SKIP = "consumer-offset-skip"


@dataclass(frozen=True, kw_only=True)
class Resumes:
    """Groups that resumed somewhere, one position for each group and queue. Small; passed to every kernel."""

    names: tuple[str, ...]
    group: Int64
    queue: Int64
    first: Int64
    highest: Int64
    index: Int64
    """The operation that shows the highest."""


def consumer_groups(
    engine: Engine, history: Source, *, final: FinalReads, buckets: int, excuses: Excuses
) -> Dataset | None:
    """The findings on groups; None if no consumer resumed anywhere but where its group had begun."""
    found = engine.mapped(engine.history(history, RESUMED), resumes_of, RESUMES)
    gathered = engine.gather(engine.grouped(found, ("group", "key"), merged_resumes, RESUMES), GROUPS_LIMIT)
    resumes = _resumes(gathered.to_pylist(), final.queues)
    if not len(resumes.group):
        return None
    rows = engine.history(history, (*COLUMNS, "value.group"))
    got = engine.mapped(rows, partial(got_by_groups, final=final, resumes=resumes, buckets=buckets), GOT)
    passed = partial(passed_over, final=final, resumes=resumes, excuses=excuses)
    return engine.grouped(got, ("bucket",), passed, FINDINGS)


def resumes_of(batch: pa.Table) -> pa.Table:
    """Kernel: where the consumers of one batch resumed."""
    f, types = operation_codes(batch)
    offset = integers(member(batch["value"], "resumed"))
    rows = np.flatnonzero((f == POLL) & (types == OK) & (offset != NONE))
    resumed = batch.take(pa.array(rows))
    index, offset = resumed["index"].to_numpy(), offset[rows]
    columns = [member(resumed["value"], "group").cast(pa.string()), resumed["key"].cast(pa.string())]
    return pa.table([*columns, index, offset, index, offset], schema=RESUMES)


def merged_resumes(resumes: pa.Table) -> pa.Table:
    """Kernel over all of one group and queue."""
    column = {name: resumes[name].to_numpy() for name in RESUMES.names[2:]}
    first = int(np.argmin(column["first_index"]))
    highest = int(np.lexsort((column["highest_index"], -column["highest"]))[0])
    row = {name: [resumes[name][0].as_py()] for name in ("group", "key")}
    row |= {name: [int(column[name][first])] for name in ("first_index", "first")}
    row |= {name: [int(column[name][highest])] for name in ("highest_index", "highest")}
    return pa.table(row, schema=RESUMES)


def _resumes(rows: Sequence[dict[str, object]], queues: tuple[str, ...]) -> Resumes:
    known = {queue: number for number, queue in enumerate(queues)}
    ahead = [row for row in rows if row["highest"] > row["first"] and row["group"] and (row["key"] or "") in known]  # type: ignore[operator]
    ahead.sort(key=lambda row: (row["group"], row["key"] or ""))
    names = tuple(sorted({str(row["group"]) for row in ahead}))

    def column(name: str) -> Int64:
        return np.array([row[name] for row in ahead], dtype=np.int64)

    return Resumes(
        names=names,
        group=np.array([names.index(str(row["group"])) for row in ahead], dtype=np.int64),
        queue=np.array([known[str(row["key"] or "")] for row in ahead], dtype=np.int64),
        first=column("first"),
        highest=column("highest"),
        index=column("highest_index"),
    )


def got_by_groups(batch: pa.Table, *, final: FinalReads, resumes: Resumes, buckets: int) -> pa.Table:
    """Kernel: what one batch reads where some group resumed beyond it."""
    f, types = operation_codes(batch)
    read = reads(batch, is_ok_poll(f, types))
    queue = final.queue_numbers(batch["key"])[read.row].astype(np.int64)
    node = final.node_numbers(batch["node"])[read.row]
    group = codes(member(batch["value"], "group"), resumes.names)[read.row].astype(np.int64)
    is_final = f[read.row] == FINAL_POLL
    limit = np.zeros(len(final.queues), dtype=np.int64)
    np.maximum.at(limit, resumes.queue, resumes.highest)
    kept = (read.offset < limit[queue]) & np.where(is_final, final.caught_up[queue, node], group >= 0)
    queue, offset = queue[kept], read.offset[kept]
    return pa.table(
        {
            "bucket": bucket_of(mixed(offset >> BLOCK_BITS, mixed(queue)), buckets),
            "queue": queue,
            "offset": offset,
            "message": read.message[kept],
            "group": np.where(is_final, FINAL, group)[kept],
            "index": batch["index"].to_numpy()[read.row[kept]],
        },
        schema=GOT,
    )


def passed_over(got: pa.Table, *, final: FinalReads, resumes: Resumes, excuses: Excuses) -> pa.Table:
    """Kernel over all that was read of a bucket of places: messages that a group had to get, and did not."""
    order = np.lexsort(tuple(got[name].to_numpy() for name in ("index", "message", "offset", "queue")))
    queue, offset, message, group, index = (got[name].to_numpy()[order] for name in GOT.names[1:])
    place = np.cumsum(run_starts(queue, offset, message)) - 1
    finals = np.flatnonzero(group == FINAL)
    finals = finals[run_starts(place[finals])]
    skipped, by = [finals[:0]], [finals[:0]]
    for number in range(len(resumes.group)):
        due = finals[
            (queue[finals] == resumes.queue[number])
            & (offset[finals] >= resumes.first[number])
            & (offset[finals] < resumes.highest[number])
        ]
        missing = due[~np.isin(place[due], place[group == resumes.group[number]])]
        skipped.append(missing)
        by.append(np.full(len(missing), number))
    every, by_resume = np.concatenate(skipped), np.concatenate(by)
    begun = np.minimum(resumes.index[by_resume], index[every])
    findings = Findings()
    for excuse, some in excuses.split(SKIP, begun, begun):
        row, of = every[some], by_resume[some]
        examples = []
        for at in witness_order(resumes.index[of], index[row], ties=(offset[row], message[row]))[:EXAMPLES].tolist():
            one, resume = int(row[at]), int(of[at])
            key, name = final.queues[queue[one]], resumes.names[resumes.group[resume]]
            examples.append(
                Example(
                    key=key,
                    operations=tuple(sorted({int(resumes.index[resume]), int(index[one])})),
                    tie=(int(offset[one]), int(message[one])),
                    because=(
                        f"group {name} went on at offset {resumes.highest[resume]} of {key or 'the queue'} (operation "
                        f"{resumes.index[resume]}), but none of its polls ever returned message {message[one]} at "
                        f"offset {offset[one]} (operation {index[one]})"
                    ),
                    details={"group": name, "message": int(message[one]), "offset": int(offset[one])},
                )
            )
        findings.add(SKIP, len(row), examples, excuse)
    return findings.table()
