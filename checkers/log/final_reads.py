"""How far the final reads of each queue got, which decides what the absence of a message means.

The final log of a queue is the union of what the final polls read from all replicas that were read to their
end (`caught-up`). A message that is not in it is lost if the log goes on behind the message's offset; at the
log's tail it is lost only if every replica that was asked was read to its end, because an unread one might hold it.

Final polls that are parts of transactions come from consumers that were set to the beginning and read on from there. So
they would have shown what they passed, and they were at the end if no message is known behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.api.plan import Engine
from checkers.history_batches import Source
from checkers.kernels.columns import FAIL, INFO, NONE, OK, Bool, Int32, Int64, codes, translated, whole
from checkers.log.rows import (
    CAUGHT_UP,
    FINAL_POLL,
    POLL,
    SEND,
    count_alone,
    is_ok_poll,
    operation_codes,
    reads,
    sends,
    with_parts,
)

TALLIED = (
    "type",
    "f",
    "key",
    "value.offset",
    "value.messages.offset",
    *(f"value.txn.{name}" for name in ("f", "key", "offset", "messages.offset")),
    "node",
)
"""The columns of a history that are looked at here."""

REPLICAS_LIMIT = 100_000
"""Queues times replicas: a property of the cluster, not of the history's length."""

TALLIES = (
    *("acked", "failed", "indefinite", "polled", "final_polled", "asked", "caught_up", "parts"),
    *("scanned", "unplaced"),
)

COUNTED = TALLIES[:5]
"""The tallies in the result's statistics: sends by outcome, messages read."""

Row = dict[str, Any]

HIGHEST = ("highest", "reached")

TALLY = pa.schema(
    [pa.field("key", pa.string()), pa.field("node", pa.string())]
    + [pa.field(name, pa.int64()) for name in TALLIES]
    + [pa.field(name, pa.int64()) for name in HIGHEST]
)
"""Counts by queue and replica (empty where unknown): `scanned` are final polls that are parts of transactions,
`unplaced` acks that name no offset. `highest` is the highest offset of final polls, `reached` that of any ack or poll;
-1 if none."""


@dataclass(frozen=True, kw_only=True)
class FinalReads:
    """What is known of each queue, at the same position in all columns. Small; goes to every kernel."""

    queues: tuple[str, ...]
    nodes: tuple[str, ...]
    caught_up: Bool
    """(queue, node): whether this replica was read to its end."""
    highest: Int64
    """The highest offset in the final log, -1 if it is empty."""
    some: Bool
    """Whether at least one replica was read to its end."""
    every: Bool
    """Whether every replica that was asked was read to its end."""
    counts: dict[str, int]
    transactions: bool
    """Whether some operations are transactions."""
    behind: tuple[tuple[str, str], ...]
    """(queue, replica) of each replica that was asked and not read to its end."""
    unfinished: tuple[str, ...]
    """One sentence for each queue in use whose final reads leave something open."""
    unasked: tuple[str, ...]
    """Those of these sentences that are about queues that no client tried to read as a whole. What is open is whether
    messages that were read are still there."""

    def queue_numbers(self, keys: pa.ChunkedArray) -> Int32:
        """The position of each row's queue in `queues`; a row without a key belongs to the queue ""."""
        numbers = translated(keys, {name: number for number, name in enumerate(self.queues)})
        if "" in self.queues:
            numbers[numbers < 0] = self.queues.index("")
        return numbers

    def node_numbers(self, nodes: pa.ChunkedArray) -> Int32:
        """The position of each row's replica in `nodes`; -1 where unknown, which is the last column of `caught_up`."""
        return translated(nodes, {name: number for number, name in enumerate(self.nodes)})


def final_reads(engine: Engine, history: Source) -> FinalReads:
    rows = engine.history(history, TALLIED)
    partials = engine.mapped(rows, tally, TALLY)
    return summed(engine.gather(engine.grouped(partials, ("key", "node"), total, TALLY), REPLICAS_LIMIT))


def tally(batch: pa.Table) -> pa.Table:
    """Kernel: counts of one batch."""
    is_transaction = codes(batch["f"], ("txn",)) == 0
    alone = count_alone(batch)
    batch = with_parts(batch)
    is_part = (np.arange(batch.num_rows) >= alone) & is_transaction.any()
    f, types = operation_codes(batch)
    used = np.flatnonzero(f >= 0)
    if len(used) < len(f):
        f, types, is_part, batch = f[used], types[used], is_part[used], batch.take(pa.array(used))
    keys, key = _texts(batch["key"])
    nodes, node = _texts(batch["node"])
    place = key * len(nodes) + node
    places = len(keys) * len(nodes)

    read = reads(batch, is_ok_poll(f, types))
    final = f[read.row] == FINAL_POLL
    read_place = place[read.row]
    highest, reached = np.full((2, places), -1, dtype=np.int64)
    np.maximum.at(highest, read_place[final], read.offset[final])
    sent = sends(batch, f, types)
    acked, placed = sent.type == OK, sent.offset != NONE
    np.maximum.at(reached, read_place, read.offset)
    np.maximum.at(reached, place[sent.row[acked & placed]], sent.offset[acked & placed])

    def count(where: Bool) -> Int64:
        return np.bincount(place[where], minlength=places)

    columns = [
        count((f == SEND) & (types == OK)),
        count((f == SEND) & (types == FAIL)),
        count((f == SEND) & (types == INFO)),
        np.bincount(read_place[f[read.row] == POLL], minlength=places),
        np.bincount(read_place[final], minlength=places),
        count(f == FINAL_POLL),
        count((f == CAUGHT_UP) & (types == OK)),
        count(is_part),
        count(is_part & (f == FINAL_POLL) & (types == OK)),
        np.bincount(place[sent.row[acked & ~placed]], minlength=places),
    ]
    present = np.flatnonzero(np.bincount(place, minlength=places))
    return pa.Table.from_arrays(
        [
            pa.array([keys[p // len(nodes)] for p in present.tolist()], pa.string()),
            pa.array([nodes[p % len(nodes)] for p in present.tolist()], pa.string()),
            *(pa.array(column[present].astype(np.int64)) for column in columns),
            pa.array(highest[present]),
            pa.array(reached[present]),
        ],
        schema=TALLY,
    )


def total(table: pa.Table) -> pa.Table:
    """Kernel over one queue and replica: the counts of all batches."""
    row: dict[str, list[object]] = {name: [int(table[name].to_numpy().sum())] for name in TALLIES}
    row["key"] = [table["key"][0].as_py()]
    row["node"] = [table["node"][0].as_py()]
    row |= {name: [int(table[name].to_numpy().max())] for name in HIGHEST}
    return pa.table(row, schema=TALLY)


def summed(tallies: pa.Table) -> FinalReads:
    rows = sorted(tallies.to_pylist(), key=lambda row: (row["key"], row["node"]))
    queues = tuple(sorted({row["key"] for row in rows}))
    nodes = tuple(sorted({row["node"] for row in rows if row["node"]}))
    caught_up = np.zeros((len(queues), len(nodes) + 1), dtype=np.bool_)
    highest = np.full(len(queues), -1, dtype=np.int64)
    some = np.zeros(len(queues), dtype=np.bool_)
    every = np.zeros(len(queues), dtype=np.bool_)
    unfinished, unasked, behind = [], [], []
    for position, queue in enumerate(queues):
        of_queue = [row for row in rows if row["key"] == queue]
        done = [row for row in of_queue if row["caught_up"] or row["scanned"]]
        open_nodes = [row["node"] for row in of_queue if row["asked"] and row["node"] and row not in done]
        behind += [(queue, node) for node in open_nodes]
        for row in done:
            if row["node"]:
                caught_up[position, nodes.index(row["node"])] = True
            else:
                caught_up[position, -1] = True
        highest[position] = max((row["highest"] for row in done), default=-1)
        some[position] = bool(done)
        short = _short_scan(of_queue, int(highest[position]))
        every[position] = bool(done) and not open_nodes and not short
        if any(row["acked"] or row["polled"] for row in of_queue) and not every[position]:
            unfinished.append(_sentence(queue, open_nodes, short))
            if not any(row["asked"] for row in of_queue):
                unasked.append(unfinished[-1])
    counts = {name: sum(row[name] for row in rows) for name in COUNTED}
    return FinalReads(
        queues=queues,
        nodes=nodes,
        caught_up=caught_up,
        highest=highest,
        some=some,
        every=every,
        counts=counts,
        transactions=any(row["parts"] for row in rows),
        behind=tuple(behind),
        unfinished=tuple(unfinished),
        unasked=tuple(unasked),
    )


def _short_scan(rows: Sequence[Row], highest: int) -> str:
    """What the final polls of a queue may not have reached, in words, if none reported that it reached the end."""
    if any(row["caught_up"] for row in rows) or not any(row["scanned"] for row in rows):
        return ""
    reached, unplaced = max(row["reached"] for row in rows), sum(row["unplaced"] for row in rows)
    if highest < reached:
        return f"they end at offset {highest}, but offset {reached} is known to hold a message"
    return f"{unplaced} messages were acknowledged without an offset" if unplaced else ""


def _sentence(queue: str, open_nodes: Sequence[str], short: str) -> str:
    which = f"queue {queue}" if queue else "the queue"
    if short:
        return f"final reads incomplete for {which}: {short}"
    if open_nodes:
        return f"final reads incomplete for {which}: {', '.join(open_nodes)} not read to the end"
    return f"final reads incomplete for {which}: no replica was read to its end"


def _texts(column: pa.ChunkedArray) -> tuple[list[str], Int64]:
    """Distinct strings, with "" for null, and the position of each row's."""
    encoded = whole(column)
    if pa.types.is_null(encoded.type):
        return [""], np.zeros(len(encoded), dtype=np.int64)
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    words = [*encoded.dictionary.to_pylist(), ""]
    return words, encoded.indices.fill_null(len(words) - 1).to_numpy(zero_copy_only=False).astype(np.int64)
