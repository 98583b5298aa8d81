"""Cycles of the dependencies between transactions on queues (`checkers.log.queue_dependencies`), explained."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import AnomalySummary
from checkers.buckets import bucket_count
from checkers.history_batches import history_rows
from checkers.kernels.columns import FAIL, NONE, Int64
from checkers.log.queue_dependencies import Writes, queue_edges, queue_reasons
from checkers.log.rows import COLUMNS
from checkers.log.transaction_events import EVENTS, STEPS, EventKind, events_of, steps_of
from checkers.transactions.elle.edges import EDGES, NODES
from checkers.transactions.elle.graph.search import cycles
from checkers.transactions.elle.reasons import EDGE_REASONS, gathered_reasons
from checkers.transactions.evidence.explain import (
    anomalies_of_cycles,
    indices_of_cycles,
    indices_of_reasons,
    unexplained_edges,
)
from checkers.transactions.evidence.shown_transactions import shown_transactions
from checkers.transactions.history.micro_operations import TRANSACTION

SPANS = pa.schema([*(NODES.field(name) for name in ("start", "process", "type")), TRANSACTION.field("txn")])


def transaction_cycles(
    engine: Engine, request: CheckRequest, writes: Writes = Writes.ISOLATED
) -> tuple[Mapping[str, AnomalySummary], tuple[str, ...]]:
    """(cycles by name, what was not searched to the end)."""
    buckets = bucket_count(history_rows(request.history))
    history = engine.history(request.history, (*COLUMNS, "process"))
    steps = engine.mapped(history, partial(steps_of, buckets=buckets), STEPS)
    with engine.kept(engine.grouped(steps, ("bucket",), events_of, EVENTS)) as events:
        edges = engine.grouped(events, ("queue",), partial(queue_edges, writes=writes), EDGES)
        with engine.kept(edges) as dependencies:
            found = cycles(engine, engine.mapped(events, nodes, NODES), dependencies)
        if not any(summary.examples for summary in found.found.values()):
            return {}, found.undecided
        wanted = unexplained_edges(found)
        kernel = partial(queue_reasons, wanted=wanted, writes=writes)
        reasons = gathered_reasons(engine, engine.grouped(events, ("queue",), kernel, EDGE_REASONS), wanted)
        starts = np.array(sorted(indices_of_cycles(found) | indices_of_reasons(reasons)), dtype=np.int64)
        of_cycles = engine.mapped(events, partial(only, starts=starts), EVENTS)
        spans = engine.gather(engine.grouped(of_cycles, ("start",), span_of, SPANS), len(starts))
    shown = {one.index: one for one in shown_transactions(spans)}
    return anomalies_of_cycles(found, reasons, shown), found.undecided


def nodes(events: pa.Table) -> pa.Table:
    """Kernel over EVENTS: NODES."""
    there = (events["event"].to_numpy() == EventKind.ITSELF) & (events["type"].to_numpy() != FAIL)
    return events.select(NODES.names).filter(pa.array(there))


def only(events: pa.Table, *, starts: Int64) -> pa.Table:
    """Kernel over EVENTS: those of these operations."""
    return events.filter(pa.array(np.isin(events["start"].to_numpy(), starts)))


def span_of(events: pa.Table) -> pa.Table:
    """Kernel over all EVENTS of an operation: as a transaction on lists, of each queue what it sent and was given."""
    rows = events.sort_by("place").to_pylist()
    parts: list[dict[str, object]] = []
    given: dict[str, list[int]] = {}
    for row in rows:
        if row["event"] == EventKind.SENT:
            parts.append({"f": "append", "key": row["queue"], "value": row["message"], "values": None})
        elif row["event"] in (EventKind.POLLED, EventKind.END):
            if row["queue"] not in given:
                given[row["queue"]] = []
                parts.append({"f": "r", "key": row["queue"], "value": None, "values": given[row["queue"]]})
            if row["event"] == EventKind.POLLED and row["message"] != NONE:
                given[row["queue"]].append(row["message"])
    span = {name: rows[0][name] for name in ("start", "process", "type")} | {"txn": parts}
    return pa.Table.from_pylist([span], schema=SPANS)
