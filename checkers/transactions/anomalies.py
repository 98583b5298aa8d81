"""From cycles and proofs to anomalies that people can read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from checkers.anomaly import Anomaly
from checkers.causal.spans import transactions
from checkers.plan import CheckRequest, Engine
from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.graph.cycles import Cycles
from checkers.transactions.elle.inference import Inference
from checkers.transactions.elle.reasons import gathered_reasons, wanted_edges
from checkers.transactions.evidence.certificate import Names
from checkers.transactions.evidence.encoded_proof import CompactProof
from checkers.transactions.evidence.explanation import (
    Explanation,
    explained_cycle,
    explained_proof,
    indices_of_proof,
    involved,
)
from checkers.transactions.isolation.plan import Answer
from checkers.transactions.model.lattice import Model, weakest
from checkers.verdict import AnomalySummary, Verdict

NO_ORDER = "not-"
"""Anomalies are called so, and then a model, where no order of the transactions explains the history in it."""


def cycle_anomalies(
    request: CheckRequest, engine: Engine, told: Inference, found: Cycles
) -> Mapping[str, AnomalySummary]:
    edges = [edge for name in found.found.values() for cycle in name.examples for edge in cycle.edges]
    if not edges:
        return {}
    wanted = wanted_edges((int(kind), source, target) for kind, source, target in edges if kind <= Dependency.RW)
    reasons = gathered_reasons(engine, told.reasons(wanted), wanted)
    evidence = reasons["evidence"].drop_null().to_pylist()
    witnesses = involved(engine, transactions(request, engine), (*(source for _, source, _ in edges), *evidence))
    anomalies = {}
    for name, of_name in found.found.items():
        examples = []
        for cycle in of_name.examples:
            explanation = explained_cycle(cycle, reasons, witnesses)
            examples.append(_anomaly(name, cycle.transactions, explanation))
        anomalies[name] = AnomalySummary(count=of_name.count, examples=tuple(examples))
    return anomalies


def order_anomalies(
    workload: str, request: CheckRequest, engine: Engine, told: Inference, given: Sequence[Answer]
) -> Mapping[str, AnomalySummary]:
    """One for each of the weakest models that no order explains the history in."""
    refuted = {one.model: one.proof for one in given if one.verdict is Verdict.INVALID}
    anomalies = {}
    for model in weakest(refuted):
        proof, name = refuted[model], f"{NO_ORDER}{model.value}"
        if proof is None:
            untold = Anomaly(name=name, because="every order contradicts itself, in too many cases to tell them")
            anomalies[name] = AnomalySummary(count=1, examples=(untold,))
            continue
        names = names_of(workload, told, model, proof)
        indices = indices_of_proof(proof.proof, names)
        explanation = explained_proof(proof.proof, names, involved(engine, transactions(request, engine), indices))
        anomalies[name] = AnomalySummary(count=1, examples=(_anomaly(name, indices, explanation),))
    return anomalies


def names_of(workload: str, told: Inference, model: Model, proof: CompactProof) -> Names:
    names = told.key_names(proof.keys)
    keys = [names[number] for number in proof.keys]
    return Names(model=model.value, workload=workload, start=proof.start, keys=keys)


def _anomaly(name: str, operations: Iterable[int], explanation: Explanation) -> Anomaly:
    return Anomaly(
        name=name,
        operations=tuple(sorted(set(operations))),
        because=explanation.because,
        details=explanation.details(),
    )
