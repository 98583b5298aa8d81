"""Several registers as one object: each call is a list of [read|write, register, value], which take effect together."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from checkers.api.evidence import in_json
from checkers.linearizable.model import (
    ANYTHING,
    INDEFINITE,
    Beginning,
    Call,
    Does,
    Model,
    Repeated,
    State,
    Value,
    always,
    repeating,
)
from checkers.linearizable.values import frozen

WRITES = ("write", "w")


def _multi_register(state: State, call: Call) -> list[tuple[State, Value]]:
    """Each call is a list of [read|write, register, value], which take effect together."""
    values = dict(state)
    for f, register, value in _known_operations(call):
        if f in WRITES:
            values[register] = value
        elif values.get(register) != value:
            return []
    return [(frozenset(values.items()), ANYTHING)]


def _micro_operations(value: Hashable) -> list[tuple[str, Hashable, Hashable]]:
    if not isinstance(value, tuple) or not all(isinstance(part, tuple) and len(part) == 3 for part in value):
        raise ValueError(f"expected a list of [f, register, value], got {value!r}")
    return [tuple(part) for part in value]


def _known_operations(call: Call) -> list[tuple[str, Hashable, Hashable]]:
    """The micro-operations whose values are known: without reads of a call that is indefinite, or that left them
    out."""
    if call.result not in (INDEFINITE, None):
        return _micro_operations(call.result)
    return [one for one in _micro_operations(call.argument) if one[0] in WRITES]


def _reads_a_register(value: object) -> bool:
    """Whether this is the result of a call on a multi-register that reads a register."""
    return isinstance(value, list) and any(isinstance(one, list) and one and one[0] not in WRITES for one in value)


def _same_micro_operations(asked: object, completed: object) -> bool:
    """Whether both have the same micro-operations. A value that is not a list of these is reported elsewhere."""
    if not isinstance(asked, list) or not isinstance(completed, list):
        return True
    parts = [*asked, *completed]
    if not all(isinstance(part, list) and len(part) == 3 for part in parts):
        return True
    return [_asked_for(part) for part in asked] == [_asked_for(part) for part in completed]


def _asked_for(part: list[Value]) -> Value:
    return frozen(part if part[0] in WRITES else part[:2])


def _multi_register_does(call: Call) -> Does:
    writes = [f in WRITES for f, _, _ in _known_operations(call)]
    if not any(writes):
        return Does.READS
    return Does.OVERWRITES if all(writes) else Does.CHANGES


def _multi_register_parts(call: Call) -> Collection[Hashable]:
    return {register for _, register, _ in _known_operations(call)}


def _multi_register_effect(call: Call) -> Hashable:
    """The name of the effect. If a call has several writes, it is unknown which one is needed, unless all are of one
    register: then it is the last."""
    written = [(register, value) for f, register, value in _known_operations(call) if f in WRITES]
    return written[-1] if len({register for register, _ in written}) == 1 else None


def _multi_register_needs(call: Call) -> Collection[Hashable]:
    return [(register, value) for f, register, value in _known_operations(call) if f not in WRITES]


def _is_map(value: object) -> bool:
    return isinstance(value, dict)


MODEL = Model(
    name="multi-register",
    initial=frozenset(),
    functions=("read", "write", "txn"),
    apply=_multi_register,
    does=_multi_register_does,
    effect=_multi_register_effect,
    needs=_multi_register_needs,
    parts=_multi_register_parts,
    begins=Beginning(
        accepts=_is_map,
        expected='a map from registers to values, e.g. {"x": 0}',
        state=lambda value: frozenset((register, frozen(held)) for register, held in value.items()),
    ),
    repeats=repeating("read", "write", "txn", how=Repeated(same=_same_micro_operations)),
    evidence=always(*(in_json(f, _reads_a_register, "that reads") for f in ("read", "txn"))),
)
