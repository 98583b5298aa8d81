"""Proofs that there is no order: each step by its rule, from the history and earlier steps alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from checkers.transactions.verify.demands import READ, SESSION, Demand, ExternalOrder, Family, Seen
from checkers.transactions.verify.history import INITIAL, Refuted, TransactionHistory
from checkers.transactions.verify.observations import Observations

Event = tuple[int, str]
"""A transaction and, at snapshot isolation, b or c."""


@dataclass(frozen=True, kw_only=True)
class JudgedStep:
    source: Event
    target: Event
    because: str


def require_proof(history: TransactionHistory, demand: Demand, blocks: Any) -> None:
    """Raises Refuted unless the blocks prove that no order explains the history.

    A block stands within an earlier one, whose steps it may use, and so on; it ends in a cycle of steps, or exactly two
    blocks stand within it, the cases. Steps are numbered on from those of the block that it stands within.
    """
    history.require_unique_writes()
    facts = Facts(history=history, demand=demand)
    if not isinstance(blocks, list) or not blocks:
        raise Refuted("the proof is empty")
    steps: list[JudgedStep] = []
    open_blocks: list[_Block] = []
    for number, entry in enumerate(blocks):
        if not isinstance(entry, dict) or not isinstance(entry.get("steps"), list):
            raise Refuted(f"block {number} has no steps")
        within = entry.get("within")
        while open_blocks and (type(within) is not int or open_blocks[-1].number != within):
            open_blocks.pop().require_complete()
        if (within is None) != (number == 0) or bool(open_blocks) != (number > 0):
            raise Refuted(f"block {number} stands within none that is open")
        del steps[open_blocks[-1].steps if open_blocks else 0 :]
        case_at = len(steps) if open_blocks else -1
        for step in entry["steps"]:
            steps.append(facts.step(step, steps, is_case=len(steps) == case_at))
        if open_blocks:
            if len(steps) == case_at:
                raise Refuted(f"block {number} assumes nothing")
            open_blocks[-1].cases.append((steps[case_at].source[0], steps[case_at].target[0]))
        has_cycle = entry.get("cycle") is not None
        if has_cycle:
            facts.require_cycle(entry["cycle"], steps)
        open_blocks.append(_Block(number=number, steps=len(steps), has_cycle=has_cycle))
    for block in open_blocks:
        block.require_complete()


@dataclass(frozen=True, kw_only=True)
class _Block:
    number: int
    steps: int
    """How many steps there are, with those of the blocks that it stands within."""
    has_cycle: bool
    cases: list[tuple[int, int]] = field(default_factory=list)

    def require_complete(self) -> None:
        if self.has_cycle and not self.cases:
            return
        if self.has_cycle or len(self.cases) != 2 or self.cases[0] != self.cases[1][::-1]:
            raise Refuted(f"block {self.number} has neither a cycle nor the two orders of two writers as cases")


def _path(numbers: Any, steps: Sequence[JudgedStep]) -> list[JudgedStep]:
    """The steps with these numbers. Raises Refuted unless each begins where the one before it ends."""
    if not isinstance(numbers, list):
        raise Refuted(f"{numbers!r} is no path of steps")
    for number in numbers:
        if type(number) is not int or not 0 <= number < len(steps):
            raise Refuted(f"{number!r} is not the number of an earlier step")
    path = [steps[number] for number in numbers]
    for one, following in pairwise(path):
        if one.target != following.source:
            raise Refuted(f"the path {numbers} has a gap")
    return path


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the history shows, and what follows from it by the rules of a model."""

    history: TransactionHistory
    demand: Demand

    @cached_property
    def observations(self) -> Observations:
        return Observations(history=self.history)

    def step(self, entry: Any, earlier: Sequence[JudgedStep], *, is_case: bool) -> JudgedStep:
        """The step of an entry. Raises Refuted unless its rule allows it."""
        number = len(earlier)
        if not isinstance(entry, dict):
            raise Refuted(f"step {number} is no step")
        because = entry.get("because")
        rule = _RULES.get(because) if isinstance(because, str) else None
        of_writes = because in ("initial", "known", "session", "case")
        if rule is None or (because == "case") != is_case or (self.demand.family is Family.WRITES and not of_writes):
            raise Refuted(f"step {number} may not be taken because of {because!r}")
        step = JudgedStep(
            source=self._event(entry, "source"), target=self._event(entry, "target"), because=str(because)
        )
        for event in (step.source, step.target):
            self.observations.require_committed(event[0])
        try:
            rule(self, step, entry, earlier)
        except Refuted as reason:
            raise Refuted(f"step {number} ({because}): {reason}") from None
        return step

    def require_cycle(self, numbers: Any, steps: Sequence[JudgedStep]) -> None:
        path = _path(numbers, steps)
        if not path or path[-1].target != path[0].source:
            raise Refuted(f"{numbers} is no cycle")
        if self.demand.keeps is ExternalOrder.NOTHING and any(step.because == SESSION for step in path):
            raise Refuted("the order of this model need not keep to sessions")

    def initial(self, step: JudgedStep, entry: Mapping[str, Any], earlier: Sequence[JudgedStep]) -> None:
        self._sides(step, "c", "b")
        if step.source[0] != INITIAL or step.target[0] == INITIAL:
            raise Refuted("only the initial transaction is before all others")

    def inside(self, step: JudgedStep, entry: Mapping[str, Any], earlier: Sequence[JudgedStep]) -> None:
        if self.demand.family is not Family.SNAPSHOT:
            raise Refuted("transactions of this model have no inside")
        self._sides(step, "b", "c")
        if step.source[0] != step.target[0]:
            raise Refuted("begin and commit are of two transactions")

    def read(self, step: JudgedStep, entry: Mapping[str, Any], earlier: Sequence[JudgedStep]) -> None:
        self._sides(step, "c", "b")
        self.observations.require_read(step.target[0], self.history.key_named(entry.get("key")), step.source[0])

    def session(self, step: JudgedStep, entry: Mapping[str, Any], earlier: Sequence[JudgedStep]) -> None:
        if self.demand.keeps is ExternalOrder.NOTHING and not self.demand.sees_sessions:
            raise Refuted("the model knows no sessions")
        self._sides(step, "c", "b")
        before, after = step.source[0], step.target[0]
        if INITIAL in (before, after) or self.history.process[before] != self.history.process[after]:
            raise Refuted("not of one session")
        self.observations.require_ended_before(before, after)

    def realtime(self, step: JudgedStep, entry: Mapping[str, Any], earlier: Sequence[JudgedStep]) -> None:
        if self.demand.keeps is not ExternalOrder.REALTIME:
            raise Refuted("the model does not keep realtime order")
        self._sides(step, "c", "b")
        if INITIAL in (step.source[0], step.target[0]):
            raise Refuted("the initial transaction is in no time")
        self.observations.require_ended_before(step.source[0], step.target[0])

    def version_order(self, step: JudgedStep, entry: Mapping[str, Any], earlier: Sequence[JudgedStep]) -> None:
        self._sides(step, "c", "b")
        key = self.history.key_named(entry.get("key"))
        if not self.history.lists:
            raise Refuted("registers do not show the order of their writes")
        before = self.observations.all_written(step.source[0], key)
        after = self.observations.all_written(step.target[0], key)
        if step.source[0] == step.target[0] or not before or not after:
            raise Refuted("not two writers of the key")
        place = self.observations.place.get(key, {})
        shown = [place[value] for value in before if value in place]
        # An element that no read shows comes behind all that are shown. So some element of source must be shown.
        if not shown or max(place.get(value, len(place)) for value in after) <= min(shown):
            raise Refuted("the longest list that was read does not show this order")

    def overwritten(self, step: JudgedStep, entry: Mapping[str, Any], earlier: Sequence[JudgedStep]) -> None:
        """u was seen by r, so it precedes the writer that r reads from."""
        self._sides(step, "c", "b")
        reader, writer, key = self._reading(entry)
        u = step.source[0]
        if step.target[0] != writer or u == writer:
            raise Refuted("the step is not from another writer to the one that was read from")
        self.observations.require_writer(u, key)
        path = self._joins(entry, earlier, (u, self._side("c")), (reader, self._side("b")))
        if not path:
            raise Refuted("nothing is seen without a step")
        if self.demand.family is Family.COMMITS:
            self._require_seen(reader, u, key, writer, [one.because for one in path])

    def overwrites(self, step: JudgedStep, entry: Mapping[str, Any], earlier: Sequence[JudgedStep]) -> None:
        """u follows the writer that r reads from, so it follows r."""
        if self.demand.family is Family.COMMITS and self.demand.seen is not Seen.UPDATES:
            raise Refuted("at this model a reader need not precede the next writer")
        self._sides(step, "b", "c")
        reader, writer, key = self._reading(entry)
        u = step.target[0]
        if step.source[0] != reader or u in (reader, writer):
            raise Refuted("the step is not from the reader to another writer")
        self.observations.require_writer(u, key)
        self._joins(entry, earlier, (writer, self._side("b")), (u, self._side("c")))
        if self.demand.seen is Seen.UPDATES:
            self.observations.require_writer(reader, key)

    def exclusive(self, step: JudgedStep, entry: Mapping[str, Any], earlier: Sequence[JudgedStep]) -> None:
        if self.demand.family is not Family.SNAPSHOT:
            raise Refuted("writers of this model have no begin")
        self._sides(step, "c", "b")
        key, (u, _), (v, _) = self.history.key_named(entry.get("key")), step.source, step.target
        if u == v:
            raise Refuted("not two writers")
        self.observations.require_writer(u, key)
        self.observations.require_writer(v, key)
        self._joins(entry, earlier, (u, "b"), (v, "c"))

    def case(self, step: JudgedStep, entry: Mapping[str, Any], earlier: Sequence[JudgedStep]) -> None:
        self._sides(step, "c", "b")
        key = self.history.key_named(entry.get("key"))
        if step.source[0] == step.target[0]:
            raise Refuted("not two writers")
        self.observations.require_writer(step.source[0], key)
        self.observations.require_writer(step.target[0], key)

    def _event(self, entry: Mapping[str, Any], name: str) -> Event:
        event = entry.get(name)
        if self.demand.family is not Family.SNAPSHOT:
            return INITIAL if event == INITIAL and type(event) is int else self.history.named(event), ""
        if not isinstance(event, str) or event[:1] not in ("b", "c"):
            raise Refuted(f"{event!r} is neither the begin nor the commit of a transaction")
        number = event[1:]
        if number == str(INITIAL):
            return INITIAL, event[0]
        return self.history.named_in(number), event[0]

    def _side(self, side: str) -> str:
        return side if self.demand.family is Family.SNAPSHOT else ""

    def _sides(self, step: JudgedStep, source: str, target: str) -> None:
        if step.source[1] != self._side(source) or step.target[1] != self._side(target):
            raise Refuted("it is not between these events")

    def _reading(self, entry: Mapping[str, Any]) -> tuple[int, int, int]:
        """(reader, writer, key) of a read that the history shows."""
        key = self.history.key_named(entry.get("key"))
        reader, named = self.history.named(entry.get("reader")), entry.get("writer")
        writer = INITIAL if named == INITIAL and type(named) is int else self.history.named(named)
        self.observations.require_read(reader, key, writer)
        return reader, writer, key

    def _joins(
        self, entry: Mapping[str, Any], earlier: Sequence[JudgedStep], begin: Event, end: Event
    ) -> list[JudgedStep]:
        path = _path(entry.get("path", []), earlier)
        if (path[0].source, path[-1].target) != (begin, end) if path else begin != end:
            raise Refuted("its path does not lead there")
        return path

    def _require_seen(self, reader: int, u: int, key: int, writer: int, path: Sequence[str]) -> None:
        demand = self.demand
        if demand.seen is Seen.EARLIER_READS:
            reads = self.observations.reads(reader)
            met = [at for at, (of, value) in enumerate(reads) if u != INITIAL and self.observations.is_of(u, of, value)]
            read = [
                at for at, (of, value) in enumerate(reads) if of == key and self.observations.is_of(writer, of, value)
            ]
            if list(path) != [READ] or not met or met[0] >= read[-1]:
                raise Refuted("nothing of that was read earlier in the transaction")
        elif demand.seen is Seen.UPDATES:
            self.observations.require_writer(reader, key)
        elif demand.seen is Seen.PATHS:
            joined = tuple(one for at, one in enumerate(path) if one != SESSION or not at or path[at - 1] != SESSION)
            if joined not in demand.paths:
                raise Refuted(f"nothing is seen at this model by the path {', '.join(path)}")
        else:
            allowed = {READ, SESSION} | ({"known", "overwritten", "case"} if demand.seen is Seen.VERSIONS else set())
            if demand.seen is Seen.NOTHING or not set(path) <= allowed:
                raise Refuted(f"nothing is seen at this model by the path {', '.join(path)}")


_RULES: Mapping[str, Callable[[Facts, JudgedStep, Mapping[str, Any], Sequence[JudgedStep]], None]] = {
    "initial": Facts.initial,
    "inside": Facts.inside,
    "read": Facts.read,
    "session": Facts.session,
    "realtime": Facts.realtime,
    "known": Facts.version_order,
    "overwritten": Facts.overwritten,
    "overwrites": Facts.overwrites,
    "exclusive": Facts.exclusive,
    "case": Facts.case,
}
