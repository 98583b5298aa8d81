"""Made-up histories of sets and append-only logs, whose reads return all that they hold, hardly any element twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from checkers.kernels.columns import NONE
from checkers.linearizable.deciders.spans import Lists, Spans
from checkers.linearizable.model import ANYTHING, INDEFINITE, Call, Model
from checkers.linearizable.values import NEVER, Truth, frozen
from tests.references.interleaving import Open, interleave

Rows = list[dict[str, Any]]
Asked = tuple[str, int | None]


def log_asks(rng: random.Random, initial: Sequence[int]) -> Iterator[Asked]:
    """Appends of fresh elements, and reads."""
    reads = rng.uniform(0.1, 0.5)
    element = len(initial)
    while True:
        if rng.random() < reads:
            yield "read", None
        else:
            yield "append", element
            element += 1


def set_asks(rng: random.Random, initial: Sequence[int]) -> Iterator[Asked]:
    """Adds and removes of elements, hardly ever twice; reads or removes, hardly ever both."""
    elements = rng.randint(1, 4)
    names = rng.choice((("contains",), ("contains", "contains"), ("read",), ("contains", "read", "read")))
    changes = [("add", e) for e in range(elements) if e not in initial or rng.random() < 0.05]
    if "read" not in names or rng.random() < 0.1:
        changes += [("remove", e) for e in range(elements)]
    if rng.random() < 0.1:
        changes.append(rng.choice(changes or [("add", 0)]))
    rng.shuffle(changes)
    while True:
        if changes and rng.random() < 0.5:
            yield changes.pop()
        else:
            f = rng.choice(names)
            yield f, None if f == "read" else rng.randrange(elements)


ASKS: dict[str, Callable[[random.Random, Sequence[int]], Iterator[Asked]]] = {"append-log": log_asks, "set": set_asks}


def made_up_contents(
    model: Model, initial: Sequence[int], rng: random.Random, operations: int, *, lies: float, unknown: float
) -> Rows:
    """Rows of a history; the object takes effect somewhere between begin and end, or lies."""
    state = model.beginning_with(list(initial)).initial
    asks = ASKS[model.name](rng, initial)
    answered_often = rng.choice((0.0, 0.3, 0.8))
    rows: Rows = []
    opened: dict[int, Open] = {}

    def row(process: int, kind: str, f: str, value: Any) -> None:
        rows.append(
            {"index": len(rows), "process": process, "type": kind, "f": f, "key": "k", "value": value, "error": None}
        )

    def take_effect(f: str, argument: int | None, answers: list[Any]) -> None:
        nonlocal state
        if answers:
            return
        before = state
        state, answer = next(iter(model.apply(state, Call(f=f, argument=argument, result=INDEFINITE))))
        answers.append(argument if answer is ANYTHING else list(answer) if isinstance(answer, tuple) else answer)
        if f in ("add", "remove") and rng.random() < answered_often:
            answers[0] = state != before
        if f == "append" and rng.random() < answered_often:
            answers[0] = [len(before), argument]

    def complete(process: int) -> None:
        f, argument, answers = opened.pop(process)
        if rng.random() < unknown:
            if rng.random() < 0.5:
                row(process, "info", f, argument)
            return
        take_effect(f, argument, answers)
        row(process, "ok", f, lie(f, answers[0], rng) if rng.random() < lies else answers[0])

    asked = ((process, *next(asks)) for process in range(operations))
    interleave(asked, row=row, take_effect=take_effect, complete=complete, opened=opened, rng=rng)
    return rows


def lie(f: str, answer: Any, rng: random.Random) -> Any:
    if isinstance(answer, bool):
        return not answer
    if f == "append" and isinstance(answer, list):
        return [max(0, answer[0] + rng.choice((-1, 1, 2))), answer[1]]
    if f == "read":
        elements = [*answer, rng.randrange(6)] if rng.random() < 0.5 else list(answer)
        if elements and rng.random() < 0.5:
            elements.pop(rng.randrange(len(elements)))
        return elements
    return answer


def operations_in(rows: Rows) -> list[tuple[int, int, Call]]:
    """Begin, end and call; without reads that were never answered."""
    ended = {row["process"]: row for row in rows if row["type"] == "ok"}
    found = []
    for begun in rows:
        if begun["type"] != "invoke":
            continue
        end = ended.get(begun["process"])
        if end is None and begun["f"] in ("read", "contains"):
            continue
        result = INDEFINITE if end is None else frozen(end["value"])
        call = Call(f=begun["f"], argument=frozen(begun["value"]), result=result)
        found.append((begun["index"], NEVER if end is None else end["index"], call))
    return found


def spans_of_contents(model: Model, rows: Rows) -> Spans:
    operations = operations_in(rows)
    lists = [call.result if call.f == "read" else () for _, _, call in operations]
    return Spans(
        start=np.array([start for start, _, _ in operations], dtype=np.int64),
        end=np.array([end for _, end, _ in operations], dtype=np.int64),
        f=np.array([model.functions.index(call.f) for _, _, call in operations], dtype=np.int8),
        argument=np.array([NONE if call.argument is None else call.argument for _, _, call in operations], np.int64),
        result=np.array([_number(call) for _, _, call in operations], dtype=np.int64),
        lists=Lists(
            elements=np.array([element for one in lists for element in one], dtype=np.int64),
            bounds=np.concatenate(([0], np.cumsum([len(one) for one in lists]))).astype(np.int64),
        ),
    )


def _number(call: Call) -> int:
    if isinstance(call.result, Truth):
        return int(bool(call.result))
    return call.result[0] if call.f == "append" and isinstance(call.result, tuple) else NONE
