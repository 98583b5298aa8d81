"""A round of repair of one ledger: a look, and then for each fragment that lacks copies first these, then its ensemble.

A fragment's ensemble names a bookie only once this has all the entries that it should hold: a reader asks those that
are named, and what they do not have counts as never written. So what was copied is published last, by
compare-and-set, and a round that found somebody else's change looks again.

The last fragment of a ledger that is not closed is its writer's: for a while nothing is done about it. After that,
where a bookie of it is lost, the ledger is recovered, which closes it; where one lacks entries up to the LAC, it is
given these alone.

A bookie that lives and lacks entries gets them back itself, if it takes any; for others the first writable bookie comes
that has no place in the ensemble yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar

from system_under_test.bookkeeper.ledger.event import AddAnswered, LacAnswered, Publish, Published, ReadAnswered
from system_under_test.bookkeeper.ledger.metadata import LedgerMetadata
from system_under_test.bookkeeper.ledger.verification import Verification
from system_under_test.bookkeeper.repair.copying import FragmentCopy
from system_under_test.bookkeeper.repair.event import (
    Living,
    Outcome,
    Recover,
    RecoveryEnded,
    RepairEffect,
    RepairEvent,
    RoundEnded,
)
from system_under_test.bookkeeper.repair.holdings import OwnEnds, Span
from system_under_test.bookkeeper.repair.look import Lack, Look


class Step(Enum):
    COPY = "copy"
    PUBLISH = "publish"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done about a fragment."""

    span: Span
    replaced: dict[str, str]
    """Who takes the place of each bookie that lacks entries; it may be itself."""

    @property
    def ensemble(self) -> tuple[str, ...]:
        return tuple(self.replaced.get(bookie, bookie) for bookie in self.span.fragment.ensemble)


class RepairRound:
    """`begin`, then `step` until a `RoundEnded` comes."""

    steps: ClassVar[tuple[Step, ...]] = (Step.COPY, Step.PUBLISH)
    """What is done about each fragment, in this order."""

    def __init__(
        self,
        metadata: LedgerMetadata,
        bookies: Living,
        *,
        verification: Verification,
        probes: OwnEnds,
        grace_is_over: bool,
        most_at_once: int,
        only: str | None = None,
    ) -> None:
        """`grace_is_over`: the writer has had its time for the last fragment as it is. `only`: one bookie alone is
        looked at, and given what it lacks."""
        self.metadata = metadata
        self._bookies = bookies
        self._verification = verification
        self._most_at_once = most_at_once
        self._grace_is_over = grace_is_over
        self._look = Look(
            metadata, bookies, verification=verification, probes=probes, most_at_once=most_at_once, only=only
        )
        self._plans: list[Plan] = []
        self._left: list[Step] = []
        """What is still to be done of the first plan."""
        self._copy: FragmentCopy | None = None
        self._has_changed = False
        self._is_postponed = False
        self._is_stuck = False

    def begin(self) -> list[RepairEffect]:
        return self._after_look([*self._look.begin()])

    def step(self, event: RepairEvent) -> list[RepairEffect]:
        if isinstance(event, RecoveryEnded):
            self._has_changed, self._is_stuck = event.is_closed, not event.is_closed
            return self._go_on([])
        if isinstance(event, Published):
            return self._published(event)
        if not self._look.is_over:
            assert isinstance(event, ReadAnswered | LacAnswered)
            return self._after_look([*self._look.step(event)])
        assert isinstance(event, ReadAnswered | AddAnswered)
        return [] if self._copy is None else self._after_copy([*self._copy.step(event)])

    # -- what is to be done

    def _after_look(self, effects: list[RepairEffect]) -> list[RepairEffect]:
        if not self._look.is_over:
            return effects
        self._is_stuck = not self._look.is_certain
        lacks = [lack for lack in self._look.lacks if lack.span.is_final or self._grace_is_over]
        self._is_postponed = len(lacks) < len(self._look.lacks)
        if any(lack.is_lost and not lack.span.is_final for lack in lacks):
            return [*effects, Recover()]
        by_span: dict[Span, list[Lack]] = {}
        for lack in lacks:
            by_span.setdefault(lack.span, []).append(lack)
        self._plans = [plan for span, found in by_span.items() if (plan := self._plan(span, found)).replaced]
        self._left = list(self.steps)
        return self._go_on(effects)

    def _plan(self, span: Span, lacks: Sequence[Lack]) -> Plan:
        replaced: dict[str, str] = {}
        free = [bookie for bookie in self._bookies.writable if bookie not in span.fragment.ensemble]
        for lack in lacks:
            if not lack.is_lost and lack.bookie in self._bookies.writable:
                replaced[lack.bookie] = lack.bookie
            elif free and span.is_final:
                replaced[lack.bookie] = free.pop(0)
            else:
                self._is_stuck = True
        return Plan(span, replaced)

    def _go_on(self, effects: list[RepairEffect]) -> list[RepairEffect]:
        while self._plans:
            if not self._left:
                del self._plans[0]
                self._left = list(self.steps)
                continue
            plan, step = self._plans[0], self._left.pop(0)
            if step is Step.COPY:
                return self._begin_copy(plan, effects)
            if plan.ensemble != plan.span.fragment.ensemble:
                return [*effects, self._publish(plan)]
        return [*effects, RoundEnded(self._outcome)]

    @property
    def _outcome(self) -> Outcome:
        if self._has_changed:
            return Outcome.CHANGED
        if self._is_postponed:
            return Outcome.POSTPONED
        return Outcome.STUCK if self._is_stuck else Outcome.DONE

    # -- copies

    def _begin_copy(self, plan: Plan, effects: list[RepairEffect]) -> list[RepairEffect]:
        self._copy = FragmentCopy(
            self.metadata,
            plan.span,
            plan.replaced,
            bookies=self._bookies,
            verification=self._verification,
            most_at_once=self._most_at_once,
        )
        return self._after_copy([*effects, *self._copy.begin()])

    def _after_copy(self, effects: list[RepairEffect]) -> list[RepairEffect]:
        copy = self._copy
        if copy is None or not copy.is_over:
            return effects
        self._copy = None
        self._has_changed |= copy.has_copied and not copy.failed
        self._is_stuck |= bool(copy.failed)
        plan = self._plans[0]
        complete = {bookie: target for bookie, target in plan.replaced.items() if bookie not in copy.failed}
        self._plans[0] = replace(plan, replaced=complete)
        return self._go_on(effects)

    # -- ensembles

    def _publish(self, plan: Plan) -> Publish:
        fragment = replace(plan.span.fragment, ensemble=plan.ensemble)
        fragments = tuple(fragment if each == plan.span.fragment else each for each in self.metadata.fragments)
        return Publish(replace(self.metadata, fragments=fragments))

    def _published(self, event: Published) -> list[RepairEffect]:
        self._has_changed = True
        if event.version is None:
            self._plans, self._left = [], []
        else:
            self.metadata = replace(self._publish(self._plans[0]).metadata, version=event.version)
        return self._go_on([])
