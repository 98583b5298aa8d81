"""Data at risk: which fault took the messages that were acknowledged and lost, and how far back it reached."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.api.plan import Engine
from checkers.faults import NO_FAULT, Faults
from checkers.history_batches import Source
from checkers.log.final_reads import FinalReads
from checkers.log.messages import ACKED, FACTS, Fates, message_facts
from checkers.log.rows import COLUMNS

TIMED_FACTS = FACTS.append(pa.field("time", pa.int64()))

LOSSES = pa.schema([pa.field("fault", pa.int32())] + [pa.field(name, pa.int64()) for name in ("lost", "first", "last")])
"""How many messages, acknowledged between the times `first` and `last`, were lost by this fault."""

FAULTS_LIMIT = 1_000_000


def data_at_risk(
    engine: Engine, history: Source, *, final: FinalReads, buckets: int, struck: Faults
) -> list[dict[str, Any]]:
    """For each fault that took acknowledged messages: how many, how long before its start the first of them had been
    acknowledged (`reach_ns`, 0 if none had), and the time between the first and the last (`span_ns`).

    A loss is blamed on the first fault that was not over when the message was acknowledged.
    """
    rows = engine.history(history, (*COLUMNS, "time"))
    facts = engine.mapped(rows, partial(timed_facts, final=final, buckets=buckets), TIMED_FACTS)
    losses = engine.grouped(facts, ("bucket",), partial(losses_of, final=final, struck=struck), LOSSES)
    summed = engine.gather(engine.grouped(losses, ("fault",), total, LOSSES), FAULTS_LIMIT)
    return [_in_words(row, struck) for row in sorted(summed.to_pylist(), key=lambda row: row["fault"])]


def _in_words(row: dict[str, Any], struck: Faults) -> dict[str, Any]:
    lost = {"lost": row["lost"], "span_ns": row["last"] - row["first"]}
    if row["fault"] == NO_FAULT:
        return {"fault": "no fault", "start_ns": None, **lost}
    start_ns = int(struck.start_ns[row["fault"]])
    reach_ns = max(0, start_ns - row["first"])
    return {"fault": struck.names[row["fault"]], "start_ns": start_ns, **lost, "reach_ns": reach_ns}


def timed_facts(batch: pa.Table, *, final: FinalReads, buckets: int) -> pa.Table:
    """Kernel: the facts of one batch, each with the time of the operation that shows it."""
    facts = message_facts(batch, final=final, buckets=buckets)
    index = batch["index"].to_numpy()
    order = np.argsort(index, kind="stable")
    at = order[np.searchsorted(index[order], facts["index"].to_numpy())]
    return facts.append_column(TIMED_FACTS.field("time"), batch["time"].take(pa.array(at)))


def losses_of(facts: pa.Table, *, final: FinalReads, struck: Faults) -> pa.Table:
    """Kernel over all facts of a bucket of messages."""
    fates = Fates(facts, final)
    index = facts["index"].to_numpy()
    acks = fates.first[ACKED][(fates.lost | fates.unseen) & fates.acked]
    order = np.argsort(index, kind="stable")
    shown_by = order[np.searchsorted(index[order], fates.index[acks])]
    acked_ns = facts["time"].to_numpy()[shown_by]
    fault, place = np.unique(struck.to_blame_for_losses(acked_ns), return_inverse=True)
    first = np.full(len(fault), np.iinfo(np.int64).max)
    last = np.full(len(fault), np.iinfo(np.int64).min)
    np.minimum.at(first, place, acked_ns)
    np.maximum.at(last, place, acked_ns)
    lost = np.bincount(place, minlength=len(fault))
    return pa.table({"fault": fault, "lost": lost, "first": first, "last": last}).cast(LOSSES)


def total(losses: pa.Table) -> pa.Table:
    """Kernel over the losses that are blamed on one fault."""
    column = {name: losses[name].to_numpy() for name in LOSSES.names}
    row = [column["fault"][0], column["lost"].sum(), column["first"].min(), column["last"].max()]
    return pa.table([pa.array([int(value)]) for value in row], names=LOSSES.names).cast(LOSSES)
