"""Made-up histories of an object at which all operations are at work at once, of few values that repeat."""

from __future__ import annotations

import random
from typing import Any

from checkers.linearizable.model import ANYTHING, INDEFINITE, Call, Model
from checkers.linearizable.values import frozen

Rows = list[dict[str, Any]]

CHANGING = {"fifo-queue": "enqueue", "stack": "push", "append-log": "append"}
ASKING = {"fifo-queue": "dequeue", "stack": "pop", "append-log": "read"}


def crowded(model: Model, rng: random.Random, operations: int, *, lies: int = 0, unknown: float = 0.0) -> Rows:
    """Each operation is of a process of its own, and nearly all begin before the first one ends. So many answers are
    changed; of what is unknown it is by chance whether it took effect."""
    begin = [rng.uniform(0.0, 1.2) for _ in range(operations)]
    end = [one + rng.uniform(0.3, 1.5) for one in begin]
    effect = [rng.uniform(begin[n], end[n]) for n in range(operations)]
    state = model.initial
    asked: dict[int, tuple[str, Any, Any, bool]] = {}
    for n in sorted(range(operations), key=effect.__getitem__):
        f = (CHANGING if rng.random() < 0.5 else ASKING)[model.name]
        argument = rng.randint(1, 4) if f == CHANGING[model.name] else None
        is_known = rng.random() >= unknown
        answer = argument
        if is_known or rng.random() < 0.5:
            call = Call(f=f, argument=frozen(argument), result=INDEFINITE)
            state, result = rng.choice(list(model.apply(state, call)))
            answer = argument if result is ANYTHING else list(result) if isinstance(result, tuple) else result
        asked[n] = f, argument, answer, is_known
    return _rows(begin, end, _with_lies(asked, rng, lies))


def _with_lies(
    asked: dict[int, tuple[str, Any, Any, bool]], rng: random.Random, lies: int
) -> dict[int, tuple[str, Any, Any, bool]]:
    told = dict(asked)
    answered = sorted(n for n, (_, argument, _, is_known) in asked.items() if argument is None and is_known)
    for n in rng.sample(answered, min(lies, len(answered))):
        f, argument, answer, is_known = asked[n]
        if isinstance(answer, list):
            lie: Any = [*answer[1:], rng.randint(1, 4)]
        else:
            lie = rng.choice([one for one in (None, 1, 2, 3, 4) if one != answer])
        told[n] = f, argument, lie, is_known
    return told


def _rows(begin: list[float], end: list[float], asked: dict[int, tuple[str, Any, Any, bool]]) -> Rows:
    rows: Rows = []
    for _, is_end, n in sorted([(begin[n], 0, n) for n in asked] + [(end[n], 1, n) for n in asked]):
        f, argument, answer, is_known = asked[n]
        kind = "invoke" if not is_end else "ok" if is_known else "info"
        value = answer if kind == "ok" else argument
        rows.append({"index": len(rows), "process": n, "type": kind, "f": f, "key": "k", "value": value, "error": None})
    return rows
