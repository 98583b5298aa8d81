"""Cycles that rule a model out under assumptions: cycles of dependencies between transactions on registers, or of
versions, with the reason for each step.

The deciders assume nothing, so their proofs do not show a contradiction that only follows from assumptions. A cycle
does: the reason for the order of two versions in it is an assumption, and the transactions to which it applies. An
order that the system reported may be a reason, too; it is not in the history, so cycles that rest on it have no
certificate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from checkers.api.plan import Engine
from checkers.api.verdict import AnomalySummary
from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.graph.cycles import Cycle, Cycles
from checkers.transactions.elle.inference import VersionSteps
from checkers.transactions.elle.reasons import gathered_reasons, wanted_edges
from checkers.transactions.elle.rw_register.precedences import Assumption, OrderedBy
from checkers.transactions.model.lattice import ConsistencyModel, forbidden

CYCLIC_VERSIONS = "cyclic-versions"

INITIALLY = "initial"
"""The reason why a version precedes others if no assumption is needed."""

_ASSUMPTION = {
    OrderedBy.WRITES_FOLLOW_READS: Assumption.WFR_KEYS,
    OrderedBy.PROCESS: Assumption.SEQUENTIAL_KEYS,
    OrderedBy.REALTIME: Assumption.LINEARIZABLE_KEYS,
}

CycleStep = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """A cycle with its name, and with its steps in the format of a certificate."""

    name: str
    steps: Sequence[CycleStep]

    @property
    def assumed(self) -> Sequence[str]:
        """The assumptions that it rests on."""
        used = {step.get("because") for step in self.steps}
        return [one.value for one in Assumption if one.value in used]


def contradiction(
    engine: Engine,
    version_steps: VersionSteps,
    found: Cycles,
    findings: Mapping[str, AnomalySummary],
    model: ConsistencyModel,
    limit: int,
) -> Contradiction | None:
    """A cycle that the model forbids; None if there is none that can be certified. A cycle of versions has at most
    `limit` steps."""
    return next(_contradictions(engine, version_steps, found, findings, model, limit), None)


def _contradictions(
    engine: Engine,
    version_steps: VersionSteps,
    found: Cycles,
    findings: Mapping[str, AnomalySummary],
    model: ConsistencyModel,
    limit: int,
) -> Iterator[Contradiction]:
    broken = forbidden(model)
    for name, of_name in found.found.items():
        for cycle in of_name.examples if name in broken else ():
            steps = _steps_of_edges(engine, version_steps, cycle)
            if steps is not None:
                yield Contradiction(name=name, steps=steps)
    cyclic = findings.get(CYCLIC_VERSIONS) if CYCLIC_VERSIONS in broken else None
    for anomaly in cyclic.examples if cyclic is not None else ():
        rows = engine.gather(version_steps.of_versions(str(anomaly.key)), limit).sort_by("source").to_pylist()
        orders = [_order(row) for row in rows]
        if all(order is not None for order in orders):
            yield Contradiction(name=CYCLIC_VERSIONS, steps=[order for order in orders if order is not None])


def _steps_of_edges(engine: Engine, version_steps: VersionSteps, cycle: Cycle) -> Sequence[CycleStep] | None:
    wanted = wanted_edges((int(kind), source, target) for kind, source, target in cycle.edges if kind <= Dependency.RW)
    reasons = gathered_reasons(engine, version_steps.of_edges(wanted), wanted).to_pylist()
    rows = {(row["kind"], row["source"], row["target"]): row for row in reasons}
    steps = []
    for kind, source, target in cycle.edges:
        shown = _shown_by(kind, rows.get((int(kind), source, target), {}))
        if shown is None:
            return None
        steps.append({"kind": kind.name.lower(), "source": source, "target": target, **shown})
    return steps


def _shown_by(kind: Dependency, row: Mapping[str, Any]) -> CycleStep | None:
    if kind > Dependency.RW:
        return {}
    return {"key": row["key"]} if kind is Dependency.WR else _order(row)


def _order(row: Mapping[str, Any]) -> CycleStep | None:
    """The step for the order of two versions; None if only an order that the system reported orders them."""
    evidence = OrderedBy(row["because"])
    if evidence is OrderedBy.REPORTED:
        return None
    because = INITIALLY if evidence is OrderedBy.INITIAL else _ASSUMPTION[evidence].value
    transactions = dict.fromkeys(one for one in (row["earlier"], row["later"]) if one is not None)
    return {
        "key": row["key"],
        "versions": [row["before"], row["after"]],
        "because": because,
        "transactions": list(transactions),
    }
