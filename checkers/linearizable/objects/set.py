"""Sets to which each element is added at most once, and from which it is removed at most once: decided in O(n log n)
and the size of all reads.

Without reads of everything, elements are independent. For one element few things can have happened (`set_elements`).

With reads of everything, as long as nothing is removed, what is read grows (`set_growth`).

Not decided here are reads of everything together with removes, and elements that are added or removed a second time.

Functions: add, remove, contains, with 1 as result if it returned that something changed, or is there, and 0 if
not; read, whose lists show all.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass

from checkers.api.evidence import any_ok, in_json
from checkers.kernels.columns import Int64
from checkers.linearizable.deciders.set_elements import decided_by_element, order_by_element
from checkers.linearizable.deciders.set_growth import decided_by_reads, order_of_reads
from checkers.linearizable.deciders.set_operations import SetCalls, set_calls
from checkers.linearizable.deciders.spans import Open, Outcome, Spans
from checkers.linearizable.model import (
    ANYTHING,
    Call,
    Columns,
    Decided,
    Does,
    Model,
    Repeated,
    State,
    Value,
    always,
    elements,
    is_boolean,
    repeating,
)
from checkers.linearizable.values import Truth, frozen


@dataclass(frozen=True)
class SetOfElements:
    """Decides sets."""

    def decide(self, spans: Spans, initial: tuple[int, ...]) -> Outcome:
        calls = set_calls(spans, initial)
        if isinstance(calls, Open):
            return calls
        return decided_by_reads(calls) if calls.reads else decided_by_element(calls)

    def order(self, spans: Spans, initial: tuple[int, ...]) -> Int64:
        calls = set_calls(spans, initial)
        assert isinstance(calls, SetCalls)
        return order_of_reads(calls) if calls.reads else order_by_element(calls)


# The model.


def _set(state: State, call: Call) -> list[tuple[State, Value]]:
    """add x, remove x, contains x, and read, which returns all elements. A boolean returned by add or remove says
    whether something changed."""
    if call.f == "read":
        same = isinstance(call.result, tuple) and frozenset(call.result) == state
        return [(state, call.result if same else tuple(sorted(state, key=repr)))]
    present = call.argument in state
    if call.f == "contains":
        return [(state, present)]
    after = state | {call.argument} if call.f == "add" else state - {call.argument}
    return [(after, present is (call.f == "remove") if isinstance(call.result, Truth) else ANYTHING)]


def _set_does(call: Call) -> Does:
    if call.f in ("read", "contains"):
        return Does.READS
    return Does.CHANGES if isinstance(call.result, Truth) else Does.OVERWRITES


def _set_parts(call: Call) -> Collection[Hashable] | None:
    return None if call.f == "read" else (call.argument,)


def _set_effect(call: Call) -> Hashable:
    return ("element", call.argument) if call.f == "add" else None


def _set_needs(call: Call) -> Collection[Hashable] | None:
    if call.f == "read":
        elements = call.result if isinstance(call.result, tuple) else ()
        return [("element", element) for element in elements]
    # An add or a remove that returned that the element had been there needs it.
    had = bool(call.result) is (call.f != "add") if isinstance(call.result, Truth) else False
    return (("element", call.argument),) if had else ()


def _only_in(call: Call) -> tuple[State] | None:
    return (frozenset((call.argument,)),) if call.f == "contains" and call.result is Truth.TRUE else None


MODEL = Model(
    name="set",
    initial=frozenset(),
    functions=("add", "remove", "contains", "read"),
    apply=_set,
    does=_set_does,
    effect=_set_effect,
    needs=_set_needs,
    parts=_set_parts,
    only_in=_only_in,
    begins=elements(lambda value: frozenset(map(frozen, value))),
    repeats=repeating("add", "remove", how=Repeated(answer="^(true|false)$")),
    evidence=always(
        *any_ok("read", "contains"),
        *(in_json(f, is_boolean, "that says whether it changed anything") for f in ("add", "remove")),
    ),
    decided=Decided(by=SetOfElements(), columns=Columns.CONTENTS),
)
