"""From recorded rows to numbers: the calls on one object, and the search problem that they make.

A call that failed did not happen (but see `FailedCas`). One that is indefinite or never completed may have happened at
any time after its invocation, or never. Calls that show nothing are left out.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from checkers.kernels.columns import Int64
from checkers.linearizable.history.calls import Calls, Row, calls_of
from checkers.linearizable.model import INDEFINITE, Call, Does, Model
from checkers.linearizable.search.events import OTHER, OVERWRITES, READS
from checkers.linearizable.search.timeline import Problem
from checkers.linearizable.search.transitions import Transitions
from checkers.linearizable.values import NEVER

NUMBERS = {Does.CHANGES: OTHER, Does.READS: READS, Does.OVERWRITES: OVERWRITES}


def recorded(model: Model, rows: Iterable[Row]) -> Problem:
    """The problem that these rows make, which are in order. Raises ValueError if a row does not belong to this
    model."""
    return problem_of(model, calls_of(model, rows))


def problem_of(model: Model, calls: Calls) -> Problem:
    number: dict[Call, int] = {}
    kind = np.array([number.setdefault(call, len(number)) for call in calls.calls], dtype=np.int64)
    kinds = list(number)

    touched = [model.parts(call) for call in kinds]
    everything = {name for names in touched for name in names or ()} if None not in touched else None

    def step(state: Hashable, at: int) -> list[Hashable]:
        return model.step(state, kinds[at])

    def does(at: int) -> int:
        names = touched[at]
        alone = names is not None and (everything is None or not everything.issubset(names))
        return OTHER if alone and model.does(kinds[at]) is Does.OVERWRITES else NUMBERS[model.does(kinds[at])]

    return Problem(
        start=calls.start,
        end=calls.end,
        kind=kind,
        does=np.array([does(at) for at in range(len(kinds))], dtype=np.int64),
        over=_over(model, calls, kinds),
        initial=model.initial,
        transitions=Transitions(len(kinds), step),
        hopeless=model.hopeless(kinds) if model.hopeless is not None else None,
    )


def useful(model: Model, calls: Calls) -> Calls:
    """The calls without indefinite ones that began when no operation needed them any more."""
    kinds = list(dict.fromkeys(call for call in calls.calls if call.result is INDEFINITE))
    over = dict(zip(kinds, _over(model, calls, kinds).tolist(), strict=True))
    needed = [over.get(call, NEVER) > start for call, start in zip(calls.calls, calls.start.tolist(), strict=True)]
    return calls.part(np.flatnonzero(needed))


def _over(model: Model, calls: Calls, kinds: list[Call]) -> Int64:
    """By kind: the moment from which on no operation needs an indefinite call of it.

    An indefinite call may need the effect of another one. It does so only as long as it is needed itself.
    """
    everything = -1
    last: dict[Hashable, int] = {}
    for call, end in zip(calls.calls, calls.end.tolist(), strict=True):
        if end == NEVER:
            continue
        needed = model.needs(call)
        if needed is None:
            everything = max(everything, end)
        for effect in needed or ():
            last[effect] = max(last.get(effect, -1), end)
    final = max((end for end in calls.end.tolist() if end != NEVER), default=-1)
    indefinite = [call for call in kinds if call.result is INDEFINITE]
    over = {call: -1 for call in indefinite}
    grows = True
    while grows:
        grows = False
        for call in indefinite:
            effect = model.effect(call)
            until = final if effect is None else max(last.get(effect, -1), everything)
            if until <= over[call]:
                continue
            over[call] = until
            grows = True
            needed = model.needs(call) if until >= 0 else ()
            if needed is None:
                everything = max(everything, until)
            for effect in needed or ():
                last[effect] = max(last.get(effect, -1), until)
    return np.array([over.get(call, -1) for call in kinds], dtype=np.int64)
