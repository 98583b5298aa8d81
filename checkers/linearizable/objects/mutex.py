"""Mutexes: acquire, release."""

from __future__ import annotations

from checkers.api.evidence import Evidence
from checkers.linearizable.model import ANYTHING, Beginning, Call, Model, State, Value, is_boolean


def _mutex(state: State, call: Call) -> list[tuple[State, Value]]:
    return [(not state, ANYTHING)] if state is (call.f == "release") else []


def _mutex_evidence(held: State) -> tuple[Evidence, ...]:
    """A release is only possible if it is held, an acquire only if it is not."""
    return (Evidence(f="release"), Evidence(f="acquire", at_least=1 if held else 2))


MODEL = Model(
    name="mutex",
    initial=False,
    functions=("acquire", "release"),
    apply=_mutex,
    begins=Beginning(accepts=is_boolean, expected="true for held, or false", state=bool),
    repeats={},
    evidence=_mutex_evidence,
)
