"""The checkers of transactions: which consistency models a history still allows, and whether it keeps the demanded one.

Of lists every read tells its key's history, so the order of versions is known and dependencies follow from it
(`list_append`); each model down to snapshots forbids certain cycles of them (`graph`), and where none is, some order of
all transactions explains the history. Of registers the order of versions is not known. What holds in any order, or in
those that the user's assumptions leave, gives dependencies too (`rw_register`); and whether some order explains the
history is decided completely (`deciding`), without assumptions. So are the levels whose promise no cycle of named
dependencies tells, for both.

What breaks a promise, by name:
  G0 … G2-item, each plain, -process and -realtime   cycles of dependencies, see `graph.cycles`
  internal, future-read                              a transaction contradicts itself
  G1a, G1b, dirty-update, garbage-read               something was read that was not to be seen, or that nobody wrote
  duplicate-elements, incompatible-order             reads of a list contradict it, or each other
  lost-update                                        several transactions updated the same version
  cyclic-versions                                    versions of a register precede each other, by what was assumed
  not-causal, not-snapshot-isolation, …              no order of the transactions explains the history in that model

They take histories of list-append or rw-register (`transactions.micro_operations`); two writes of one value to a key
are refused, for nothing could be told from reads of it. Anomalies that the demanded model allows are counted as legal.
They do not establish that a model stronger than the demanded one is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from checkers.anomaly import Anomaly
from checkers.buckets import bucket_count
from checkers.elle import list_append, rw_register
from checkers.elle.carried import Carried
from checkers.elle.certificate import SHOWN_BY_READS, Names, certificate_lines, certificate_of_anomaly
from checkers.elle.committed_rows import RESOLVED
from checkers.elle.edges import EDGES, NODES, Kind
from checkers.elle.explanation import Explanation, explained_cycle, explained_proof, indices_of_proof, involved
from checkers.elle.graph.cycles import Cycles
from checkers.elle.graph.search import cycles
from checkers.elle.judgement import Answer, answer_alone, answers, order_of
from checkers.elle.lattice import Model, forbidden, weakest
from checkers.elle.malformed import refuse_malformed
from checkers.elle.micro_rows import micro_rows, refusals
from checkers.elle.proof import Decision
from checkers.elle.reasons import EDGE_REASONS, gathered_reasons, wanted_edges
from checkers.elle.rw_register import Assumed, Assumption
from checkers.elle.standing import Standing
from checkers.findings import FINDINGS, gathered_findings
from checkers.history_batches import history_rows
from checkers.kernels.columns import FAIL, Int64, run_starts
from checkers.plan import CheckRequest, Dataset, Engine
from checkers.transactions.spans import transactions
from checkers.verdict import AnomalySummary, CheckerResult, Verdict

NO_ORDER = "not-"
"""Anomalies are called so, and then a model, where no order of the transactions explains the history in it."""

LEFT_OUT = (list_append.LEFT_OUT, rw_register.MISSING)
"""Counts of dependencies that crowded keys would have had, among the findings."""

COUNTS = (*LEFT_OUT, list_append.UNORDERED, rw_register.READS)
"""All counts among the findings."""

FIRST_USES = pa.schema([pa.field("number", pa.int64()), pa.field("key", pa.string())])

SERIAL = frozenset(
    {
        Model.REPEATABLE_READ,
        Model.SERIALIZABLE,
        Model.STRONG_SESSION_SERIALIZABLE,
        Model.STRICT_SERIALIZABLE,
    }
)
"""Models that a history of lists keeps if it has none of the anomalies that they forbid: where no dependencies make a
cycle, they leave an order of all transactions, which orders those versions too whose order no read shows."""

BY_CYCLES = SERIAL | {
    Model.READ_UNCOMMITTED,
    Model.STRONG_SESSION_READ_UNCOMMITTED,
    Model.PL_2,
    Model.CONSISTENT_VIEW,
    Model.PARALLEL_SNAPSHOT_ISOLATION,
    Model.STRONG_SESSION_PARALLEL_SNAPSHOT_ISOLATION,
    Model.SNAPSHOT_ISOLATION,
    Model.STRONG_SESSION_SNAPSHOT_ISOLATION,
    Model.STRONG_SNAPSHOT_ISOLATION,
}
"""Likewise, if reads show the order of all versions. Two versions behind the longest read may follow each other in one
order only, or in none, if some cycles are allowed and others are not."""

EMPTY = "empty-transaction-graph: no read shows what another transaction did, so nothing follows from any"


@dataclass(frozen=True, kw_only=True)
class Inferred:
    """What a workload's micro-operations tell."""

    nodes: Dataset
    findings: Dataset
    edges: Dataset
    resolved: Dataset
    reasons: Callable[[pa.Table], Dataset]
    """EDGE_REASONS of wanted edges."""
    key_names: Callable[[Sequence[int]], Mapping[int, str]]
    """Of keys by their numbers among RESOLVED rows."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of one history, ever more of it."""

    findings: Mapping[str, AnomalySummary]
    """But for cycles, and for what no order explains."""
    read: int
    """How many reads of registers show another transaction's write, or that nobody had written."""
    cycles: Cycles
    unordered: int
    """Keys of whose last versions no read shows the order."""
    standing: Standing
    answers: Sequence[Answer] = ()


@dataclass(frozen=True, kw_only=True)
class ListAppend:
    """Judges transactions on lists."""

    model: Model = Model.STRICT_SERIALIZABLE

    @property
    def name(self) -> str:
        return "list-append"

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        with self._inferred(request, engine) as told:
            known = _by_dependencies(engine, told)
            if not known.cycles.undecided:
                by_cycles = SERIAL if known.unordered else BY_CYCLES
                kept = by_cycles - known.standing.broken
                known = replace(known, standing=known.standing.keeping(*kept))
            known = _by_deciders(engine, told, known, self.model)
            empty = () if known.cycles.edges else (EMPTY,)
            return _result(self, request, engine, told, known, empty)

    def certify(self, request: CheckRequest, engine: Engine, path: Path) -> str:
        """Write what proves the verdict, as `certificate` has it; returns what that is, in few words.

        Raises TooLargeToCertify, OSError.
        """
        with self._inferred(request, engine) as told:
            return _certified(self, request, engine, told, path)

    @contextmanager
    def _inferred(self, request: CheckRequest, engine: Engine) -> Iterator[Inferred]:
        buckets = bucket_count(history_rows(request.history))
        with micro_rows(request, engine) as micro:
            rows = engine.mapped(micro, partial(list_append.list_rows, buckets=buckets), list_append.ROWS)
            of_transactions = engine.mapped(micro, list_append.transaction_findings, FINDINGS)
            refused = engine.mapped(micro, refusals, FINDINGS)
            outcomes = engine.grouped(rows, ("bucket",), list_append.list_outcomes, list_append.OUTCOMES)

            def reasons(wanted: pa.Table) -> Dataset:
                kernel = partial(list_append.list_reasons, wanted=wanted)
                return engine.grouped(rows, ("bucket",), kernel, EDGE_REASONS)

            with engine.kept(outcomes) as of_keys:
                of_versions = engine.mapped(of_keys, list_append.outcome_findings, FINDINGS)
                yield Inferred(
                    nodes=engine.mapped(micro, nodes, NODES),
                    findings=engine.union(engine.union(refused, of_transactions), of_versions),
                    edges=engine.mapped(of_keys, list_append.outcome_edges, EDGES),
                    resolved=engine.grouped(rows, ("bucket",), list_append.list_resolved, RESOLVED),
                    reasons=reasons,
                    key_names=partial(_keys_of_first_uses, engine, micro),
                )


@dataclass(frozen=True, kw_only=True)
class RwRegister:
    """Judges transactions on registers."""

    model: Model = Model.STRICT_SERIALIZABLE
    assume: frozenset[Assumption] = frozenset()
    order: Mapping[int, int] = field(default_factory=dict)
    """Of transactions, by the history index of the completion: the place in an order that the system told."""

    @property
    def name(self) -> str:
        return "rw-register"

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        with self._inferred(request, engine) as told:
            known = _by_deciders(engine, told, _by_dependencies(engine, told), self.model)
            # A null read tells something as well: it comes before all writes.
            empty = () if known.read else (EMPTY,)
            return _result(self, request, engine, told, known, empty)

    def certify(self, request: CheckRequest, engine: Engine, path: Path) -> str:
        """Write what proves the verdict, as `certificate` has it; returns what that is, in few words.

        Raises TooLargeToCertify, OSError.
        """
        with self._inferred(request, engine) as told:
            return _certified(self, request, engine, told, path)

    @contextmanager
    def _inferred(self, request: CheckRequest, engine: Engine) -> Iterator[Inferred]:
        buckets = bucket_count(history_rows(request.history))
        assumed = Assumed(assumptions=self.assume, order=self.order)
        with micro_rows(request, engine) as micro:
            rows = engine.mapped(micro, partial(rw_register.register_rows, buckets=buckets), rw_register.ROWS)
            of_keys = engine.grouped(
                rows, ("bucket",), partial(rw_register.register_findings, assumed=assumed), FINDINGS
            )

            def reasons(wanted: pa.Table) -> Dataset:
                kernel = partial(rw_register.register_reasons, wanted=wanted, assumed=assumed)
                return engine.grouped(rows, ("bucket",), kernel, EDGE_REASONS)

            def key_names(numbers: Sequence[int]) -> Mapping[int, str]:
                kernel = partial(rw_register.key_names, codes=frozenset(numbers), buckets=buckets)
                names = engine.gather(engine.grouped(rows, ("bucket",), kernel, rw_register.NAMES), len(numbers))
                return dict(zip(names["key"].to_pylist(), names["name"].to_pylist(), strict=True))

            yield Inferred(
                nodes=engine.mapped(micro, nodes, NODES),
                findings=engine.union(engine.mapped(micro, refusals, FINDINGS), of_keys),
                edges=engine.grouped(rows, ("bucket",), partial(rw_register.register_edges, assumed=assumed), EDGES),
                resolved=engine.grouped(rows, ("bucket",), partial(rw_register.resolved, buckets=buckets), RESOLVED),
                reasons=reasons,
                key_names=key_names,
            )


def nodes(rows: pa.Table) -> pa.Table:
    """Kernel over MICRO_ROWS: NODES."""
    begins = run_starts(rows["start"].to_numpy()) & (rows["type"].to_numpy() != FAIL)
    return rows.select(NODES.names).filter(pa.array(begins))


def _by_dependencies(engine: Engine, told: Inferred) -> Known:
    """Raises MalformedHistory."""
    findings = dict(gathered_findings(engine, told.findings))
    refuse_malformed(findings)
    counted = {name: findings.pop(name).count for name in COUNTS if name in findings}
    found = cycles(engine, told.nodes, told.edges)
    left_out = sum(counted.get(name, 0) for name in LEFT_OUT)
    if left_out:
        reason = f"{left_out} dependencies on the last versions of crowded keys were left out"
        found = replace(found, undecided=(*found.undecided, reason))
    return Known(
        findings=findings,
        read=counted.get(rw_register.READS, 0),
        cycles=found,
        unordered=counted.get(list_append.UNORDERED, 0),
        standing=Standing().showing(findings).showing(found.found),
    )


def _by_deciders(engine: Engine, told: Inferred, known: Known, demanded: Model) -> Known:
    if not known.standing.undecided(demanded):
        return known
    given = answers(engine, told.resolved, demanded, known.standing)
    standing = known.standing
    for one in given:
        standing = standing.deciding(one.model, one.verdict)
    if not given:
        # There is nothing that an order would have to explain.
        standing = standing.keeping(*(model for model in Model if model not in standing.broken))
    return replace(known, standing=standing, answers=given)


def _result(
    checker: ListAppend | RwRegister,
    request: CheckRequest,
    engine: Engine,
    told: Inferred,
    known: Known,
    reasons: tuple[str, ...],
) -> CheckerResult:
    demanded, standing = checker.model, known.standing
    verdict = standing.verdict(demanded)
    if verdict is Verdict.VALID and reasons:
        verdict = Verdict.UNKNOWN
    if verdict is Verdict.UNKNOWN:
        reasons = (*reasons, *known.cycles.undecided, *map(_left_open, known.answers))
    anomalies = {
        **known.findings,
        **_cycle_anomalies(request, engine, told, known.cycles),
        **_order_anomalies(checker, request, engine, told, known.answers),
    }
    broken = forbidden(demanded)
    return CheckerResult(
        verdict=verdict,
        reasons=tuple(reason for reason in reasons if reason) if verdict is Verdict.UNKNOWN else (),
        anomalies={
            name: summary
            if name in broken or name.startswith(NO_ORDER)
            else replace(summary, legal=f"{demanded.value} allows it")
            for name, summary in sorted(anomalies.items())
        },
        statistics={
            "model": demanded.value,
            "ruled_out": _values(standing.in_order()),
            "strongest": _values(standing.strongest(demanded)),
            "undecided": _values(standing.undecided(demanded)),
            "dependencies": known.cycles.edges,
        },
    )


def _values(models: Iterable[Model]) -> list[str]:
    return [model.value for model in models]


def _left_open(answer: Answer) -> str:
    """Empty if it was decided."""
    if answer.verdict is not Verdict.UNKNOWN:
        return ""
    parts = ", ".join(
        f"{len(some)} transactions such as those at {', '.join(map(str, some[:3]))}" for some in answer.open
    )
    return f"{answer.model.value} is undecided: the search was given up{f', with {parts} left' if parts else ''}"


def _cycle_anomalies(
    request: CheckRequest, engine: Engine, told: Inferred, found: Cycles
) -> Mapping[str, AnomalySummary]:
    edges = [edge for name in found.found.values() for cycle in name.examples for edge in cycle.edges]
    if not edges:
        return {}
    wanted = wanted_edges((int(kind), source, target) for kind, source, target in edges if kind <= Kind.RW)
    reasons = gathered_reasons(engine, told.reasons(wanted), wanted)
    witnesses = involved(engine, transactions(request, engine), (source for _, source, _ in edges))
    anomalies = {}
    for name, of_name in found.found.items():
        examples = []
        for cycle in of_name.examples:
            explanation = explained_cycle(cycle, reasons, witnesses)
            examples.append(_anomaly(name, cycle.transactions, explanation))
        anomalies[name] = AnomalySummary(count=of_name.count, examples=tuple(examples))
    return anomalies


def _anomaly(name: str, operations: Iterable[int], explanation: Explanation) -> Anomaly:
    return Anomaly(
        name=name,
        operations=tuple(sorted(set(operations))),
        because=explanation.because,
        details=explanation.details(),
    )


def _order_anomalies(
    checker: ListAppend | RwRegister,
    request: CheckRequest,
    engine: Engine,
    told: Inferred,
    given: Sequence[Answer],
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
        names = _names(checker, told, model, proof)
        indices = indices_of_proof(proof.proof, names)
        explanation = explained_proof(proof.proof, names, involved(engine, transactions(request, engine), indices))
        anomalies[name] = AnomalySummary(count=1, examples=(_anomaly(name, indices, explanation),))
    return anomalies


def _names(checker: ListAppend | RwRegister, told: Inferred, model: Model, proof: Carried) -> Names:
    names = told.key_names(proof.keys)
    keys = [names[number] for number in proof.keys]
    return Names(model=model.value, workload=checker.name, start=proof.start, keys=keys)


def _certified(
    checker: ListAppend | RwRegister, request: CheckRequest, engine: Engine, told: Inferred, path: Path
) -> str:
    model = checker.model
    nobody = Names(model=model.value, workload=checker.name, start=np.zeros(0, dtype=np.int64), keys=())
    known = _by_dependencies(engine, told)
    decisive = forbidden(model) & frozenset(SHOWN_BY_READS)
    shown = [summary.examples[0] for name, summary in known.findings.items() if name in decisive]
    if shown:
        _write(path, [certificate_of_anomaly(shown[0], nobody)])
        return f"{shown[0].name:<9}"
    answer = answer_alone(engine, told.resolved, model)
    if answer.proof is not None:
        names = _names(checker, told, model, answer.proof)
        _write(path, certificate_lines(Decision(verdict=Verdict.INVALID, proof=answer.proof.proof), names))
        return "proof    "
    if answer.verdict is not Verdict.VALID:
        why = "the verdict is unknown" if answer.verdict is Verdict.UNKNOWN else "there are too many cases"
        return f"no proof  {why}, nothing"
    if model in known.standing.broken:
        return "no proof  the verdict rests on what was assumed, nothing"
    order = order_of(engine, told.resolved, model, history_rows(request.history))
    starts, transaction = np.unique(order["start"].to_numpy(), return_inverse=True)
    events = (transaction + 1) * nobody.events + order["event"].to_numpy()
    names = replace(nobody, start=np.append(np.int64(-1), starts))
    _write(path, certificate_lines(Decision(verdict=Verdict.VALID, order=events.astype(np.int32)), names))
    return "order    "


def _write(path: Path, pieces: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(pieces)


def _keys_of_first_uses(engine: Engine, micro: Dataset, numbers: Sequence[int]) -> Mapping[int, str]:
    """Names of keys that are numbered by the first micro-operation on them."""
    found = engine.mapped(micro, partial(first_uses, numbers=np.array(numbers, dtype=np.int64)), FIRST_USES)
    names = engine.gather(found, len(numbers))
    return dict(zip(names["number"].to_pylist(), names["key"].to_pylist(), strict=True))


def first_uses(rows: pa.Table, *, numbers: Int64) -> pa.Table:
    """Kernel over MICRO_ROWS: of those that keys are numbered by, FIRST_USES."""
    number = rows["start"].to_numpy() * list_append.PLACES + rows["place"].to_numpy()
    chosen = pa.array(np.isin(number, numbers) & (rows["f"].to_numpy() >= 0))
    keys = rows["key"].filter(chosen).cast(pa.string())
    return pa.Table.from_arrays([pa.array(number).filter(chosen), keys], schema=FIRST_USES)
