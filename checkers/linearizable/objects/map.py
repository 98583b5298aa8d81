"""Maps: get, put, append, on one entry a key, because maps compose by key.

An entry that was never put is null; a get may have shown it as the empty text, to which append adds.

An entry is decided in O(n log n) and the size of all gets if the values that were put and appended can be distinguished
in what gets show: then a get names its appends in order. So an append replaces one known state by another, like the cas
of a register, and a put begins anew. A value that was put or appended but never shown may have taken effect between any
two states neither of which grew from the other. All of that is a register to which no value is written twice.

If a value was given several times, most of these operations are distinguished by time, and the ways that are left are
tried.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from checkers.api.evidence import any_ok
from checkers.kernels.columns import NO_INDEX, NONE, Int64
from checkers.linearizable.deciders.append_tree import APPEND, EMPTY, GET, WAYS, Places, places, showing
from checkers.linearizable.deciders.register_functions import CAS, READ, WRITE
from checkers.linearizable.deciders.spans import NEVER, Contradiction, Open, Ordered, Outcome, Paths, Spans
from checkers.linearizable.model import ANYTHING, Call, Columns, Decided, Does, Model, State, Value, always, repeating
from checkers.linearizable.objects.register import Register, Words

LAST_SHOWN = 3
"""How many of the values that made a state, the last ones, a message names."""

WORDS = Words(
    read="get",
    write="put",
    cas="append",
    changed="that made {} of {}",
    unwritten="which nothing can have made so",
    begins="every entry begins as",
)


@dataclass(frozen=True)
class MapEntry:
    """Decides entries of maps."""

    def decide(self, spans: Spans, initial: tuple[int, ...]) -> Outcome:
        found = places(spans, _paths(spans))
        outcome, _ = _tried(spans, found)
        if not isinstance(outcome, Contradiction):
            return outcome
        if found.come_back:
            return Open("what a get showed first was put several times")
        shown = showing(spans, found, outcome.operations)
        if found.known_by_time and not _convicts(spans, shown):
            shown = frozenset(np.flatnonzero(spans.definite).tolist())
        return replace(outcome, operations=shown)

    def order(self, spans: Spans, initial: tuple[int, ...]) -> Int64:
        outcome, view = _tried(spans, places(spans, _paths(spans)))
        assert isinstance(outcome, Ordered)
        return Register().order(view, (_paths(spans).begins,))


def _paths(spans: Spans) -> Paths:
    assert spans.paths is not None
    return spans.paths


def _tried(spans: Spans, found: Places) -> tuple[Outcome, Spans]:
    """(the outcome of the first way that has an order, or else of all ways; the register that it is about)."""
    begins = found.paths.begins
    first: Contradiction | None = None
    operations: frozenset[int] = frozenset()
    for giver in found.givers():
        view = _as_register(spans, found, giver)
        outcome = Register(words=WORDS).decide(view, (begins,))
        if not isinstance(outcome, Contradiction):
            return outcome, view
        first = first or outcome
        operations |= outcome.operations
    assert first is not None
    if found.ways > WAYS:
        return Open(f"what was put or appended several times can be seen in {found.ways} ways"), view
    tied = {operation for _, ways in found.choices for way in ways for operation in way}
    return replace(first, operations=operations | tied), view


def _as_register(spans: Spans, found: Places, giver: Int64) -> Spans:
    """The same with states as values. An operation that gave no state that was shown writes one of its own."""
    paths = found.paths
    states = len(paths.before)
    made = states + np.arange(len(spans))
    f = np.where(spans.f == GET, READ, WRITE)
    expected = np.full(len(spans), NONE, dtype=np.int64)
    known = np.flatnonzero(giver != NO_INDEX)
    operations = giver[known]
    made[operations] = known
    appended = spans.f[operations] == APPEND
    f[operations[appended]] = CAS
    expected[operations[appended]] = paths.before[known[appended]]
    gets = f == READ
    made[gets & (found.seen != NO_INDEX)] = found.seen[gets & (found.seen != NO_INDEX)]
    return replace(
        spans,
        f=f.astype(np.int8),
        argument=np.where(gets, NONE, made),
        result=np.where(gets & spans.definite, made, NONE),
        expected=expected,
        values=_States(spans, paths),
        paths=None,
    )


def _convicts(spans: Spans, operations: frozenset[int]) -> bool:
    """Whether these operations cannot be ordered if only the arguments and the starts of all others are known."""
    chosen = np.zeros(len(spans), dtype=np.bool_)
    chosen[list(operations)] = True
    less = replace(spans, end=np.where(chosen, spans.end, NEVER), result=np.where(chosen, spans.result, NONE))
    less = less.part(chosen | (spans.f != GET))
    outcome, _ = _tried(less, places(less, _paths(less)))
    return isinstance(outcome, Contradiction)


class _States(Sequence[Hashable]):
    """Texts for states: the last values that made each, or the value that the operation gave."""

    def __init__(self, spans: Spans, paths: Paths) -> None:
        self._spans = spans
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths.before) + len(self._spans)

    @overload
    def __getitem__(self, number: int) -> Hashable: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Hashable]: ...
    def __getitem__(self, number: int | slice) -> Hashable | Sequence[Hashable]:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        states = len(self._paths.before)
        spans = self._spans
        if number >= states:
            operation = number - states
            return spans.value(spans.result[operation] if spans.f[operation] == GET else spans.argument[operation])
        tokens: list[Any] = []
        while number > EMPTY and len(tokens) <= LAST_SHOWN:
            if self._paths.token[number] == NONE:
                where = np.flatnonzero(self._paths.of == number)
                return spans.value(int(where[0])) if len(where) else None
            tokens.insert(0, spans.value(self._paths.token[number]))
            number = int(self._paths.before[number])
        if len(tokens) < 2:
            return tokens[0] if tokens else None
        cut = len(tokens) > LAST_SHOWN
        tokens = tokens[-LAST_SHOWN:]
        if isinstance(tokens[0], tuple):
            return (*(["..."] if cut else []), *(element for token in tokens for element in token))
        return ("..." if cut else "") + "".join(tokens)


# The model.


def _map(state: State, call: Call) -> list[tuple[State, Value]]:
    """One entry of a map, because maps compose by key. An entry that was never put is null, and empty for an append."""
    if call.f == "get":
        empty = state is None and call.result == ""
        return [(state, "" if empty else state)]
    if call.f == "put":
        return [(call.argument, ANYTHING)]
    added: Any = call.argument
    if state is None or isinstance(state, type(added)):
        return [(added if state is None else state + added, ANYTHING)]
    return []


def _map_does(call: Call) -> Does:
    return {"get": Does.READS, "put": Does.OVERWRITES}.get(call.f, Does.CHANGES)


def _only_in(call: Call) -> tuple[State] | None:
    return (call.result,) if call.f == "get" else None


def _held(state: State) -> tuple[Hashable]:
    return (state,)


MODEL = Model(
    name="map",
    initial=None,
    functions=("get", "put", "append"),
    apply=_map,
    does=_map_does,
    only_in=_only_in,
    repeats=repeating("put", "append"),
    evidence=always(*any_ok("get")),
    decided=Decided(by=MapEntry(), columns=Columns.APPENDED, holds=_held),
)
