"""Registers to which no value is written twice: decided in O(n log n).

A read of a value has read from the one operation that wrote it, so all operations on one value belong together. Their
`zones` show whether they can be put in a row.

An indefinite write that was seen (by a read, or as the expected value of a cas that happened) did happen, and never
ends. One that was not seen may be left out.

Source: Gibbons and Korach, Testing Shared Memories, SIAM Journal on Computing 26 (1997), for reads and writes. The
chains of a cas are our own addition, tested against a search through all orders.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from checkers.api.evidence import Evidence, any_ok, shows_a_value, without_error
from checkers.kernels.columns import NO_INDEX, NONE, Int64
from checkers.linearizable.deciders.chains import Chains, chains, clusters
from checkers.linearizable.deciders.register_functions import CAS, CAS_MISS, READ
from checkers.linearizable.deciders.register_values import Registers, numbered
from checkers.linearizable.deciders.spans import Contradiction, Open, Ordered, Outcome, Spans
from checkers.linearizable.deciders.zones import Zones, crossed, seats, zones
from checkers.linearizable.model import ANYTHING, FAILED, Call, Decided, Does, FailedCas, Model, State, Value, repeating
from checkers.linearizable.values import NEVER

LINKS = 16
"""The most cas between two operations of a chain that are named as witnesses."""


@dataclass(frozen=True, kw_only=True)
class Words:
    """The words for operations of an object that is decided as a register."""

    read: str = "read"
    write: str = "write"
    cas: str = "cas"
    changed: str = "from {1} to {0}"
    """What a cas did: {0} is the value after it, {1} the one before."""
    unwritten: str = "which was never written"
    begins: str = "every register begins as"


@dataclass(frozen=True)
class Register:
    """Decides registers. Functions: read, write, cas, and a cas that found another value (`operations.CAS_MISS`)."""

    words: Words = Words()

    def decide(self, spans: Spans, initial: tuple[int, ...]) -> Outcome:
        """The outcome. `initial`: one value, or nothing for null."""
        begins = _only(initial)
        registers = _register(spans, begins)
        if registers.ambiguous[0] != NO_INDEX:
            return Open(_doubt(spans, begins, int(registers.ambiguous[0])))
        known = clusters(registers)
        explained = _Explanations(spans, begins, registers, self.words)
        if known.unwritten[0] != NO_INDEX:
            return explained.unwritten(int(known.unwritten[0]))
        if known.replaced_twice[0, 0] != NO_INDEX:
            return explained.replaced_twice(*known.replaced_twice[0].tolist())
        chained = chains(registers, known)
        if chained.circular[0] != NO_INDEX:
            return explained.circular(int(chained.circular[0]), chained)
        if chained.late[0, 0] != NO_INDEX:
            return explained.late(*chained.late[0].tolist())
        found = zones(registers, chained)
        one, other = crossed(found, 1)[0].tolist()
        return Ordered() if one == NO_INDEX else explained.crossed(chained, found, one, other)

    def order(self, spans: Spans, initial: tuple[int, ...]) -> Int64:
        """Chains in the order of their zones. In a chain come the write of a value, its reads by their begins, and then
        the operation that replaces it."""
        registers = _register(spans, _only(initial))
        chained = chains(registers, clusters(registers))
        found = zones(registers, chained)
        seat = np.full(len(registers.owner), NO_INDEX, dtype=np.int64)
        seat[found.chain] = seats(found)
        # Backward zones that wait for the same forward one share its end.
        rank = np.full(len(registers.owner), NO_INDEX, dtype=np.int64)
        rank[found.chain[np.argsort(seat[found.chain], kind="stable")]] = np.arange(len(found.chain))
        kept = np.flatnonzero(registers.happened)
        value = registers.value[kept]
        level = 2 * chained.depth[value] + (registers.f[kept] == READ)
        return np.asarray(kept[np.lexsort((registers.start[kept], level, rank[chained.first[value]]))])


def suspects(registers: Registers) -> Int64:
    """The registers for which `decide` may not say that they are linearizable, ascending."""
    known = clusters(registers)
    chained = chains(registers, known)
    suspected = (registers.ambiguous != NO_INDEX) | (known.unwritten != NO_INDEX) | (chained.circular != NO_INDEX)
    for pairs in (known.replaced_twice, chained.late, crossed(zones(registers, chained), registers.registers)):
        suspected |= pairs[:, 0] != NO_INDEX
    return np.flatnonzero(suspected)


def _only(initial: tuple[int, ...]) -> int:
    return initial[0] if initial else NONE


def _register(spans: Spans, initial: int) -> Registers:
    return numbered(
        count=1,
        register=np.zeros(len(spans), dtype=np.int64),
        start=spans.start,
        end=spans.end,
        f=spans.f,
        value=np.where(spans.f == READ, spans.result, spans.argument),
        expected=_expected(spans),
        initial=initial,
    )


def _expected(spans: Spans) -> Int64:
    return np.full(len(spans), NONE) if spans.expected is None else spans.expected


def _doubt(spans: Spans, initial: int, position: int) -> str:
    if spans.f[position] == CAS_MISS:
        return f"a cas failed, which says what the value was not ({spans.when(position)})"
    value = spans.render(int(spans.argument[position]))
    again = "which was there from the beginning" if spans.argument[position] == initial else "which was written before"
    return f"{value} is written, {again} ({spans.when(position)})"


@dataclass(frozen=True)
class _Explanations:
    """Why one register cannot be linearized."""

    spans: Spans
    initial: int
    registers: Registers
    words: Words

    def unwritten(self, seer: int) -> Contradiction:
        seen = self._expected(seer) if self.spans.f[seer] == CAS else self._value(seer)
        return self._proven({seer}, f"{self._operation(seer)} saw {seen}, {self.words.unwritten}")

    def replaced_twice(self, one: int, other: int) -> Contradiction:
        value = self._expected(one)
        return self._proven(
            {one, other},
            f"{self._operation(one)} and {self._operation(other)} both replaced {value}, which was there only once",
        )

    def circular(self, seen: int, chained: Chains) -> Contradiction:
        f, value = self.registers.f, self.registers.value
        swaps = np.flatnonzero(self.registers.happened & (f == CAS))
        swaps = swaps[chained.first[value[swaps]] == NO_INDEX]
        return self._proven(
            {seen, *swaps[:LINKS].tolist()},
            f"{self._operation(seen)} saw a value of a cycle of {self.words.cas} operations, each of which needs the "
            "last",
        )

    def late(self, late: int, early: int) -> Contradiction:
        if self.registers.value[late] == self.registers.value[early]:
            because = f"{self._operation(early)} saw the effect of {self._operation(late)}, which had not begun by then"
        else:
            because = (
                f"{self._operation(early)} shows that {self._value(late)} had been replaced by {self._value(early)}, "
                f"but {self._operation(late)} began after that"
            )
        return self._proven(self._linked(late, early), because)

    def crossed(self, chained: Chains, found: Zones, one: int, other: int) -> Contradiction:
        sentences = []
        witnesses: set[int] = set()
        for before, after in ((one, other), (other, one)):
            name = found.chain[before]
            ended, began = int(chained.ended[name]), int(chained.began[found.chain[after]])
            witnesses |= self._linked(began, int(chained.ended[found.chain[after]]))
            if name < self.registers.registers:
                first = self.spans.render(self.initial)
                sentences.append(f"{first} came before {self._value(began)}, because {self.words.begins} {first}")
                continue
            sentences.append(
                f"{self._value(ended)} came before {self._value(began)}, because {self._operation(ended)} had ended "
                f"when {self._operation(began)} began"
            )
        return self._proven(witnesses, "; but ".join(sentences))

    def _operation(self, position: int) -> str:
        spans, words = self.spans, self.words
        value = self._value(position)
        if spans.f[position] == CAS:
            what = f"{words.cas} {words.changed.format(value, self._expected(position))}"
        else:
            what = f"{words.read if spans.f[position] == READ else words.write} of {value}"
        return f"the {what} ({spans.when(position)})"

    def _value(self, position: int) -> str:
        spans = self.spans
        read_or_written = spans.result if spans.f[position] == READ else spans.argument
        return spans.render(int(read_or_written[position]))

    def _expected(self, position: int) -> str:
        return self.spans.render(int(_expected(self.spans)[position]))

    def _linked(self, one: int, other: int) -> set[int]:
        """Two operations of a chain, the writers of their values, and the cas that lead from one value to the other."""
        registers = self.registers
        paths = []
        for position in (one, other):
            path = []
            at = int(registers.value[position])
            while at != NO_INDEX and registers.writer[at] != NO_INDEX:
                path.append(int(registers.writer[at]))
                at = int(registers.expected[registers.writer[at]])
            paths.append(path)
        shared = set(paths[0]) & set(paths[1])
        between = [position for path in paths for position in path if position not in shared]
        nearest = next((position for position in paths[0] if position in shared), None)
        return {one, other, *between[:LINKS], *([] if nearest is None else [nearest])}

    def _proven(self, witnesses: set[int], because: str) -> Contradiction:
        """The contradiction of these witnesses. An indefinite one needs an operation that saw it as a further witness,
        because otherwise it need not have happened."""
        registers = self.registers
        sees = np.where(registers.f == READ, registers.value, registers.expected)
        proven = set(witnesses)
        for position in witnesses:
            at = position
            for _ in range(LINKS):
                if registers.end[at] != NEVER:
                    break
                seers = np.flatnonzero(registers.happened & (sees == registers.value[at]))
                at = int(seers[np.argmin(registers.end[seers])])
                proven.add(at)
        return Contradiction(frozenset(proven), because)


# The model.


def _apply(state: State, call: Call) -> list[tuple[State, Value]]:
    if call.f == "read":
        return [(state, state)]
    if call.f == "write":
        return [(call.argument, ANYTHING)]
    expected, new = _pair(call.argument)
    if call.result is FAILED:
        return [] if state == expected else [(state, ANYTHING)]
    return [(new, ANYTHING)] if state == expected else []


def _pair(value: Hashable) -> tuple[Hashable, Hashable]:
    if not isinstance(value, tuple) or len(value) != 2:
        raise ValueError(f"expected a pair, got {value!r}")
    return value


def _register_does(call: Call) -> Does:
    if call.f == "write":
        return Does.OVERWRITES
    return Does.READS if call.f == "read" or call.result is FAILED else Does.CHANGES


def _register_effect(call: Call) -> Hashable:
    value = call.argument if call.f == "write" else _pair(call.argument)[1]
    return ("value", value)


def _register_needs(call: Call) -> Collection[Hashable] | None:
    if call.result is FAILED:
        return None
    if call.f == "cas":
        return (("value", _pair(call.argument)[0]),)
    return (("value", call.result),) if call.f == "read" else ()


def _register_evidence(state: State) -> tuple[Evidence, ...]:
    """What could contradict a register. If it can never be null, a read of null shows nothing."""
    return any_ok("read") if state is None else (shows_a_value("read"),)


def _cas_register_evidence(failed_cas: FailedCas, state: State) -> tuple[Evidence, ...]:
    answer = Evidence(f="cas", type="fail", which=without_error, columns=("error",), words="without an error")
    return (*_register_evidence(state), *any_ok("cas"), *([answer] if failed_cas is FailedCas.ANSWER else []))


def _only_in(call: Call) -> tuple[State] | None:
    if call.f == "read":
        return (call.result,)
    if call.f == "cas" and call.result is not FAILED and isinstance(call.argument, tuple):
        return (call.argument[0],)
    return None


def _held(state: State) -> tuple[Hashable]:
    return (state,)


MODEL = Model(
    name="register",
    initial=None,
    functions=("read", "write"),
    apply=_apply,
    does=_register_does,
    effect=_register_effect,
    needs=_register_needs,
    only_in=_only_in,
    repeats=repeating("write"),
    evidence=_register_evidence,
    decided=Decided(by=Register(), holds=_held),
)


def cas_register(failed_cas: FailedCas) -> Model:
    """The model of a register with cas. It is searched unless it only holds integers (`registers`)."""
    return replace(
        MODEL,
        name="cas-register",
        functions=("read", "write", "cas"),
        failed_cas=failed_cas,
        repeats=repeating("write", "cas"),
        evidence=partial(_cas_register_evidence, failed_cas),
        decided=None,
    )
