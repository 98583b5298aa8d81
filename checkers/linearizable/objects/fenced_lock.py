"""Fenced locks: acquire, whose result is a token greater than all before, and release, which may name that token."""

from __future__ import annotations

from checkers.api.evidence import any_ok
from checkers.linearizable.model import ANYTHING, INDEFINITE, Beginning, Call, Model, State, Value, always, repeating
from checkers.linearizable.values import frozen


def _fenced_lock(state: State, call: Call) -> list[tuple[State, Value]]:
    """acquire returns a token greater than all before; release may name the token that it got.

    State: whether it is held, the last token, and whether that is only a lower bound, because the acquire that got it
    was indefinite.
    """
    held, last, is_least = state
    if call.f == "acquire":
        if held or (call.result is not INDEFINITE and not (isinstance(call.result, int) and call.result > last)):
            return []
        return [((True, last + 1, True) if call.result is INDEFINITE else (True, call.result, False), ANYTHING)]
    if not held:
        return []
    if not isinstance(call.argument, int):
        return [((False, last, is_least), ANYTHING)]
    fits = call.argument >= last if is_least else call.argument == last
    return [((False, call.argument, False), ANYTHING)] if fits else []


def _is_token(value: Value) -> bool:
    return type(value) is int and value >= 0


MODEL = Model(
    name="fenced-lock",
    initial=(False, 0, False),
    functions=("acquire", "release"),
    apply=_fenced_lock,
    begins=Beginning(
        accepts=_is_token,
        expected="the last token given away, an integer of at least 0",
        state=lambda token: (False, frozen(token), False),
    ),
    repeats=repeating("release"),
    evidence=always(*any_ok("acquire", "release")),
)
