"""Deciders as a plan: one kernel gets all external operations of a history and answers for all models.

What is gathered is bounded: an answer for each model, and with a proof only the transactions that it is about. Orders
are as long as the history and are only gathered where they were asked for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from checkers.api.plan import Dataset, Engine
from checkers.api.verdict import EXAMPLES, Verdict
from checkers.kernels.bundles import packed_tables
from checkers.kernels.columns import Int64
from checkers.search_budget import TimeIsUp
from checkers.transactions.evidence.certificate import Names
from checkers.transactions.evidence.encoded_proof import CompactProof, decoded_proof, encoded_proof
from checkers.transactions.evidence.proof import Bound, Decision, Established
from checkers.transactions.history.committed import INITIAL, Committed
from checkers.transactions.history.committed_rows import TOGETHER, committed
from checkers.transactions.model.lattice import ConsistencyModel
from checkers.transactions.model.lattice_position import LatticePosition
from checkers.transactions.orders.deciders import answer, decide, ordered

ANSWERS = pa.schema(
    [
        pa.field("model", pa.string()),
        pa.field("verdict", pa.string()),
        pa.field("proof", pa.string()),
        pa.field("open", pa.string()),
        pa.field("established", pa.string()),
    ]
)
"""`proof` as `encoded_proof` writes it, of INVALID; `open` the components of UNKNOWN, as lists of history indices;
`established` what was known then, as a JSON object."""

ORDER = pa.schema([pa.field("place", pa.int64()), pa.field("start", pa.int64()), pa.field("event", pa.int8())])
"""An order of transactions, named by the history indices of their invocations, or of their begins (event 0) and commits
(event 1)."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    model: ConsistencyModel
    verdict: Verdict
    proof: CompactProof | None = None
    open: Sequence[Sequence[int]] = ()
    """Components that a bound left undecided: history indices of invocations."""
    established: Established | None = None


def answers(
    engine: Engine,
    resolved: Dataset,
    demanded: ConsistencyModel,
    position: LatticePosition,
) -> tuple[Answer, ...]:
    """The answers for all models that were asked for, in that order. Once searches are over, nothing is begun any more
    that may take long."""
    asked = engine.grouped(
        resolved,
        ("name",),
        partial(answered, demanded=demanded, position=position),
        ANSWERS,
    )
    return tuple(map(_answer, engine.gather(asked, len(ConsistencyModel)).to_pylist()))


def _answer(row: Mapping[str, Any]) -> Answer:
    return Answer(
        model=ConsistencyModel(row["model"]),
        verdict=Verdict(row["verdict"]),
        proof=decoded_proof(row["proof"]) if row["proof"] else None,
        open=json.loads(row["open"]),
        established=_established(row["established"]),
    )


def _established(text: str) -> Established | None:
    fields = json.loads(text)
    return fields and Established(**{**fields, "bound": Bound[fields["bound"]]})


def answered(
    bundles: pa.Table,
    *,
    demanded: ConsistencyModel,
    position: LatticePosition,
) -> pa.Table:
    """Kernel over BUNDLES of all RESOLVED rows of a history."""
    transactions, keys = committed(packed_tables(bundles, TOGETHER))
    _, decisions = decide(transactions, demanded, position)
    return _answers(decisions, transactions, keys)


def _answers(decisions: Mapping[ConsistencyModel, Decision], transactions: Committed, keys: Int64) -> pa.Table:
    rows = []
    for model, decision in decisions.items():
        events = _events(model)
        proof = decision.proof and encoded_proof(decision.proof, events, transactions.start, keys)
        opened = [transactions.start[list(some)].tolist() for some in decision.open[:EXAMPLES]]
        known = decision.established and {**asdict(decision.established), "bound": decision.established.bound.name}
        rows.append((model.value, decision.verdict.value, proof, json.dumps(opened), json.dumps(known)))
    columns = list(zip(*rows, strict=True)) or [()] * len(ANSWERS)
    arrays = [pa.array(column, of.type) for column, of in zip(columns, ANSWERS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=ANSWERS)


def _events(model: ConsistencyModel) -> int:
    return Names(model=model.value, workload="", start=np.zeros(0, dtype=np.int64), keys=()).events


def answer_alone(engine: Engine, resolved: Dataset, model: ConsistencyModel) -> Answer:
    """The answer for one model, whatever is known of others."""
    asked = engine.grouped(
        resolved,
        ("name",),
        partial(answered_alone, model=model),
        ANSWERS,
    )
    rows = engine.gather(asked, 1).to_pylist()
    if not rows:
        return Answer(model=model, verdict=Verdict.VALID)
    return _answer(rows[0])


def answered_alone(bundles: pa.Table, *, model: ConsistencyModel) -> pa.Table:
    """Kernel over BUNDLES of all RESOLVED rows of a history."""
    transactions, keys = committed(packed_tables(bundles, TOGETHER))
    decision = answer(transactions, model)
    return _answers({model: decision}, transactions, keys)


def order_of(engine: Engine, resolved: Dataset, model: ConsistencyModel, limit: int) -> pa.Table:
    """ORDER of a history that the model allows; at most `limit` rows."""
    orders = engine.grouped(resolved, ("name",), partial(placed, model=model), ORDER)
    return engine.gather(orders, limit).sort_by("place")


def placed(bundles: pa.Table, *, model: ConsistencyModel) -> pa.Table:
    """Kernel over BUNDLES of all RESOLVED rows of a history that the model allows: its ORDER. Raises TimeIsUp."""
    transactions, _ = committed(packed_tables(bundles, TOGETHER))
    decision = ordered(transactions, model)
    if decision.verdict is Verdict.UNKNOWN:  # It was decided before, so only the time can have been too short.
        raise TimeIsUp
    assert decision.order is not None, "an order of what no order explains"
    events = _events(model)
    order = decision.order[decision.order // events != INITIAL]
    return pa.Table.from_arrays(
        [
            pa.array(np.arange(len(order), dtype=np.int64)),
            pa.array(transactions.start[order // events]),
            pa.array((order % events).astype(np.int8)),
        ],
        schema=ORDER,
    )
