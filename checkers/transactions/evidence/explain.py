"""Explanations of cycles and of proofs: which steps are shown, and what each rests on.

Takes a cycle of dependencies with a reason for each (`graph/cycles.py`, `reasons.py`), or a proof (`proof.py`), and the
transactions that they are about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from checkers.api.anomaly import Anomaly
from checkers.api.verdict import AnomalySummary
from checkers.transactions.elle.edges import Dependency
from checkers.transactions.elle.graph.cycles import Cycle, Cycles
from checkers.transactions.elle.reasons import wanted_edges
from checkers.transactions.evidence.certificate import Names
from checkers.transactions.evidence.explanation import Explanation, Sentence
from checkers.transactions.evidence.proof import Because, Proof, ProofStep
from checkers.transactions.evidence.render import because, details
from checkers.transactions.evidence.shown_transactions import ShownTransaction
from checkers.transactions.history.committed import INITIAL

STEPS_SHOWN = 24
"""The most steps of one block of a proof that are shown."""
MOMENTS = ("begins", "commits")


def unexplained_edges(found: Cycles) -> pa.Table:
    """The WW, WR and RW edges of all cycles that are to be explained, as `wanted_edges`."""
    edges = (edge for summary in found.found.values() for cycle in summary.examples for edge in cycle.edges)
    return wanted_edges((int(kind), source, target) for kind, source, target in edges if kind <= Dependency.RW)


def indices_of_cycles(found: Cycles) -> frozenset[int]:
    """The transactions on cycles that are to be explained, by history index."""
    cycles = (cycle for summary in found.found.values() for cycle in summary.examples)
    return frozenset(transaction for cycle in cycles for transaction in cycle.transactions)


def indices_of_reasons(reasons: pa.Table) -> frozenset[int]:
    """The transactions that are evidence of these reasons, which are EDGE_REASONS."""
    return frozenset(reasons["evidence"].drop_null().to_pylist())


def anomalies_of_cycles(
    found: Cycles, reasons: pa.Table, transactions: Mapping[int, ShownTransaction]
) -> Mapping[str, AnomalySummary]:
    """Each cycle as an anomaly; `reasons` are EDGE_REASONS."""
    anomalies = {}
    for name, summary in found.found.items():
        examples = [
            explained_anomaly(name, frozenset(cycle.transactions), explained_cycle(cycle, reasons, transactions))
            for cycle in summary.examples
        ]
        anomalies[name] = AnomalySummary(count=summary.count, examples=tuple(examples))
    return anomalies


def explained_anomaly(name: str, operations: frozenset[int], explanation: Explanation) -> Anomaly:
    return Anomaly(
        name=name, operations=tuple(sorted(operations)), because=because(explanation), details=details(explanation)
    )


def explained_cycle(cycle: Cycle, reasons: pa.Table, transactions: Mapping[int, ShownTransaction]) -> Explanation:
    """`reasons` are EDGE_REASONS, one for each WW, WR and RW edge of the cycle."""
    found = {(row["kind"], row["source"], row["target"]): row for row in reasons.to_pylist()}
    sentences = []
    for kind, source, target in cycle.edges:
        row = found.get((int(kind), source, target), {})
        sentences.append(
            Sentence(
                kind=kind.name.lower(),
                source=source,
                target=target,
                key=row.get("key"),
                value=row.get("value"),
                next_value=row.get("next_value"),
                evidence=row.get("evidence"),
            )
        )
    return Explanation(name=cycle.name, sentences=tuple(sentences), cycle=tuple(sentences), transactions=transactions)


def explained_proof(proof: Proof, names: Names, transactions: Mapping[int, ShownTransaction]) -> Explanation:
    """The explanation of a proof. Each block has only the steps that its end needs; the innermost blocks are explained
    first."""
    return _Blocks(names=names, transactions=transactions).explained(proof)


def indices_of_proof(proof: Proof, names: Names) -> frozenset[int]:
    """The transactions, by history index, that an explanation of the proof looks at."""
    blocks, found = [proof], set()
    while blocks:
        block = blocks.pop()
        blocks += block.cases or ()
        for step in block.steps:
            numbers = {step.source // names.events, step.target // names.events, step.reader, step.writer}
            found |= {names.transaction(number) for number in numbers if number > INITIAL}
    return frozenset(found)


@dataclass(frozen=True, kw_only=True)
class _Blocks:
    names: Names
    transactions: Mapping[int, ShownTransaction]

    def explained(self, proof: Proof) -> Explanation:
        """The explanation of a proof and its cases. Blocks are found in preorder and explained behind their cases."""
        order: list[tuple[Proof, tuple[ProofStep, ...], list[int]]] = []
        waiting: list[tuple[Proof, tuple[ProofStep, ...], int]] = [(proof, (), -1)]
        while waiting:
            block, around, parent = waiting.pop()
            steps = (*around, *block.steps)
            if parent >= 0:
                order[parent][2].append(len(order))
            order.append((block, steps, []))
            waiting += [(case, steps, len(order) - 1) for case in reversed(block.cases or ())]
        done: dict[int, tuple[Explanation, set[int]]] = {}
        for number in reversed(range(len(order))):
            block, steps, cases = order[number]
            done[number] = self._block(block, steps, [done.pop(case) for case in cases])
        return done[0][0]

    def _block(
        self, block: Proof, steps: Sequence[ProofStep], cases: Sequence[tuple[Explanation, set[int]]]
    ) -> tuple[Explanation, set[int]]:
        """(what is shown of the block, the steps of enclosing blocks that it needs)."""
        needed = set(block.cycle).union(*(needs for _, needs in cases))
        for number in range(len(steps) - 1, -1, -1):
            if number in needed:
                needed |= set(steps[number].path)
        own = len(steps) - len(block.steps)
        if own and block.steps[:1] and block.steps[0].because is Because.CASE:
            needed.add(own)
        shown = sorted(number for number in needed if number >= own)
        explanation = Explanation(
            name="no order",
            sentences=tuple(self._sentence(steps[number], number) for number in shown[:STEPS_SHOWN]),
            cycle=tuple(self._sentence(steps[number], number) for number in block.cycle),
            cases=tuple(case for case, _ in cases),
            left_out=max(0, len(shown) - STEPS_SHOWN),
            transactions=self.transactions,
        )
        return explanation, {number for number in needed if number < own}

    def _sentence(self, step: ProofStep, number: int) -> Sentence:
        reads = step.because in (Because.OVERWRITTEN, Because.OVERWRITES)
        return Sentence(
            kind=step.because.value,
            source=self.names.transaction(step.source // self.names.events),
            target=self.names.transaction(step.target // self.names.events),
            moments=(MOMENTS[step.source % 2], MOMENTS[step.target % 2]) if self.names.has_events else None,
            key=self.names.keys[step.key] if step.key >= 0 else None,
            reader=self.names.transaction(step.reader) if reads else None,
            writer=self.names.transaction(step.writer) if reads else None,
            number=number,
            uses=step.path,
        )
