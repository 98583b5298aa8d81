"""Counters: add a number, read the sum."""

from __future__ import annotations

from checkers.api.evidence import any_ok
from checkers.linearizable.model import ANYTHING, Beginning, Call, Model, State, Value, always, reading, repeating


def _counter(state: State, call: Call) -> list[tuple[State, Value]]:
    return [(state, state)] if call.f == "read" else [(state + call.argument, ANYTHING)]


def _is_integer(value: Value) -> bool:
    return type(value) is int


MODEL = Model(
    name="counter",
    initial=0,
    functions=("add", "read"),
    apply=_counter,
    does=reading("read"),
    begins=Beginning(accepts=_is_integer, expected="an integer"),
    repeats=repeating("add"),
    evidence=always(*any_ok("read")),
)
