"""Echoes: echo v returns v. It holds nothing."""

from __future__ import annotations

from checkers.api.evidence import any_ok
from checkers.linearizable.model import Beginning, Call, Model, State, Value, always, reading


def _echo(state: State, call: Call) -> list[tuple[State, Value]]:
    return [(state, call.argument)]


def _is_null(value: object) -> bool:
    return value is None


MODEL = Model(
    name="echo",
    initial=None,
    functions=("echo",),
    apply=_echo,
    does=reading("echo"),
    begins=Beginning(accepts=_is_null, expected="null, for it holds nothing"),
    keyed=False,
    evidence=always(*any_ok("echo")),
)
