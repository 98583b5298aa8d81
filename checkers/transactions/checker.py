"""The checkers of transactions: which consistency models a history still allows, and whether it keeps the demanded one.

Every read of a list shows its key's history, so the order of versions is known, and dependencies follow from it
(`list_append`). Each model down to snapshots forbids certain cycles of these (`graph`); if there is none, some order of
all transactions explains the history. For registers the order of versions is not known. What holds in any order, or in
any order that the user's assumptions allow, gives dependencies, too (`rw_register`). Whether some order explains the
history is decided completely (`orders`), without assumptions. So are, for lists as well, the levels whose promise no
cycle of named dependencies can break.

What breaks a promise, by name:
  G0 … G2-item, each plain, -process and -realtime   cycles of dependencies, see `graph.cycles`
  internal, future-read                              a transaction contradicts itself
  G1a, G1b, dirty-update, garbage-read               something was read that must not be seen, or that was never written
  duplicate-elements, incompatible-order             reads of a list contradict it, or each other
  lost-update                                        several transactions updated the same version
  cyclic-versions                                    versions of a register precede each other, by what was assumed
  not-causal, not-snapshot-isolation, …              no order of the transactions explains the history in that model

They take histories of list-append or rw-register (`transactions.micro_operations`). Two writes of one value to a key
are refused, because reads of it would not show which write they saw. Anomalies that the demanded model allows, or that
the system may legally show here, are counted as legal, and the verdict depends on the others. They do not establish
that a model stronger than the demanded one is kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import ClassVar

import numpy as np

from checkers import search_budget
from checkers.api.anomaly import Anomaly
from checkers.api.findings import gathered_findings
from checkers.api.plan import CheckRequest, Engine
from checkers.api.verdict import AnomalySummary, CheckerResult, Verdict
from checkers.certified import CertifiedHistory
from checkers.history_batches import history_rows
from checkers.prefix import Finals, by_their_names
from checkers.search_budget import TimeIsUp
from checkers.transactions.anomalies import cycle_anomalies, names_of, names_of_no_order, order_anomalies
from checkers.transactions.elle import list_append, rw_register
from checkers.transactions.elle.graph.cycles import Cycles
from checkers.transactions.elle.graph.search import cycles
from checkers.transactions.elle.inference import Inference, of_lists, of_reads_of_registers, of_registers
from checkers.transactions.elle.rw_register import Assumed, Assumption
from checkers.transactions.evidence.assumed_cycles import contradiction
from checkers.transactions.evidence.certificate import (
    SHOWN_BY_READS,
    Names,
    certificate_lines,
    certificate_of_anomaly,
    certificate_of_cycle,
)
from checkers.transactions.evidence.proof import Decision
from checkers.transactions.meanings import NO_ORDER, OF_CYCLES, OF_LISTS, OF_REGISTERS
from checkers.transactions.model.lattice import ConsistencyModel, forbidden
from checkers.transactions.model.lattice_position import LatticePosition
from checkers.transactions.orders.plan import Answer, answer_alone, answers, order_of
from harness.record.meaning import Meaning

LEFT_OUT = (list_append.LEFT_OUT, rw_register.MISSING)
"""The tallies of dependencies that were left out of crowded keys."""

SERIAL = frozenset(
    {
        ConsistencyModel.REPEATABLE_READ,
        ConsistencyModel.SERIALIZABLE,
        ConsistencyModel.STRONG_SESSION_SERIALIZABLE,
        ConsistencyModel.STRICT_SERIALIZABLE,
    }
)
"""Models that a history of lists keeps if it has none of the anomalies that they forbid. If dependencies make no cycle,
they allow an order of all transactions, which also orders the versions whose order no read shows."""

BY_CYCLES = SERIAL | {
    ConsistencyModel.READ_UNCOMMITTED,
    ConsistencyModel.STRONG_SESSION_READ_UNCOMMITTED,
    ConsistencyModel.PL_2,
    ConsistencyModel.CONSISTENT_VIEW,
    ConsistencyModel.PARALLEL_SNAPSHOT_ISOLATION,
    ConsistencyModel.STRONG_SESSION_PARALLEL_SNAPSHOT_ISOLATION,
    ConsistencyModel.SNAPSHOT_ISOLATION,
    ConsistencyModel.STRONG_SESSION_SNAPSHOT_ISOLATION,
    ConsistencyModel.STRONG_SNAPSHOT_ISOLATION,
}
"""Models for which that holds if reads show the order of all versions. The ones that are not SERIAL allow some cycles
and forbid others, so of two versions behind the longest read perhaps only one order is allowed, or none."""

SHOWN_FOR_GOOD = frozenset({"duplicate-elements", "future-read", "G1a", "incompatible-order", "internal"})
"""Anomalies that completed operations show, whatever later operations do."""

EMPTY = (
    "empty-transaction-graph: no read shows what another transaction did, so the history proves nothing; "
    "let transactions read what others write, and record what ok ones read"
)


@dataclass(frozen=True, kw_only=True)
class HistoryFacts:
    """What is known of one history. It grows while the history is checked."""

    findings: Mapping[str, AnomalySummary]
    """All anomalies but cycles and missing orders."""
    read: int
    """How many reads of registers show another transaction's write, or that no transaction had written."""
    cycles: Cycles
    unordered: int
    """How many keys have last versions whose order no read shows."""
    standing: LatticePosition
    answers: Sequence[Answer] = ()


class Levels(Enum):
    """The consistency models that a check decides besides the demanded one."""

    ALL = "all"
    """All models up to it, so that the strongest ones that remain are known. All cycles of dependencies are named."""
    DEMANDED = "demanded"
    """No other model. Work that only other models need is left out."""


@dataclass(frozen=True, kw_only=True)
class _Transactions(ABC):
    """Judges transactions against a model."""

    model: ConsistencyModel = ConsistencyModel.STRICT_SERIALIZABLE
    meanings: ClassVar[Mapping[str, Meaning]]

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    def final_on_a_prefix(self) -> Finals:
        """A contradiction in a prefix remains one in the whole history: an order of all transactions, without the later
        ones, is an order of the others. But the whole history may give it another name. More transactions make other
        cycles, of which the strongest are named; open transactions may fail, and what others read of them is then an
        aborted read.

        A value that was read but not written yet may be written later, which only contradicts real time. If a model
        does not forbid aborted reads, it is not certain to forbid any of this.
        """
        names = self.meanings.keys()
        if "G1a" not in forbidden(self.model):
            return by_their_names(*names & {"duplicate-elements"})
        later = set() if "G1c-realtime" in forbidden(self.model) else {"garbage-read"}
        return {**dict.fromkeys(names - later, frozenset(names)), **by_their_names(*names & SHOWN_FOR_GOOD)}

    @abstractmethod
    def _inferred(self, request: CheckRequest, engine: Engine) -> AbstractContextManager[Inference]: ...

    def _of_reads(self, request: CheckRequest, engine: Engine) -> AbstractContextManager[Inference] | None:
        """The inference for the case that only the demanded model is decided, and no cycles are sought for it."""
        return None

    @abstractmethod
    def _kept_without_cycles(self, facts: HistoryFacts) -> frozenset[ConsistencyModel]:
        """The models that are kept if no finding rules them out."""

    @abstractmethod
    def _is_empty(self, facts: HistoryFacts) -> bool:
        """Whether no read shows anything."""

    def check(self, request: CheckRequest, engine: Engine) -> CheckerResult:
        of_reads = self._of_reads(request, engine)
        with of_reads or self._inferred(request, engine) as inferred:
            known = self._known_in_time(engine, inferred, decides_one=of_reads is not None)
            anomalies = {
                **known.findings,
                **_shown_in_time(
                    lambda: cycle_anomalies(request, engine, inferred, known.cycles),
                    {name: found.count for name, found in known.cycles.found.items()},
                ),
                **_shown_in_time(
                    lambda: order_anomalies(self.name, request, engine, inferred, known.answers),
                    dict.fromkeys(names_of_no_order(known.answers), 1),
                ),
            }
            told = _with_legality(self.model, anomalies, request.legal)
            reasons = (EMPTY,) if self._is_empty(known) else ()
            return _result(self.model, known, told, reasons, _open_searches(self.model, known, request.legal))

    def _known_in_time(self, engine: Engine, inferred: Inference, *, decides_one: bool) -> HistoryFacts:
        """What was found before the time was up. Raises MalformedHistory, and TimeIsUp if that is nothing."""
        known, left_out = _by_reads(engine, inferred)
        steps: Sequence[Callable[[HistoryFacts], HistoryFacts]]
        if decides_one:
            steps = (partial(_by_its_decider, engine, inferred, self.model),)
        else:
            steps = (
                partial(_by_cycles, engine, inferred, left_out),
                self._without_cycles,
                partial(_by_deciders, engine, inferred, self.model),
            )
        for step in steps:
            try:
                known = step(known)
            except TimeIsUp as up:
                left = replace(known.cycles, undecided=(*known.cycles.undecided, str(up)))
                return replace(known, cycles=left)
        return known

    def _without_cycles(self, facts: HistoryFacts) -> HistoryFacts:
        """The same facts, with the models that are kept because all cycles are known."""
        if facts.cycles.undecided:
            return facts
        kept = self._kept_without_cycles(facts) - facts.standing.broken
        return replace(facts, standing=facts.standing.keeping(*kept))

    def certify(
        self,
        request: CheckRequest,
        engine: Engine,
        write: Callable[[Iterable[str]], None],
        history: CertifiedHistory | None = None,
    ) -> str:
        """Write what proves the verdict, in the format of `certificate`; returns what that is, in a few words.

        `write` takes the pieces of the file, once, or never if there is no proof. `history` is what the certificate
        says that it is of. Raises TooLargeToCertify.
        """
        unnamed = Names(
            model=self.model.value,
            workload=self.name,
            start=np.zeros(0, dtype=np.int64),
            keys=(),
            history=history,
            assume=self._assumed(),
        )
        with self._inferred(request, engine) as inferred:
            return _certified(self.model, unnamed, request, engine, inferred, write)

    def _assumed(self) -> Sequence[str]:
        """The assumptions about the order of versions: none if reads show that order."""
        return ()


@dataclass(frozen=True, kw_only=True)
class ListAppend(_Transactions):
    """Judges transactions on lists."""

    meanings: ClassVar[Mapping[str, Meaning]] = OF_LISTS

    @property
    def name(self) -> str:
        return "list-append"

    def _inferred(self, request: CheckRequest, engine: Engine) -> AbstractContextManager[Inference]:
        return of_lists(request, engine)

    def _kept_without_cycles(self, facts: HistoryFacts) -> frozenset[ConsistencyModel]:
        return SERIAL if facts.unordered else BY_CYCLES

    def _is_empty(self, facts: HistoryFacts) -> bool:
        return not facts.cycles.edges


@dataclass(frozen=True, kw_only=True)
class RwRegister(_Transactions):
    """Judges transactions on registers."""

    meanings: ClassVar[Mapping[str, Meaning]] = OF_REGISTERS
    assume: frozenset[Assumption] = frozenset()
    levels: Levels = Levels.ALL
    order: Mapping[int, int] = field(default_factory=dict)
    """The place of each transaction in an order that the system reported, by the history index of the completion."""

    @property
    def name(self) -> str:
        return "rw-register"

    def _inferred(self, request: CheckRequest, engine: Engine) -> AbstractContextManager[Inference]:
        return of_registers(request, engine, Assumed(assumptions=self.assume, order=self.order))

    def _of_reads(self, request: CheckRequest, engine: Engine) -> AbstractContextManager[Inference] | None:
        # Deciders do not know of assumptions about versions.
        if self.levels is not Levels.DEMANDED or self.assume or self.order:
            return None
        return of_reads_of_registers(request, engine)

    def _assumed(self) -> Sequence[str]:
        return sorted(assumption.value for assumption in self.assume)

    def _kept_without_cycles(self, facts: HistoryFacts) -> frozenset[ConsistencyModel]:
        return frozenset()

    def _is_empty(self, facts: HistoryFacts) -> bool:
        # A read of null shows something as well: it comes before all writes.
        return not facts.read


def _by_dependencies(engine: Engine, inferred: Inference) -> HistoryFacts:
    """What findings, external reads and cycles of dependencies show. Raises MalformedHistory."""
    known, left_out = _by_reads(engine, inferred)
    return _by_cycles(engine, inferred, left_out, known)


def _by_cycles(engine: Engine, inferred: Inference, left_out: int, facts: HistoryFacts) -> HistoryFacts:
    search_budget.say(lambda: "cycles of dependencies")
    found = cycles(engine, inferred.nodes, inferred.links)
    if left_out:
        reason = f"{left_out} dependencies on the last versions of crowded keys were left out"
        found = replace(found, undecided=(*found.undecided, reason))
    return replace(facts, cycles=found, standing=facts.standing.showing(found.found))


def _by_its_decider(
    engine: Engine, inferred: Inference, demanded: ConsistencyModel, facts: HistoryFacts
) -> HistoryFacts:
    """What is known if only one model is decided: other models are only ruled out by findings."""
    if demanded in facts.standing.broken:
        return facts
    given = answer_alone(engine, inferred.resolved, demanded)
    return replace(facts, standing=facts.standing.deciding(demanded, given.verdict), answers=(given,))


def _by_reads(engine: Engine, inferred: Inference) -> tuple[HistoryFacts, int]:
    """(what findings and external reads show, without cycles; how many dependencies were left out). Raises
    MalformedHistory."""
    search_budget.say(lambda: "what reads show by themselves")
    found = gathered_findings(engine, inferred.findings)
    known = HistoryFacts(
        findings=found.anomalies,
        read=found.tally(rw_register.READS).count,
        cycles=Cycles(),
        unordered=found.tally(list_append.UNORDERED).count,
        standing=LatticePosition().showing(found.anomalies),
    )
    return known, sum(found.counts(*LEFT_OUT).values())


def _by_deciders(engine: Engine, inferred: Inference, demanded: ConsistencyModel, facts: HistoryFacts) -> HistoryFacts:
    if not facts.standing.undecided(demanded):
        return facts
    given = answers(engine, inferred.resolved, demanded, facts.standing)
    standing = facts.standing
    for one in given:
        standing = standing.deciding(one.model, one.verdict)
    if not given:
        # There is nothing that an order would have to explain.
        standing = standing.keeping(*(model for model in ConsistencyModel if model not in standing.broken))
    return replace(facts, standing=standing, answers=given)


def _shown_in_time(
    explain: Callable[[], Mapping[str, AnomalySummary]], counts: Mapping[str, int]
) -> Mapping[str, AnomalySummary]:
    """The anomalies as they are shown; if the time is up before that, only their names and how often each was found."""
    try:
        return explain()
    except TimeIsUp:
        because = "was found, but the time of --give-up-after was up before it could be shown"
        return {
            name: AnomalySummary(count=count, examples=(Anomaly(name=name, because=because),))
            for name, count in counts.items()
        }


def _with_legality(
    demanded: ConsistencyModel, anomalies: Mapping[str, AnomalySummary], legal: Mapping[str, str]
) -> dict[str, AnomalySummary]:
    """The anomalies, each with the reason why it is legal, if it is. `legal`: name -> why the system may show it
    here."""
    return {
        name: replace(summary, legal=legal.get(name, "") if _breaks(name, demanded) else f"{demanded.value} allows it")
        for name, summary in sorted(anomalies.items())
    }


def _breaks(name: str, demanded: ConsistencyModel) -> bool:
    return name in forbidden(demanded) or name.startswith(NO_ORDER)


def _open_searches(demanded: ConsistencyModel, facts: HistoryFacts, legal: Mapping[str, str]) -> tuple[str, ...]:
    """The searches for cycles that were given up and could change the verdict. None could if the model is known to be
    broken and all cycles that could still be found are legal."""
    is_settled = demanded in facts.standing.broken and forbidden(demanded) & OF_CYCLES.keys() <= legal.keys()
    return () if is_settled else tuple(facts.cycles.undecided)


def _result(
    demanded: ConsistencyModel,
    facts: HistoryFacts,
    anomalies: Mapping[str, AnomalySummary],
    reasons: tuple[str, ...],
    undecided: tuple[str, ...],
) -> CheckerResult:
    """The result of a check. `undecided`: searches that were given up and could have changed the verdict."""
    standing = facts.standing
    verdict = standing.verdict(demanded)
    breaking = [summary for name, summary in anomalies.items() if _breaks(name, demanded)]
    if verdict is Verdict.INVALID and breaking and all(summary.legal for summary in breaking):
        verdict = Verdict.UNKNOWN if undecided else Verdict.VALID
    if verdict is Verdict.VALID and reasons:
        verdict = Verdict.UNKNOWN
    if verdict is Verdict.UNKNOWN:
        reasons = (*reasons, *undecided, *map(_left_open, facts.answers))
    return CheckerResult(
        verdict=verdict,
        reasons=tuple(reason for reason in reasons if reason) if verdict is Verdict.UNKNOWN else (),
        anomalies=anomalies,
        statistics={
            "model": demanded.value,
            "ruled_out": _values(standing.in_order()),
            "strongest": _values(standing.strongest(demanded)),
            "undecided": _values(standing.undecided(demanded)),
            "dependencies": facts.cycles.edges,
        },
    )


def _values(models: Iterable[ConsistencyModel]) -> list[str]:
    return [model.value for model in models]


def _left_open(answer: Answer) -> str:
    """What the decider left open, in words; empty if it decided."""
    if answer.verdict is not Verdict.UNKNOWN:
        return ""
    given_up = f"{answer.model.value} is undecided"
    known = answer.established
    if known is None:
        return f"{given_up}: the search was given up; check a weaker model, or less at once"
    facts = [f"{given_up}: {known.bound.value}"]
    if known.components:
        such = ", ".join(f"at {some[0]}" for some in answer.open[:3])
        facts.append(
            f"left are {known.transactions:,} transactions in {known.components:,} groups, such as those {such}"
        )
    if known.choices:
        facts.append(
            f"an order was chosen for {known.choices:,} pairs of writers, and {known.conflicts:,} combinations of such"
            " orders are impossible"
        )
    if known.prefix:
        facts.append(f"the {known.prefix:,} transactions invoked first have an order by themselves")
    return "; ".join((*facts, "check a weaker model, or less at once"))


def _certified(
    model: ConsistencyModel,
    unnamed: Names,
    request: CheckRequest,
    engine: Engine,
    inferred: Inference,
    write: Callable[[Iterable[str]], None],
) -> str:
    """The reason in words. `unnamed` does not name transactions yet."""
    known = _by_dependencies(engine, inferred)
    decisive = forbidden(model) & frozenset(SHOWN_BY_READS)
    shown = [summary.examples[0] for name, summary in known.findings.items() if name in decisive]
    if shown:
        write([certificate_of_anomaly(shown[0], unnamed)])
        return f"{shown[0].name:<9}"
    answer = answer_alone(engine, inferred.resolved, model)
    if answer.proof is not None:
        proven = names_of(unnamed.workload, inferred, model, answer.proof)
        names = replace(unnamed, start=proven.start, keys=proven.keys)
        write(certificate_lines(Decision(verdict=Verdict.INVALID, proof=answer.proof.proof), names))
        return "proof    "
    if model in known.standing.broken and inferred.version_steps is not None:
        limit = history_rows(request.history)
        cycle = contradiction(engine, inferred.version_steps, known.cycles, known.findings, model, limit)
        if cycle is None:
            return "no proof  the verdict rests on an order that the system reported, nothing"
        write(certificate_of_cycle(cycle.name, cycle.steps, cycle.assumed, unnamed))
        return f"cycle     {cycle.name}, assuming {' and '.join(cycle.assumed)}," if cycle.assumed else "cycle    "
    if answer.verdict is not Verdict.VALID or model in known.standing.broken:
        too_many = answer.verdict is Verdict.INVALID
        return f"no proof  {'there are too many cases' if too_many else 'the verdict is unknown'}, nothing"
    order = order_of(engine, inferred.resolved, model, unnamed.events * history_rows(request.history))
    starts, transaction = np.unique(order["start"].to_numpy(), return_inverse=True)
    events = (transaction + 1) * unnamed.events + order["event"].to_numpy()
    names = replace(unnamed, start=np.append(np.int64(-1), starts))
    write(certificate_lines(Decision(verdict=Verdict.VALID, order=events.astype(np.int32)), names))
    return "order    "
