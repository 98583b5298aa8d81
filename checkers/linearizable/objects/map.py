"""Maps: get, put, append, on one entry a key, because maps compose by key.

What was never put is null; a get may have shown it as the empty text, to which append adds."""

from __future__ import annotations

from typing import Any

from checkers.evidence import any_ok
from checkers.linearizable.model import ANYTHING, Call, Does, Model, State, Value, always, repeating


def _map(state: State, call: Call) -> list[tuple[State, Value]]:
    """One entry of a map, for maps compose by key. What was never put is null; appended to, it is empty."""
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


MODEL = Model(
    name="map",
    initial=None,
    functions=("get", "put", "append"),
    apply=_map,
    does=_map_does,
    only_in=_only_in,
    repeats=repeating("put", "append"),
    evidence=always(*any_ok("get")),
)
