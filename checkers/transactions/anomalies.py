"""From cycles and proofs to anomalies that people can read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from checkers.api.anomaly import Anomaly
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import AnomalySummary, Verdict
from checkers.transactions.elle.graph.cycles import Cycles
from checkers.transactions.elle.inference import Inference
from checkers.transactions.elle.reasons import gathered_reasons
from checkers.transactions.evidence.certificate import Names
from checkers.transactions.evidence.encoded_proof import CompactProof
from checkers.transactions.evidence.explain import (
    anomalies_of_cycles,
    explained_anomaly,
    explained_proof,
    indices_of_cycles,
    indices_of_proof,
    indices_of_reasons,
    unexplained_edges,
)
from checkers.transactions.evidence.shown_transactions import involved
from checkers.transactions.meanings import NO_ORDER
from checkers.transactions.model.lattice import ConsistencyModel, weakest
from checkers.transactions.orders.plan import Answer


def cycle_anomalies(
    request: CheckRequest, engine: Engine, inferred: Inference, found: Cycles
) -> Mapping[str, AnomalySummary]:
    if not any(summary.examples for summary in found.found.values()):
        return {}
    wanted = unexplained_edges(found)
    on_cycles = involved(request, engine, indices_of_cycles(found))
    keys = frozenset[str]().union(*(one.keys for one in on_cycles.values()))
    reasons = gathered_reasons(engine, inferred.reasons(wanted, keys), wanted)
    others = indices_of_reasons(reasons) - on_cycles.keys()
    return anomalies_of_cycles(found, reasons, {**on_cycles, **involved(request, engine, others)})


def order_anomalies(
    workload: str, request: CheckRequest, engine: Engine, inferred: Inference, answers: Sequence[Answer]
) -> Mapping[str, AnomalySummary]:
    """An anomaly for each of the weakest models in which no order explains the history."""
    refuted = _refuted(answers)
    anomalies = {}
    for model in weakest(refuted):
        proof, name = refuted[model], f"{NO_ORDER}{model.value}"
        if proof is None:
            because = "every order of the transactions leads to a contradiction, in too many cases to show them"
            example = Anomaly(name=name, because=because)
        else:
            names = names_of(workload, inferred, model, proof)
            indices = indices_of_proof(proof.proof, names)
            shown = involved(request, engine, indices)
            example = explained_anomaly(name, indices, explained_proof(proof.proof, names, shown))
        anomalies[name] = AnomalySummary(count=1, examples=(example,))
    return anomalies


def names_of_no_order(answers: Sequence[Answer]) -> Sequence[str]:
    """The names of what `order_anomalies` finds."""
    return [f"{NO_ORDER}{model.value}" for model in weakest(_refuted(answers))]


def _refuted(answers: Sequence[Answer]) -> Mapping[ConsistencyModel, CompactProof | None]:
    return {one.model: one.proof for one in answers if one.verdict is Verdict.INVALID}


def names_of(workload: str, inferred: Inference, model: ConsistencyModel, proof: CompactProof) -> Names:
    names = inferred.key_names(proof.keys)
    keys = [names[number] for number in proof.keys]
    return Names(model=model.value, workload=workload, start=proof.start, keys=keys)
